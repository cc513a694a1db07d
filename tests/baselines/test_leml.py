"""LEML: its two half-steps against direct solutions, its descent, and its known limit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.baselines._gram import Gram
from dxml.baselines.leml import LEML, _objective, _solve_labels, _turn
from dxml.data import Dataset, make_planted
from dxml.metrics import precision_at_k


@pytest.fixture(scope="module")
def data() -> Dataset:
    return make_planted(300, 60, 12, random_state=0)


def centred(matrix: sp.csr_matrix) -> np.ndarray:
    dense = matrix.toarray().astype(np.float64)
    return dense - dense.mean(axis=0)


def test_features_step_is_the_least_squares_solution(data: Dataset) -> None:
    rng = np.random.default_rng(0)
    H = rng.standard_normal((12, 4))
    Y = data.Y.astype(np.float64)
    W, turned = _turn(Gram(data.X), Y, np.zeros((60, 4)), H, alpha=0.7, steps=500)
    C = centred(data.X)
    # vec form: (HᵀH ⊗ CᵀC + λ I) vec(W) = vec(Cᵀ Y H), columns stacked
    system = np.kron(turned.T @ turned, C.T @ C) + 0.7 * np.eye(240)
    expected = np.linalg.solve(system, (C.T @ centred(data.Y) @ turned).ravel(order="F"))
    np.testing.assert_allclose(W.ravel(order="F"), expected, atol=1e-2 * np.abs(expected).max())
    np.testing.assert_allclose(turned @ turned.T, H @ H.T, atol=1e-9)


def test_labels_step_is_the_least_squares_solution(data: Dataset) -> None:
    A = np.random.default_rng(0).standard_normal((300, 4))
    A -= A.mean(axis=0)
    found = _solve_labels(data.Y.T @ A, A, 0.7)
    stacked = np.vstack([A, np.sqrt(0.7) * np.eye(4)])
    targets = np.vstack([centred(data.Y), np.zeros((4, 12))])
    np.testing.assert_allclose(found.T, np.linalg.lstsq(stacked, targets, rcond=None)[0])


def test_objective_is_that_of_the_dense_matrices(data: Dataset) -> None:
    rng = np.random.default_rng(0)
    W, H = rng.standard_normal((60, 3)), rng.standard_normal((12, 3))
    A, Y = centred(data.X) @ W, centred(data.Y)
    dense = 0.5 * (np.sum((Y - A @ H.T) ** 2) + 0.3 * (np.sum(W**2) + np.sum(H**2)))
    found = _objective(float(np.sum(Y**2)), data.Y.T @ A, A, W, H, 0.3)
    assert found == pytest.approx(dense, rel=1e-9)


def test_every_turn_lowers_the_objective(data: Dataset) -> None:
    history = LEML(rank=5, max_iter=15, tol=0).fit(data.X, data.Y).history_
    assert len(history) == 15
    assert (np.diff(history) < 1e-9).all()


def test_it_stops_when_nothing_is_gained(data: Dataset) -> None:
    assert len(LEML(rank=5, max_iter=50, tol=0.5).fit(data.X, data.Y).history_) < 5


def test_full_rank_reaches_the_trace_norm_optimum(data: Dataset) -> None:
    # With CᵀC = I the answer is known: singular values of CᵀY, each lowered by λ.
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.standard_normal((300, 20)) @ np.eye(20))
    basis -= basis.mean(axis=0)
    basis, _ = np.linalg.qr(basis)
    X = basis.astype(np.float32)
    model = LEML(alpha=0.5, max_iter=500, tol=0, cg_steps=50, scaling="none")
    model.fit(X, data.Y)
    u, s, vt = np.linalg.svd(X.astype(np.float64).T @ centred(data.Y), full_matrices=False)
    expected = (u * np.maximum(s - 0.5, 0)) @ vt
    found = model.scores_.encoder.weights @ model.scores_.decoder
    np.testing.assert_allclose(found, expected, atol=1e-2)


@pytest.mark.parametrize("rank", [None, 6])
def test_recovers_planted_labels(rank: int | None) -> None:
    data = make_planted(600, 300, 12, random_state=0)
    model = LEML(rank=rank).fit(data.X[:500], data.Y[:500])
    assert model.scores_.encoder.weights.shape[1] == (rank or 12)
    assert precision_at_k(data.Y[500:], model.predict_topk(data.X[500:], 1), 1)[0] > 0.75
