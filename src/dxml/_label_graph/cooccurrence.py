"""Co-occurrence counts: how often two labels are within a window of each other in the walks.

The skip-gram objective depends on the walks only through these counts. They are computed once, or
once per block of labels where all counts would not fit into memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dxml._core.compiled import compiled

__all__ = ["WalkIndex", "context_weights", "count_row", "index_walks"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class WalkIndex:
    """The walks, and for every label its positions in them.

    Parameters
    ----------
    walks : int32 array of shape (n_walks, length)
    indptr : int64 array of shape (n_labels + 1,)
        Label c is at ``positions[indptr[c]:indptr[c + 1]]``.
    positions : int32 or int64 array of shape (n_walks * length,)
        Positions in ``walks.ravel()``, ascending for each label.
    window : int
        Labels at a distance δ ≤ window are each other's context, with the weight
        ``window − δ + 1``: `window` times the chance that word2vec's random shrinking of the
        window leaves the pair in.
    """

    walks: npt.NDArray[np.int32]
    indptr: Ints
    positions: npt.NDArray[np.signedinteger]
    window: int

    @property
    def n_labels(self) -> int:
        """Number of labels, including those that are in no walk."""
        return len(self.indptr) - 1

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The first five arguments of `count_row`."""
        return self.walks.ravel(), self.walks.shape[1], self.indptr, self.positions, self.window

    @property
    def counts(self) -> Ints:
        """How often each label occurs in the walks, shape (n_labels,)."""
        return np.asarray(np.diff(self.indptr))

    def context_totals(self) -> Ints:
        """The row sums of the co-occurrence matrix, without computing it; shape (n_labels,)."""
        by_position = context_weights(self.walks.shape[1], self.window)
        totals: Ints = _sum_by_label(self.walks, by_position, self.n_labels)
        return totals


def context_weights(length: int, window: int) -> Ints:
    """The weight of all contexts of a place in a walk, for each of its places."""
    weights = np.arange(window, 0, -1, dtype=np.int64)[: max(length - 1, 0)]
    sums = np.concatenate([[0], np.cumsum(weights)])
    reach = np.minimum(np.arange(length), len(weights))
    return np.asarray(sums[reach] + sums[reach[::-1]])  # labels before, labels after


def index_walks(walks: npt.NDArray[np.int32], n_labels: int, window: int) -> WalkIndex:
    """Group the positions in the walks by label (a counting sort)."""
    walks = np.ascontiguousarray(walks, dtype=np.int32)
    dtype = np.int32 if walks.size < 2**31 else np.int64
    indptr, positions = _group(walks.ravel(), n_labels, np.empty(walks.size, dtype=dtype))
    return WalkIndex(walks, indptr, positions, window)


@compiled()
def count_row(tokens, length, indptr, positions, window, centre, column_of, counts):  # type: ignore[no-untyped-def]
    """Add the contexts of one label to `counts`, an int64 array; for use inside numba."""
    for i in range(indptr[centre], indptr[centre + 1]):
        here = np.int64(positions[i])
        begin = here // length * length
        for there in range(max(begin, here - window), min(begin + length, here + window + 1)):
            column = column_of[tokens[there]]
            if column >= 0 and there != here:
                counts[column] += window + 1 - abs(there - here)


@compiled()
def _group(tokens, n_labels, positions):  # type: ignore[no-untyped-def]
    indptr = np.zeros(n_labels + 1, np.int64)
    for token in tokens:
        indptr[token + 1] += 1
    for label in range(n_labels):
        indptr[label + 1] += indptr[label]
    free = indptr[:-1].copy()
    for position in range(len(tokens)):
        token = tokens[position]
        positions[free[token]] = position
        free[token] += 1
    return indptr, positions


@compiled()
def _sum_by_label(walks, by_position, n_labels):  # type: ignore[no-untyped-def]
    totals = np.zeros(n_labels, np.int64)
    for walk in range(walks.shape[0]):
        for position in range(walks.shape[1]):
            totals[walks[walk, position]] += by_position[position]
    return totals
