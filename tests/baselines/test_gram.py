"""Ridge regression against scikit-learn's and against direct solutions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from dxml.baselines._gram import ROWS_AT_A_TIME, Gram, conjugate_gradient, ridge


@pytest.fixture
def X() -> sp.csr_matrix:
    return sp.random(60, 12, 0.4, "csr", np.float32, np.random.default_rng(0))


@pytest.fixture
def T() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((60, 4))


@pytest.mark.parametrize("direct", [0, 100])
def test_gram_is_that_of_centred_features(X: sp.csr_matrix, T: np.ndarray, direct: int) -> None:
    centred = X.toarray().astype(np.float64)
    centred -= centred.mean(axis=0)
    gram = Gram(X, direct)
    S = np.random.default_rng(2).standard_normal((12, 3))
    np.testing.assert_allclose(gram @ S, centred.T @ centred @ S, atol=1e-5)
    np.testing.assert_allclose(gram.project(S), centred @ S, atol=1e-5)
    np.testing.assert_allclose(gram.correlate(T), centred.T @ T, atol=1e-5)
    labels = sp.csr_matrix(T > 0.5)
    np.testing.assert_allclose(gram.correlate(labels), centred.T @ (T > 0.5), atol=1e-5)


@pytest.mark.parametrize("direct", [0, 100])
def test_ridge_is_scikit_learns(X: sp.csr_matrix, T: np.ndarray, direct: int) -> None:
    ours = ridge(Gram(X, direct), T, 0.5)
    theirs = Ridge(alpha=0.5).fit(X.toarray().astype(np.float64), T)
    np.testing.assert_allclose(ours.weights, theirs.coef_.T, atol=1e-4)
    np.testing.assert_allclose(ours.bias, theirs.intercept_, atol=1e-4)
    np.testing.assert_allclose(ours.apply(X), theirs.predict(X.toarray()), atol=1e-4)


@pytest.mark.parametrize("sparse", [False, True])
def test_with_few_points_ridge_is_solved_for_them(T: np.ndarray, sparse: bool) -> None:
    X = sp.random(60, 200, 0.1, "csr", np.float32, np.random.default_rng(0))
    targets = sp.csr_matrix(T > 0.5) if sparse else T
    gram = Gram(X, direct=100)
    assert gram.dense is None and gram.few_points
    ours = ridge(gram, targets, 0.5)
    dense = targets.toarray().astype(np.float64) if sparse else T
    theirs = Ridge(alpha=0.5).fit(X.toarray().astype(np.float64), dense)
    np.testing.assert_allclose(ours.weights, theirs.coef_.T, atol=1e-5)
    np.testing.assert_allclose(ours.bias, theirs.intercept_, atol=1e-5)
    np.testing.assert_allclose(ridge(Gram(X, 0), targets, 0.5).weights, ours.weights, atol=1e-4)


def test_sums_over_many_rows_are_those_of_one() -> None:
    n = ROWS_AT_A_TIME + 500
    X = sp.random(n, n + 3, 0.001, "csr", np.float32, np.random.default_rng(0))
    T = np.random.default_rng(1).standard_normal((n, 2))
    centred = X.astype(np.float64)
    mean = np.asarray(centred.mean(axis=0)).ravel()
    gram = Gram(X, direct=0)
    expected = centred.T @ T - np.outer(mean, T.sum(axis=0))
    np.testing.assert_allclose(gram.correlate(T), expected, atol=1e-4)
    np.testing.assert_allclose(
        gram.project(expected), centred @ expected - mean @ expected, atol=1e-3
    )
    W = ridge(gram, T, 0.3).weights.astype(np.float64)
    np.testing.assert_allclose(gram @ W + 0.3 * W, expected, atol=1e-3)


def test_the_penalty_may_change_between_solutions(X: sp.csr_matrix, T: np.ndarray) -> None:
    gram = Gram(X)
    weak, strong = ridge(gram, T, 0.5), ridge(gram, T, 50.0)
    np.testing.assert_array_equal(strong.weights, ridge(Gram(X), T, 50.0).weights)
    assert np.abs(strong.weights).sum() < np.abs(weak.weights).sum()


def test_conjugate_gradient_solves_each_column_with_its_own_curvature(X: sp.csr_matrix) -> None:
    gram = Gram(X)
    rng = np.random.default_rng(3)
    B = rng.standard_normal((12, 3))
    curvature = np.array([0.0, 1.0, 30.0])
    found = conjugate_gradient(gram, B, curvature, 0.7, rng.standard_normal((12, 3)), 100)
    assert gram.dense is not None
    for i, c in enumerate(curvature):
        expected = np.linalg.solve(c * gram.dense + 0.7 * np.eye(12), B[:, i])
        np.testing.assert_allclose(found[:, i], expected, atol=1e-4)
