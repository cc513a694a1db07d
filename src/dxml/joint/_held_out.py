"""Which points are held out, so that the parts can be weighed on points they have not seen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dxml._core.random import spawn

__all__ = ["MOST_FOLDS", "hold_out"]

MOST_HELD = 2_000  # held-out points; more do not change the choice
MOST_FOLDS = 5
LEAST_POINTS = 20  # with fewer, nothing is held out and the default weights hold

Mask = npt.NDArray[np.bool_]


def hold_out(
    n: int, fraction: float, random_state: int | None, most_folds: int = MOST_FOLDS
) -> list[Mask]:
    """Which of n points are held out, by fold.

    One fold where the fraction makes `MOST_HELD` points, more where it makes fewer, and none where
    there are too few points.
    """
    if n < LEAST_POINTS:
        return []
    size = min(MOST_HELD, max(1, int(n * fraction)))
    order = spawn(random_state, "validation")["validation"].permutation(n)
    starts = range(0, min(n, MOST_HELD, most_folds * size) - size + 1, size)
    return [np.isin(np.arange(n), order[start : start + size]) for start in starts]
