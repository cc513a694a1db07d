"""Label trees as a part: where they are planned, how they go on, and how they meet new labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml import load_model
from dxml._core.arrays import Arrays
from dxml._core.precision import Precision
from dxml.data import Dataset
from dxml.exceptions import ModelFormatError
from dxml.joint import Joint
from dxml.joint._ensemble import every_pair
from dxml.joint._points import Known
from dxml.joint.parts._trees import TreesPart
from dxml.joint.parts.protocol import Data, Options, Query, Shape, Task

SETTINGS = {"n_trees": 2}
PRECISIONS: list[Precision] = ["float32", "float16", "int8"]
SHAPE = Shape(20_000, 5_000, 2_000, False, False, "cpu", 8e9)
KNOWN = 10  # of the 12 labels; the last two are new


@pytest.fixture
def task(known: Known, options: Options) -> Task:
    return Task(Data(known.points, known.labels), options)


def asked(known: Known) -> Query:
    near = known.search(known.points, 2, "cpu")
    return Query(known.points, near, every_pair(30, known.n_labels), True, known, "cpu")


def test_where_trees_are_planned(options: Options) -> None:
    def planned(others: Any = (), **changes: Any) -> Any:
        shape = replace(SHAPE, **changes)
        return TreesPart.plan(shape, options, {name: {} for name in others})

    assert planned() == planned(every_label=True) == planned(["vote"]) == {"n_trees": 3}
    assert planned(n_labels=256) is not None and planned(n_labels=255) is None
    assert planned(n_labels=10, n_samples=2_000_000) is not None
    assert planned(n_labels=100_001) is None and planned(n_samples=8_000_000) is not None
    assert planned(dense=True) is None
    for other in ("kernel", "wide", "deep"):
        assert planned([other]) is None


def test_their_number_may_be_given(options: Options) -> None:
    few = replace(SHAPE, n_labels=3, dense=True)
    assert TreesPart.plan(few, replace(options, n_trees=5), {"wide": {}}) == {"n_trees": 5}
    assert TreesPart.plan(SHAPE, replace(options, n_trees=0), {}) is None


def test_the_score_is_the_mean_of_the_trees(known: Known, task: Task) -> None:
    part, query = TreesPart.fit(task, SETTINGS), asked(known)
    first, second = (tree.scores(query.X, query.pairs, True) for tree in part.trees)
    assert not np.array_equal(first, second)
    np.testing.assert_allclose(part.scores(query), (first + second) / 2, atol=1e-6)
    assert part.settings == SETTINGS


def test_trees_of_all_points_are_grown_anew(task: Task) -> None:
    trial = TreesPart.fit(replace(task, rows=np.arange(30) < 20), SETTINGS)
    whole = TreesPart.fit(task, SETTINGS, trial)
    fresh = TreesPart.fit(task, SETTINGS)
    for before, after, other in zip(trial.trees, whole.trees, fresh.trees, strict=True):
        assert np.array_equal(other.shape.leaves, after.shape.leaves)
        assert np.array_equal(after.biases, other.biases)
        assert not np.array_equal(before.biases, after.biases)


def test_saved_and_restored(known: Known, task: Task) -> None:
    part = TreesPart.fit(task, SETTINGS)
    config, arrays = part.state("float32")
    again = TreesPart.restore(config, Arrays(arrays), known)
    assert np.array_equal(again.scores(asked(known)), part.scores(asked(known)))
    assert again.settings == SETTINGS
    for precision in PRECISIONS:  # the first as it was read, the others packed anew
        saved = again.state(precision)[1]
        expected = part.state(precision)[1]
        assert saved.keys() == expected.keys()
        assert all(np.array_equal(saved[name], expected[name]) for name in expected)


@pytest.mark.parametrize("parents", [[], [0], [-1, 1, 1], [-1, -1, 0], [-1, 2, 0]])
def test_a_damaged_tree_is_refused(known: Known, task: Task, parents: list[int]) -> None:
    config, arrays = TreesPart.fit(task, SETTINGS).state("float32")
    arrays["trees.1.parents"] = np.array(parents, np.int32)
    with pytest.raises(ModelFormatError, match=r"trees\.1\.parents is no tree"):
        TreesPart.restore(config, Arrays(arrays), known)


def test_training_on_gives_new_labels_a_leaf(known: Known, options: Options) -> None:
    fewer = known.labels[:, :7]
    part = TreesPart.fit(Task(Data(known.points, fewer), options), SETTINGS)
    assert part.trees[0].shape.n_labels == 7
    grown = part.train_on(Task(Data(known.points, known.labels), options), None)
    for tree in grown.trees:
        assert tree.shape.n_labels == 8 and tree.shape.leaves[7] >= 0 and tree.shape.leaves[2] < 0


@pytest.mark.parametrize("way", ["all", "nearest"])
def test_in_a_model(way: Any, planted: Dataset, halves: Any, tmp_path: Path) -> None:
    old, fresh, test = halves
    model = Joint(candidates=way, width=0, n_trees=2, device="cpu")
    model.fit(planted.X[old], planted.Y[old][:, :KNOWN])
    assert model.plan_.parts["trees"] == {"n_trees": 2} and model.mixture_.weights["trees"][0] > 0
    assert model.score(planted.X[test], planted.Y[test][:, :KNOWN]) > 0.6
    again = load_model(model.save(tmp_path / "m"))
    assert np.array_equal(
        again.predict_topk(planted.X[test], 5).scores, model.predict_topk(planted.X[test], 5).scores
    )
    [why] = model.explain(planted.X[test[0]], k=1)
    assert "trees" in why.added
    model.partial_fit(planted.X[fresh], planted.Y[fresh])
    alone = test[planted.Y[test][:, KNOWN:].sum(axis=1).A1 == planted.Y[test].sum(axis=1).A1]
    assert (model.predict_topk(planted.X[alone], 1).indices[:, 0] >= KNOWN).mean() > 0.6
    model.widen(125).forget([0]).remove_label(3, int(model.train_labels_[3].indices[0]))
    part = model.catch_up().parts_["trees"]
    assert isinstance(part, TreesPart) and part.trees[0].shape.n_labels == 12
    assert part.trees[0].weights.shape[1] == 125


@pytest.mark.parametrize("proposing", [{"n_trees": 1}, {"n_trees": 0, "width": 256, "epochs": 40}])
def test_labels_of_common_words_are_candidates(proposing: dict[str, int]) -> None:
    """Six words that half of the points have tell the label; the rare ones say nothing."""
    rng = np.random.default_rng(0)
    n, n_common, n_rare = 6000, 6, 2000
    has = rng.random((n, n_common)) < 0.5
    labels = has @ (1 << np.arange(n_common))
    noise = np.zeros((n, n_rare), bool)
    np.put_along_axis(noise, rng.integers(0, n_rare, (n, 3)), True, axis=1)
    X = sp.csr_matrix(np.hstack([has, noise]), dtype=np.float32)
    Y = sp.csr_matrix((np.ones(n, bool), labels, np.arange(n + 1)), (n, 64))
    model = Joint(candidates="nearest", device="cpu", **proposing).fit(X[:5000], Y[:5000])
    best = model.predict_topk(X[5000:], 1).indices[:, 0]
    near = model._ensemble.known.shortlist(model._ensemble.ask(X[5000:], "cpu").near, 30)
    assert near.multiply(Y[5000:]).nnz < 0.6 * 1000  # most are not told by neighbours
    assert (best == labels[5000:]).mean() > 0.9


def test_small_data_have_none_unless_asked(small: tuple[Dataset, Dataset]) -> None:
    train, _ = small
    assert "trees" not in Joint(candidates="nearest", device="cpu").fit(train.X, train.Y).parts_
