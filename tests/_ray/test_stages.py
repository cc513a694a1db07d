"""Every stage has the same bits with and without a cluster, also when a node dies in the middle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.blocks import running_on
from dxml._core.cluster import RayCluster
from dxml._learners import linear_training
from dxml._learners.linear_examples import label_signs
from dxml._learners.linear_training import fit_linear
from dxml._neighbors import cosine
from dxml._neighbors.cosine import Neighbours, unit_rows
from dxml.data import make_planted
from dxml.joint import Joint
from dxml.text import _counting
from dxml.text._features import TextFeatures

from .nodes import Nodes, content

pytestmark = pytest.mark.ray

Arrays = list[np.ndarray]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small that little data makes many of them."""
    monkeypatch.setattr(cosine, "SEARCHED", 40)
    monkeypatch.setattr(linear_training, "BLOCK_BYTES", 50_000)
    monkeypatch.setattr(_counting, "SENT", 30)
    monkeypatch.setattr(Joint, "batch_rows", 50)


def planted() -> tuple[sp.csr_matrix, sp.csr_matrix]:
    data = make_planted(300, 200, 40, 2, 6, noise=0.3, random_state=3)
    return data.X, data.Y


def parts_of(matrix: sp.csr_matrix) -> Arrays:
    return [matrix.indptr, matrix.indices, matrix.data]


def search() -> Arrays:
    rows = unit_rows(planted()[0])
    return list(Neighbours(rows).search(rows, 7))


def search_dense() -> Arrays:
    rows = unit_rows(sp.csr_matrix(np.random.default_rng(0).random((300, 20), dtype=np.float32)))
    return list(Neighbours(rows).search(rows, 7))


def heads() -> Arrays:
    X, Y = planted()
    shortlist = sp.csr_matrix(np.random.default_rng(1).random(Y.shape) < 0.3)
    signs = label_signs(Y, shortlist)
    first, duals = fit_linear(X, signs, seed=5)
    again, duals = fit_linear(X, signs, seed=5, duals=duals, start=first.weights)
    return [*parts_of(first.weights), *parts_of(again.weights), duals]


def texts_of(n: int) -> list[str]:
    rng = np.random.default_rng(2)
    words = [f"word{i}" for i in range(200)]
    return [" ".join(rng.choice(words, size=rng.integers(0, 20))) for _ in range(n)]


def features() -> Arrays:
    features = TextFeatures(char_ngrams=4, word_ngrams=2)
    X = features.fit_transform(texts_of(300))
    names = np.array(features.feature_names)
    return [*parts_of(X), *parts_of(features.transform(texts_of(350)[::-1])), names]


def prediction() -> Arrays:
    X, Y = planted()
    model = Joint(candidates="nearest", width=0, max_iter=2).fit(X, Y)
    model.partial_fit(X[:3], Y[:3])
    ranking = model.predict_topk(X, 5)
    return [ranking.indices, ranking.scores]


STAGES: dict[str, Callable[[], Arrays]] = {
    "_search_sparse": search,
    "_search_dense": search_dense,
    "_train_block": heads,
    "_count_new_terms": features,
    "_count_packed": features,
    "_rank_batch": prediction,
}


def check_same(found: Arrays, expected: Arrays) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("stage", STAGES)
def test_the_same_bits_when_a_node_dies_at_work(
    stage: str, nodes: Nodes, cluster: RayCluster, tmp_path: Path
) -> None:
    expected = STAGES[stage]()
    with nodes.killing(cluster, stage, tmp_path) as killing:
        found = STAGES[stage]()
    killing.check()
    check_same(found, expected)


@pytest.mark.parametrize("stage", [search, search_dense, heads, features, prediction])
def test_the_same_bits_on_one_node(stage: Callable[[], Arrays], cluster: RayCluster) -> None:
    expected, before = stage(), cluster.traffic.blocks
    with running_on(cluster):
        found = stage()
    assert cluster.n_cores == 1 and cluster.traffic.blocks > before + 3
    check_same(found, expected)


def saved(folder: Path) -> tuple[Any, bytes]:
    X, Y = planted()
    return content(Joint(candidates="nearest", width=0).fit(X, Y).save(folder))


def test_a_model_is_the_same_file_with_two_nodes(
    nodes: Nodes, cluster: RayCluster, tmp_path: Path
) -> None:
    expected, before = saved(tmp_path / "here"), cluster.traffic.blocks
    with nodes.another(), running_on(cluster):
        found = saved(tmp_path / "there")
        assert cluster.n_cores == 2 and cluster.traffic.blocks > before + 10
    assert found == expected
