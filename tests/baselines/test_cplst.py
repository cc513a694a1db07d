"""CPLST against the dense formulas of its paper, by both ways to its eigenvectors."""

from __future__ import annotations

import numpy as np
import pytest

from dxml.baselines._gram import Gram
from dxml.baselines.cplst import CPLST, conditional_directions
from dxml.data import Dataset, make_planted
from dxml.metrics import precision_at_k


@pytest.fixture(scope="module")
def data() -> Dataset:
    return make_planted(300, 60, 12, random_state=0)


def dense_parts(data: Dataset, alpha: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centred X and Y, and the hat matrix of ridge regression."""
    X, Y = data.X.toarray().astype(np.float64), data.Y.toarray().astype(np.float64)
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    return X, Y, X @ np.linalg.solve(X.T @ X + alpha * np.eye(X.shape[1]), X.T)


@pytest.mark.parametrize("direct", [0, 100])
def test_directions_are_the_leading_eigenvectors(data: Dataset, direct: int) -> None:
    _, Z, P = dense_parts(data, 0.5)
    values, vectors = np.linalg.eigh(Z.T @ P @ Z)
    rng = np.random.default_rng(0)
    V = conditional_directions(Gram(data.X), data.Y.astype(np.float64), 4, 0.5, rng, direct)
    assert V.shape == (12, 4)
    np.testing.assert_allclose(V.T @ V, np.eye(4), atol=1e-6)
    np.testing.assert_allclose(np.diag(V.T @ Z.T @ P @ Z @ V), values[::-1][:4], rtol=1e-4)
    np.testing.assert_allclose(V @ V.T, vectors[:, -4:] @ vectors[:, -4:].T, atol=1e-2)


def test_prediction_is_the_formula(data: Dataset) -> None:
    alpha, dim = 0.5, 4
    X, Z, P = dense_parts(data, alpha)
    V = np.linalg.eigh(Z.T @ P @ Z)[1][:, -dim:]
    expected = P @ Z @ V @ V.T + data.Y.toarray().mean(axis=0)
    model = CPLST(dim=dim, alpha=alpha, scaling="none").fit(data.X, data.Y)
    found = model.decision_function(data.X, 12).toarray()
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert X.shape == (300, 60)


def test_all_directions_are_ridge_regression(data: Dataset) -> None:
    _, Z, P = dense_parts(data, 2.0)
    model = CPLST(dim=50, alpha=2.0, scaling="none").fit(data.X, data.Y)
    found = model.decision_function(data.X, 12).toarray()
    np.testing.assert_allclose(found, P @ Z + data.Y.toarray().mean(axis=0), atol=1e-4)


def test_its_directions_predict_better_than_those_of_the_labels_alone(data: Dataset) -> None:
    # ‖Z − P Z V Vᵀ‖² is what CPLST minimises; PLST's singular vectors cannot do better.
    _, Z, P = dense_parts(data, 0.5)
    rng = np.random.default_rng(0)
    V = conditional_directions(Gram(data.X), data.Y.astype(np.float64), 3, 0.5, rng)
    plain = np.linalg.svd(Z)[2][:3].T

    def explained(basis: np.ndarray) -> float:
        return float(np.trace(basis.T @ Z.T @ P @ Z @ basis))

    assert explained(V) >= explained(plain)


def test_recovers_planted_labels() -> None:
    data = make_planted(600, 300, 12, random_state=0)
    model = CPLST(dim=8).fit(data.X[:500], data.Y[:500])
    assert precision_at_k(data.Y[500:], model.predict_topk(data.X[500:], 1), 1)[0] > 0.75
