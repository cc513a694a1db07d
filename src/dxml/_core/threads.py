"""Limit the number of threads for small pieces of work.

A step of a small network takes a fraction of a millisecond; waking a second thread for each of its
operations costs more than it saves, and on a busy machine a hundred times more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numba

__all__ = ["FEW_ROWS", "SMALL_STEP", "numba_threads", "threads"]

SMALL_STEP = 4_000_000
"""Multiplications below which an operation is done by one thread."""


FEW_ROWS = 4
"""Points below which a prediction is made by one thread."""


@contextmanager
def numba_threads(count: int | None) -> Iterator[None]:
    """Inside, numba uses at most `count` threads (None: as before)."""
    before = numba.get_num_threads()
    if count is not None:
        numba.set_num_threads(min(count, before))
    try:
        yield
    finally:
        numba.set_num_threads(before)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Inside, numba and torch use at most `count` threads (None: as before)."""
    import torch

    torch_before, numba_before = torch.get_num_threads(), numba.get_num_threads()
    if count is not None:
        torch.set_num_threads(min(count, torch_before))
        numba.set_num_threads(min(count, numba_before))
    try:
        yield
    finally:
        torch.set_num_threads(torch_before)
        numba.set_num_threads(numba_before)
