"""Features that no known point has: by hand, and what a model says of points that have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.holes import NO_HOLES
from dxml.data import Dataset
from dxml.joint import Joint
from dxml.joint._fitting import _as_seen
from dxml.joint._held_out import Fold
from dxml.joint._known_features import count_features, features_of, only_known
from dxml.joint._points import Known
from dxml.joint._stored_points import StoredPoints
from dxml.methods import load_model

ROWS = sp.csr_matrix(np.array([[1, 2, 0, 0], [0, 1, 0, 0], [0, 3, 0, 4]], np.float32))
SHAPES: list[dict[str, Any]] = [
    {"candidates": "nearest", "width": 0},
    {"candidates": "all", "width": 0},
    {"candidates": "all", "width": 16, "epochs": 2},
]


@pytest.mark.parametrize("stored", [False, True])
def test_points_are_counted_by_feature(stored: bool) -> None:
    held = StoredPoints.of(ROWS, np.ones(4, bool), "float16") if stored else ROWS
    assert count_features(held, NO_HOLES).tolist() == [1, 3, 0, 1]
    assert count_features(held, NO_HOLES.add(np.array([0, 2]))).tolist() == [0, 1, 0, 0]
    assert features_of(ROWS, np.array([0, 2])).tolist() == [1, 2, 0, 1]


def test_rows_lose_the_features_that_no_point_has() -> None:
    found = only_known(ROWS, np.array([0, 1, 1, 2]))
    assert found.toarray().tolist() == [[0, 2, 0, 0], [0, 1, 0, 0], [0, 3, 0, 4]]
    assert only_known(ROWS, np.ones(4, int)) is ROWS


def test_counts_follow_what_is_learnt_and_dropped(known: Known) -> None:
    def recounted(now: Known) -> list[int]:
        return count_features(now.held, now.holes).tolist()

    new = sp.csr_matrix((np.ones(2, np.float32), [0, 41], [0, 2]), (1, 42))
    label = sp.csr_matrix(([True], [0], [0, 1]), (1, 8))
    assert known.feature_counts.sum() == known.points.nnz
    wider = known.widen(42)
    assert wider.feature_counts[40:].tolist() == [0, 0]
    grown = wider.add(new, label)
    assert grown.feature_counts[41] == 1
    assert grown.feature_counts.tolist() == recounted(grown)
    corrected = grown.unlabel(30, 0)
    assert corrected.feature_counts.tolist() == recounted(corrected)
    fewer = grown.hide(np.array([3, 30]))
    assert fewer is not None and fewer.feature_counts[41] == 0
    assert fewer.feature_counts.tolist() == recounted(fewer)
    assert fewer.without_holes.feature_counts.tolist() == recounted(fewer)


@pytest.mark.parametrize("settings", SHAPES, ids=["nearest", "all", "wide"])
def test_a_feature_that_no_known_point_has_changes_no_answer(
    settings: dict[str, Any], small: tuple[Dataset, Dataset], tmp_path: Any
) -> None:
    """Until a point is learnt that has it, and again when that one is forgotten."""
    train, test = small

    def with_feature(X: sp.csr_matrix, value: float) -> sp.csr_matrix:
        more = sp.csr_matrix(np.full((X.shape[0], 1), value, np.float32))
        return sp.hstack([X, more], format="csr")

    model = Joint(device="cpu", **settings).fit(with_feature(train.X, 0.0), train.Y)
    plain, more = with_feature(test.X, 0.0), with_feature(test.X, 3.0)
    before = model.predict_topk(plain)

    def same(asked: Joint) -> bool:
        found = asked.predict_topk(more)
        return bool(
            (found.indices == before.indices).all() and np.allclose(found.scores, before.scores)
        )

    assert same(model)
    model.save(tmp_path / "m")
    opened = load_model(tmp_path / "m")
    assert isinstance(opened, Joint) and same(opened)
    scores = [model.score_labels(X, [0, 1]) for X in (plain, more)]
    assert np.allclose(*scores)
    model.partial_fit(more[:1], test.Y[:1])
    assert not same(model)
    alone = model.forget([model.n_samples_ - 1]).predict_topk(plain)
    again = model.predict_topk(more)
    assert (again.indices == alone.indices).all() and np.allclose(again.scores, alone.scores)


def test_rows_that_are_not_scaled_stay_as_long_as_they_are() -> None:
    held = np.array([False, True, True])
    fold = Fold(held, held)
    assert _as_seen(ROWS, fold, unit_rows=False).toarray().tolist() == [[0, 1, 0, 0], [0, 3, 0, 0]]
    assert _as_seen(ROWS, fold).toarray().tolist() == [[0, 1, 0, 0], [0, 1, 0, 0]]


def test_probabilities_hold_where_new_points_have_many_unknown_features() -> None:
    """Two words of a text tell its label, each three times of five; six are of no other text.

    Where new texts kept theirs, the first labels had 26 % and 67 % of them were right.
    """
    rng = np.random.default_rng(0)
    n, known = 900, 300
    label, told = rng.integers(0, 12, n), rng.random((n, 2)) < 0.6
    signs = np.where(told, label[:, None], rng.integers(0, 12, (n, 2))) + 12 * np.arange(2)
    columns = np.concatenate([signs, 24 + np.arange(6 * n).reshape(n, 6)], axis=1)
    X = sp.csr_matrix((np.ones(8 * n, np.float32), columns.ravel(), 8 * np.arange(n + 1)))
    Y = sp.csr_matrix(np.eye(12, dtype=bool)[label])
    model = Joint(device="cpu").fit(X[:known], Y[:known])
    ranking = model.predict_topk(X[known:], 1)
    right = np.mean(ranking.indices[:, 0] == label[known:])
    assert abs(ranking.scores.mean() - right) < 0.06
