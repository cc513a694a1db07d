"""Independent blocks of work, one after the other here, or on a cluster where one is open.

A block's function depends on nothing but its arguments, so that it may be run again after a machine
failed. Results come in the order of the blocks, and so do not depend on where they were computed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain, islice
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

__all__ = [
    "BLOCK_BYTES",
    "Runner",
    "cluster_cores",
    "cut",
    "cut_rows",
    "run_blocks",
    "run_each",
    "run_pairs",
    "running_on",
    "spread",
]

BLOCK_BYTES = 1 << 24
"""Of a block, and of its result: the most that is sent to a cluster, or comes back, in one piece.
An item that is larger than that is a block of its own."""

Item = TypeVar("Item")
Block = TypeVar("Block")
Result = TypeVar("Result")


class Runner(Protocol):
    """Runs blocks somewhere else."""

    @property
    def n_cores(self) -> int:
        """Cores there."""

    def run(
        self,
        function: Callable[[Any, Any], Result],
        shared: tuple[Any, ...],
        blocks: Iterable[Any],
    ) -> Iterator[Result]:
        """As `run_blocks`."""

    def run_each(
        self, make: Callable[[], Callable[[Item], Result]], items: Sequence[Item]
    ) -> Iterator[Result]:
        """As `run_each`."""


_runner: ContextVar[Runner | None] = ContextVar("_runner", default=None)


@contextmanager
def running_on(runner: Runner | None) -> Iterator[None]:
    """Inside, `run_blocks` gives its blocks to `runner`; None: they are run here."""
    before = _runner.set(runner)
    try:
        yield
    finally:
        _runner.reset(before)


def spread() -> bool:
    """Whether blocks go to a cluster."""
    return _runner.get() is not None


def cluster_cores() -> int:
    """Cores of the cluster that blocks go to; 0 where they are run here."""
    runner = _runner.get()
    return 0 if runner is None else runner.n_cores


def run_blocks(
    function: Callable[[Any, Block], Result],
    shared: tuple[Any, ...],
    blocks: Iterable[Block],
) -> Iterator[Result]:
    """The result of each block, in the order of the blocks; one block alone is run here.

    Parameters
    ----------
    function : function of `shared` and a block
        It must change neither: on a cluster their arrays cannot be written to.
    shared : tuple
        What all blocks need. An array or another object in it is sent once as long as it lives, so
        nobody may change it.
    blocks : iterable
        They are made when their turn comes, and no larger than `BLOCK_BYTES`.

    >>> list(run_blocks(lambda shared, block: shared[0] * block, (10,), [1, 2, 3]))
    [10, 20, 30]
    """
    runner = _runner.get()
    if runner is None:
        return (function(shared, block) for block in blocks)
    waiting = iter(blocks)
    first = list(islice(waiting, 2))
    if len(first) < 2:
        return (function(shared, block) for block in first)
    return runner.run(function, shared, chain(first, waiting))


def run_pairs(
    function: Callable[[Any, Block], Result],
    shared: tuple[Any, ...],
    items: Iterable[Item],
    block_of: Callable[[Item], Block],
) -> Iterator[tuple[Item, Result]]:
    """Each item with the result of its block, as `run_blocks` gives it.

    >>> list(run_pairs(lambda _, block: block + 1, (), ["2", "5"], int))
    [('2', 3), ('5', 6)]
    """
    waiting: deque[Item] = deque()

    def blocks() -> Iterator[Block]:
        for item in items:
            waiting.append(item)
            yield block_of(item)

    return ((waiting.popleft(), result) for result in run_blocks(function, shared, blocks()))


def run_each(
    make: Callable[[], Callable[[Item], Result]], items: Sequence[Item]
) -> Iterator[Result]:
    """The result of each item, in their order, by a function that every process makes once.

    For items that are small themselves, such as the names of files. The function may be called
    again for an item whose machine died, so what it leaves behind must be the same then.

    >>> list(run_each(lambda: str.upper, ["a", "b"]))
    ['A', 'B']
    """
    runner = _runner.get()
    if runner is None or len(items) < 2:
        function = make() if items else None
        return (function(item) for item in items if function is not None)
    return runner.run_each(make, items)


def cut(
    sizes: npt.NDArray[np.integer[Any]], most: int = BLOCK_BYTES, count: int | None = None
) -> Iterator[slice]:
    """Runs of items whose sizes add up to at most `most`, and of at most `count` items.

    >>> list(cut(np.array([3, 3, 3, 9, 1]), 6))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None), slice(4, 5, None)]
    """
    ends = np.cumsum(sizes, dtype=np.int64)
    start, before = 0, 0
    while start < len(ends):
        stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        stop = stop if count is None else min(stop, start + count)
        yield slice(start, stop)
        start, before = stop, int(ends[stop - 1])


def cut_rows(X: sp.csr_matrix, count: int, more: int = 0) -> Iterator[sp.csr_matrix]:
    """X in blocks of at most `count` rows, with `more` bytes beside each row; X itself where that
    is one block.

    >>> [rows.shape[0] for rows in cut_rows(sp.eye(5, format="csr"), 2)]
    [2, 2, 1]
    """
    value = X.data.itemsize + X.indices.itemsize
    runs = list(cut(np.diff(X.indptr).astype(np.int64) * value + more, count=count))
    yield from [X] if len(runs) < 2 else (X[rows] for rows in runs)
