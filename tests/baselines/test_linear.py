"""The shared solvers against direct solutions, and the rankings against dense products."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from dxml._core.arrays import Arrays
from dxml.baselines._linear import (
    Gram,
    LinearMap,
    conjugate_gradient,
    label_offset,
    logistic,
    rank_product,
    rank_sparse,
    ridge,
)
from dxml.topk import tie_order, topk_from_dense


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


def test_logistic_regression_by_hand() -> None:
    # One feature x = ±1 with its sign as label: b = 0, and w solves w = C n / (1 + exp(w)), n = 4.
    X = sp.csr_matrix(np.array([[1.0], [-1.0]] * 2))
    weights, bias = logistic(X, np.array([True, False] * 2), 1.0)
    assert np.isclose(weights[0] * (1 + np.exp(weights[0])), 4, rtol=1e-2)
    assert abs(bias) < 1e-2


def test_rankings_are_those_of_the_dense_product() -> None:
    rng = np.random.default_rng(4)
    codes = rng.standard_normal((7, 5)).astype(np.float32)
    decoder = rng.standard_normal((5, 9)).astype(np.float32)
    offset = label_offset(rng.standard_normal(9), np.array([1, 1, 0, 2, 3, 1, 1, 1, 1]))
    place = tie_order(np.ones(9))
    expected = topk_from_dense(codes @ decoder + offset, 9, place)
    for found in (
        rank_product(codes, decoder, offset, 9, place),
        rank_sparse(sp.csr_matrix(codes), sp.csr_matrix(decoder), offset, 9, place),
    ):
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)
    assert (expected.indices[:, -1] == -1).all()
    assert not (expected.indices == 2).any()


def test_a_map_is_stored_and_restored(X: sp.csr_matrix, T: np.ndarray) -> None:
    first = ridge(Gram(X), T, 1.0)
    again = LinearMap.from_arrays(Arrays(first.arrays()), len(first.weights))
    np.testing.assert_array_equal(first.apply(X), again.apply(X))
