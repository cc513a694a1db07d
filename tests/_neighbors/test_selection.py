"""The largest products: against a sort of all of them, with ties, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dxml._neighbors.selection import BLOCK, select_largest, select_reached


def selected(totals: np.ndarray, units: np.ndarray, k: int) -> tuple[list[int], list[float]]:
    ids, values = np.full(k, -1, np.int32), np.zeros(k, np.float32)
    select_largest(totals.astype(np.float32), units.astype(np.float32), ids, values)
    return ids.tolist(), values.tolist()


def test_by_hand() -> None:
    totals, units = np.array([1, 4, -3, 0, 2]), np.array([1, 0.5, 1, 1, 2])
    assert selected(totals, units, 2) == ([4, 1], [4, 2])
    assert selected(totals, units, 5) == ([4, 1, 0, -1, -1], [4, 2, 1, 0, 0])
    assert selected(totals, units, 0) == ([], [])
    assert selected(totals[:0], units[:0], 2) == ([-1, -1], [0, 0])


@pytest.mark.parametrize("levels", [3, 40, 1 << 20])  # with few levels most numbers are ties
@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, 5 * BLOCK + 7])
def test_as_a_stable_sort(n: int, levels: int) -> None:
    rng = np.random.default_rng(n * levels)
    totals = (rng.integers(-levels, levels, n) / levels).astype(np.float32)
    units = rng.choice(np.float32([0, 0.5, 1]), n)
    products = totals * units
    order = np.argsort(-products, kind="stable")
    order = order[products[order] > 0]
    for k in (1, 2, 7, 100, n, n + 3):
        best = order[:k].tolist()
        ids, values = selected(totals, units, k)
        assert ids == best + [-1] * (k - len(best))
        assert values == products[best].tolist() + [0.0] * (k - len(best))


@pytest.mark.parametrize("levels", [3, 1 << 20])
def test_of_the_places_reached_as_of_all(levels: int) -> None:
    rng = np.random.default_rng(levels)
    totals = np.zeros(5 * BLOCK, np.float32)
    places = rng.permutation(len(totals))[:150].astype(np.int32)
    totals[places] = rng.integers(-levels, levels, 150) / levels
    units = rng.choice(np.float32([0, 0.5, 1]), len(totals))
    for k in (0, 1, 7, 100, 200):
        ids, values, left = np.full(k, -1, np.int32), np.zeros(k, np.float32), totals.copy()
        select_reached(left, units, np.concatenate([places, places[:20]]), ids, values)
        assert (ids.tolist(), values.tolist()) == selected(totals, units, k)
        assert not left.any()  # ready for the next sums


def test_numbers_that_rise_and_that_fall() -> None:
    rising, ones = np.arange(1, 1001), np.ones(1000)
    assert selected(rising, ones, 3)[0] == [999, 998, 997]
    assert selected(rising[::-1], ones, 3)[0] == [0, 1, 2]
