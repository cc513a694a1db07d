"""Maps, logistic regression, and rankings against dense products."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml.baselines._linear import (
    LABELS_AT_A_TIME,
    LinearMap,
    label_offset,
    logistic,
    rank_product,
    rank_sparse,
)
from dxml.topk import tie_order, topk_from_dense


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


def test_more_labels_than_a_core_takes_at_a_time() -> None:
    rng = np.random.default_rng(5)
    n_labels = 2 * LABELS_AT_A_TIME + 7
    codes = rng.integers(-2, 3, (5, 3)).astype(np.float32)  # whole numbers: many ties, no rounding
    decoder = rng.integers(-2, 3, (3, n_labels)).astype(np.float32)
    offset = label_offset(rng.integers(0, 2, n_labels), rng.integers(0, 3, n_labels))
    place = tie_order(rng.integers(1, 4, n_labels))
    expected = topk_from_dense(codes @ decoder + offset, 40, place)
    found = rank_product(codes, decoder, offset, 40, place)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_a_map_is_stored_and_restored() -> None:
    rng = np.random.default_rng(6)
    X = sp.random(60, 12, 0.4, "csr", np.float32, rng)
    weights, bias = rng.standard_normal((12, 4)), rng.standard_normal(4)
    first = LinearMap(weights.astype(np.float32), bias.astype(np.float32))
    np.testing.assert_allclose(first.apply(X), X @ weights + bias, atol=1e-5)
    again = LinearMap.from_arrays(Arrays(first.arrays()), len(first.weights))
    np.testing.assert_array_equal(first.apply(X), again.apply(X))
