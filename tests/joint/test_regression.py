"""Weights of scores: planted ones, against one another, and never below 0 where points are few."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dxml.joint._regression import regress, regress_few

NONE = np.zeros(3)


def drawn(weights: list[float], n: int = 4000) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    rng = np.random.default_rng(0)
    matrix = rng.normal(0, [1, 5, 0.2], (n, 3)).astype(np.float32)
    return matrix, rng.random(n) < 1 / (1 + np.exp(1 - matrix @ np.array(weights)))


def test_both_find_planted_weights_and_agree() -> None:
    matrix, right = drawn([1.5, 0.1, 4.0])
    weights, bias = regress(matrix, right, NONE)
    np.testing.assert_allclose(weights, [1.5, 0.1, 4.0], rtol=0.2)
    assert bias == pytest.approx(-1, abs=0.15)
    few, own = regress_few(matrix, right, NONE, np.zeros(3, bool))
    np.testing.assert_allclose(few, weights, atol=5e-3)
    assert own == pytest.approx(bias, abs=5e-3)


def test_no_weight_of_few_points_is_below_0_unless_it_may_be() -> None:
    matrix, right = drawn([1.5, -0.3, -3.0], 300)
    weights, _ = regress_few(matrix, right, NONE, np.array([False, False, True]))
    assert weights[0] > 1 and weights[1] == 0 and weights[2] < -1.5
    assert regress(matrix, right, NONE)[0][1] < -0.1


def test_the_others_are_weighed_as_if_a_weight_of_0_were_not_there() -> None:
    matrix, right = drawn([1.5, -0.3, 3.0], 300)
    weights, bias = regress_few(matrix, right, NONE, np.zeros(3, bool))
    alone, own = regress_few(matrix[:, [0, 2]], right, NONE[:2], np.zeros(2, bool))
    np.testing.assert_allclose(weights[[0, 2]], alone, atol=1e-3)
    assert bias == pytest.approx(own, abs=1e-3)


@pytest.mark.parametrize("least", [0.0, 100.0])
def test_scores_of_little_spread_weigh_little(least: float) -> None:
    matrix, right = drawn([1.5, 0.1, 4.0], 300)
    for weights, _ in (
        regress(matrix, right, np.array([0, 0, least])),
        regress_few(matrix, right, np.array([0, 0, least]), np.zeros(3, bool)),
    ):
        assert (weights[2] < 0.1) == (least > 0)


def test_a_column_of_one_value_does_no_harm() -> None:
    matrix, right = drawn([1.5, 0.1, 4.0], 300)
    matrix[:, 1] = 7
    for weights, bias in (
        regress(matrix, right, NONE),
        regress_few(matrix, right, NONE, np.zeros(3, bool)),
    ):
        assert np.isfinite([*weights, bias]).all() and weights[0] > 1
