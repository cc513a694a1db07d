"""ML-CSSP: leverage scores and interpolation against numpy, and columns that must be chosen."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.baselines.ml_cssp import MLCSSP, interpolation, leverage_scores
from dxml.data import make_planted
from dxml.metrics import precision_at_k


@pytest.mark.parametrize("direct", [0, 100])
def test_leverage_is_that_of_the_singular_vectors(direct: int) -> None:
    Y = make_planted(100, 40, 10, random_state=0).Y.astype(np.float64)
    found = leverage_scores(Y, 4, np.random.default_rng(0), direct)
    expected = np.sum(np.linalg.svd(Y.toarray())[2][:4] ** 2, axis=0) / 4
    np.testing.assert_allclose(found, expected, atol=1e-8)
    assert found.sum() == pytest.approx(1)


def test_interpolation_is_the_pseudo_inverse() -> None:
    Y = make_planted(100, 40, 10, random_state=1).Y.astype(np.float64)
    chosen = np.array([1, 4, 7])
    dense = Y.toarray()
    found = interpolation(Y, chosen)
    np.testing.assert_allclose(found, np.linalg.pinv(dense[:, chosen]) @ dense, atol=1e-9)
    np.testing.assert_allclose(found[:, chosen], np.eye(3), atol=1e-9)


def test_copies_of_a_label_follow_it() -> None:
    # Labels 0..2 and a copy of each: three columns explain everything.
    rng = np.random.default_rng(0)
    half = rng.random((200, 3)) < 0.4
    Y = sp.csr_matrix(np.hstack([half, half]))
    D = interpolation(Y.astype(np.float64), np.array([0, 4, 2]))
    np.testing.assert_allclose(D, np.tile(np.eye(3), 2), atol=1e-9)
    X = half.astype(np.float32) + 0.1
    model = MLCSSP(dim=6, scaling="none", alpha=1e-3).fit(X, Y)
    scores = model.decision_function(X, 6).toarray()
    np.testing.assert_allclose(scores[:, :3], scores[:, 3:], atol=1e-3)
    np.testing.assert_allclose(scores[:, :3], half, atol=0.01)


def test_labels_without_points_are_not_chosen() -> None:
    data = make_planted(200, 60, 8, random_state=0)
    Y = sp.hstack([data.Y, sp.csr_matrix((200, 8), dtype=bool)]).tocsr()
    model = MLCSSP(dim=16).fit(data.X, Y)
    assert model.chosen_.tolist() == list(range(8))
    assert model.predict_topk(data.X, 16).indices.max() == 7


def test_the_draw_follows_the_seed() -> None:
    data = make_planted(200, 60, 20, random_state=0)
    first, again, other = (
        MLCSSP(dim=5, random_state=seed).fit(data.X, data.Y).chosen_ for seed in (0, 0, 1)
    )
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()
    assert len(set(first.tolist())) == 5


def test_recovers_planted_labels() -> None:
    data = make_planted(600, 300, 12, random_state=0)
    model = MLCSSP(dim=10).fit(data.X[:500], data.Y[:500])
    assert precision_at_k(data.Y[500:], model.predict_topk(data.X[500:], 1), 1)[0] > 0.7
