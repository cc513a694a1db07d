"""Lines from a score to a probability: by hand, and as planted."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.joint import _calibration as module
from dxml.joint._calibration import LEAST_RANKED, RANKS, calibrate, lines_by_rank, logistic_line


def drawn(n: int, slope: float, place: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, n)
    return z.astype(np.float32), rng.random(n) < 1 / (1 + np.exp(-slope * z - place))


def test_a_logistic_line_by_hand() -> None:
    knots, shares = logistic_line(2.0, 1.0)
    assert np.interp(-0.5, knots, shares) == pytest.approx(0.5)
    assert np.interp(0.5, knots, shares) == pytest.approx(1 / (1 + np.exp(-2)), abs=0.003)
    assert (np.diff(knots) > 0).all() and (np.diff(shares) > 0).all()


@pytest.mark.parametrize("n", [1900, 60_000])
def test_a_planted_line_is_found(n: int) -> None:
    """By a logistic line where there are few pairs, and by bins where there are many."""
    line = calibrate(*drawn(n, 0.5, -1.0))
    z = np.linspace(-3, 3, 13)
    expected = 1 / (1 + np.exp(-0.5 * z + 1))
    np.testing.assert_allclose(np.interp(z, *line), expected, atol=0.05)


@pytest.mark.parametrize("right", [False, True])
def test_a_few_pairs_that_are_all_alike_do_not_make_sure(right: bool) -> None:
    z = np.zeros(5, np.float32)
    found = float(np.interp(0.0, *calibrate(z, np.full(5, right))))
    assert 0.75 < (found if right else 1 - found) < 0.98


def test_scores_that_mislead_make_a_line_that_hardly_rises() -> None:
    z, right = drawn(1000, -2.0, 0.0)
    line = calibrate(z, right)
    assert np.interp(3.0, *line) - np.interp(-3.0, *line) < 0.1
    assert (np.diff(line[1]) > 0).all()


@pytest.mark.parametrize("n", [LEAST_RANKED - 1, LEAST_RANKED])
def test_each_group_of_ranks_has_its_line(n: int) -> None:
    """Only the first of ten labels is ever right, whatever its score."""
    rng = np.random.default_rng(0)
    mixed = np.sort(rng.normal(size=(n, 10)), axis=1)[:, ::-1].astype(np.float32)
    right = np.zeros((n, 10), dtype=bool)
    right[:, 0] = True
    pairs = sp.csr_matrix(np.ones((n, 10), dtype=bool))
    every = np.ones(10 * n, dtype=bool)
    lines = lines_by_rank(pairs, mixed.ravel(), right.ravel(), every)
    assert len(lines) == len(RANKS)
    starts = (0, *RANKS)
    first, *others = (
        np.interp(mixed[:, start:stop], *line).mean()
        for start, stop, line in zip(starts, RANKS, lines, strict=False)
    )
    assert first > 0.95 and max(others) < 0.05
    assert lines_by_rank(pairs, mixed.ravel(), right.ravel(), ~every) == ()


def test_few_points_of_a_rank_are_helped_out_by_the_other_ranks() -> None:
    """Fifteen points, all of whose labels are wrong or right by a coin of one probability."""
    rng, gaps = np.random.default_rng(0), []
    for _ in range(40):
        mixed = np.zeros((15, 5), np.float32)
        right = rng.random((15, 5)) < 0.3
        pairs = sp.csr_matrix(np.ones((15, 5), bool))
        lines = lines_by_rank(pairs, mixed.ravel(), right.ravel(), np.ones(75, bool))
        together = np.interp(0.0, *lines[0]) - 0.3
        alone = np.interp(0.0, *module._smooth([mixed[:, 0]], [right[:, 0]])[0]) - 0.3
        gaps.append((abs(together), abs(alone)))
    together, alone = np.mean(gaps, axis=0)
    assert together < 0.9 * alone


def test_many_points_of_a_rank_are_not() -> None:
    """Of the first ranks all are right, of the others none, and there are 400 of each."""
    right = np.tile([True, False], (400, 1))
    pairs = sp.csr_matrix(np.ones((400, 2), bool))
    mixed = np.zeros(800, np.float32)
    first, second = lines_by_rank(pairs, mixed, right.ravel(), np.ones(800, bool))
    assert np.interp(0.0, *first) > 0.95 and np.interp(0.0, *second) < 0.05


def test_bins_by_hand() -> None:
    """Two bins: of the lower scores one of two is right, of the higher both."""
    knots, shares = module._bins(np.float32([1, 2, 3, 4]), np.array([True, False, True, True]), 2)
    assert knots[1:-1].tolist() == [1.5, 3.5] and shares[1:-1].tolist() == [0.5, 1.0]
