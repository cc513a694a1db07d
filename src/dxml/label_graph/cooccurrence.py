"""How often two labels stand near each other in the walks.

Skip-gram looks at the walks only through these counts, so they are taken once (or once a block of
labels, where all of them together would not fit) in place of one gradient step for every pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["WalkIndex", "context_counts", "count_row", "index_walks"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class WalkIndex:
    """The walks, and for every label the places where it stands.

    Parameters
    ----------
    walks : int32 array of shape (n_walks, length)
    indptr : int64 array of shape (n_labels + 1,)
        Label c stands at ``positions[indptr[c]:indptr[c + 1]]``.
    positions : int32 or int64 array of shape (n_walks * length,)
        Places in ``walks.ravel()``, ascending for each label.
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
        """Labels, those that stand nowhere included."""
        return len(self.indptr) - 1

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The first five arguments of `count_row`."""
        return self.walks.ravel(), self.walks.shape[1], self.indptr, self.positions, self.window

    @property
    def counts(self) -> Ints:
        """How often each label stands in the walks, shape (n_labels,)."""
        return np.asarray(np.diff(self.indptr))

    def context_totals(self) -> Ints:
        """The sum of each label's row of counts, without the row; shape (n_labels,)."""
        length = self.walks.shape[1]
        weights = np.arange(self.window, 0, -1, dtype=np.int64)[: max(length - 1, 0)]
        sums = np.concatenate([[0], np.cumsum(weights)])
        reach = np.minimum(np.arange(length), len(weights))
        by_place = sums[reach] + sums[reach[::-1]]  # labels before, labels after
        totals: Ints = _sum_by_label(self.walks, by_place, self.n_labels)
        return totals


def index_walks(walks: npt.NDArray[np.int32], n_labels: int, window: int) -> WalkIndex:
    """Group the places of the walks by label (a counting sort)."""
    walks = np.ascontiguousarray(walks, dtype=np.int32)
    dtype = np.int32 if walks.size < 2**31 else np.int64
    indptr, positions = _group(walks.ravel(), n_labels, np.empty(walks.size, dtype=dtype))
    return WalkIndex(walks, indptr, positions, window)


def context_counts(
    index: WalkIndex,
    centres: npt.NDArray[np.integer],
    column_of: npt.NDArray[np.int32],
    n_columns: int,
) -> Ints:
    """Rows of the co-occurrence matrix.

    Parameters
    ----------
    index : WalkIndex
    centres : int array of shape (n_centres,)
        The labels whose rows are wanted.
    column_of : int32 array of shape (n_labels,)
        Where to count each context label; -1 for those not wanted.
    n_columns : int

    Returns
    -------
    int64 array of shape (n_centres, n_columns)
        Whole numbers, so the order of adding, and with it the number of threads, does not matter.
    """
    counts: Ints = _count(*index.arrays, centres, column_of, n_columns)  # type: ignore[call-arg]
    return counts


@numba.njit(cache=True)
def count_row(tokens, length, indptr, positions, window, centre, column_of, counts):  # type: ignore[no-untyped-def]
    """Add the contexts of one label to `counts`, an int64 array; for use inside numba."""
    for i in range(indptr[centre], indptr[centre + 1]):
        here = np.int64(positions[i])
        begin = here // length * length
        for there in range(max(begin, here - window), min(begin + length, here + window + 1)):
            column = column_of[tokens[there]]
            if column >= 0 and there != here:
                counts[column] += window + 1 - abs(there - here)


@numba.njit(cache=True)
def _group(tokens, n_labels, positions):  # type: ignore[no-untyped-def]
    indptr = np.zeros(n_labels + 1, np.int64)
    for token in tokens:
        indptr[token + 1] += 1
    for label in range(n_labels):
        indptr[label + 1] += indptr[label]
    free = indptr[:-1].copy()
    for place in range(len(tokens)):
        token = tokens[place]
        positions[free[token]] = place
        free[token] += 1
    return indptr, positions


@numba.njit(cache=True)
def _sum_by_label(walks, by_place, n_labels):  # type: ignore[no-untyped-def]
    totals = np.zeros(n_labels, np.int64)
    for walk in range(walks.shape[0]):
        for place in range(walks.shape[1]):
            totals[walks[walk, place]] += by_place[place]
    return totals


@numba.njit(cache=True, parallel=True)
def _count(tokens, length, indptr, positions, window, centres, column_of, n_columns):  # type: ignore[no-untyped-def]
    counts = np.zeros((len(centres), n_columns), np.int64)
    for row in numba.prange(len(centres)):
        count_row(tokens, length, indptr, positions, window, centres[row], column_of, counts[row])
    return counts
