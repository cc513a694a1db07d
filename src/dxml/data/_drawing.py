"""Distinct labels or words of a point, drawn one by one inside compiled loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dxml._core.compiled import compiled

__all__ = ["MAX_DRAWS", "taken", "taken_once"]

MAX_DRAWS = 20  # in vain, before one is drawn uniformly


@compiled()
def taken(number: int, row: int, seen: NDArray[np.int64], out: NDArray[np.int32], n: int) -> bool:
    """Write a number to out[n] unless the row has it; `seen` has the last row with each number."""
    if seen[number] == row:
        return False
    seen[number] = row
    out[n] = number
    return True


@compiled()
def taken_once(number: int, draws: NDArray[np.int32], out: NDArray[np.int32], n: int) -> bool:
    """Count a draw of a number, and write the number to out[n] where it is its first."""
    draws[number] += 1
    if draws[number] > 1:
        return False
    out[n] = number
    return True
