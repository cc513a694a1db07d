"""Limit the number of threads for small pieces of work.

A step of a small network takes a fraction of a millisecond; waking a second thread for each of its
operations costs more than it saves, and on a busy machine a hundred times more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["FEW_ROWS", "SMALL_STEP", "blas_threads", "n_threads", "numba_threads", "threads"]

SMALL_STEP = 4_000_000
"""Multiplications below which an operation is done by one thread."""


FEW_ROWS = 64
"""Points below which a prediction is made by one thread."""


def n_threads() -> int:
    """Threads that compiled code may use."""
    import numba

    return int(numba.get_num_threads())


def blas_threads() -> int:
    """Threads of dense linear algebra, which adds in another order with another number of them."""
    from threadpoolctl import threadpool_info

    found = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(found, default=1)


@contextmanager
def numba_threads(count: int | None) -> Iterator[None]:
    """Inside, numba uses at most `count` threads (None: as before, and numba is not imported)."""
    if count is None:
        yield
        return
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(min(count, before))
    try:
        yield
    finally:
        numba.set_num_threads(before)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Inside, numba and torch use at most `count` threads (None: as before)."""
    import torch

    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(min(count, before))
    try:
        with numba_threads(count):
            yield
    finally:
        torch.set_num_threads(before)
