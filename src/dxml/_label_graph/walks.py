"""Random walks over the labels: DeepWalk's sentences (Perozzi et al., KDD 2014).

Every walk draws from its own counter-based generator, seeded by (seed, walk number), so the same
seed gives the same walks whatever the number of threads.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from dxml._core.compiled import compiled, prange
from dxml._core.random_numba import GOLDEN, mix, unit
from dxml._label_graph.graph import LabelGraph
from dxml.exceptions import DataFormatError
from dxml.progress import SILENT, Progress

__all__ = ["random_walks", "random_walks_on_points"]

Walks = npt.NDArray[np.int32]

_NO_EDGE = (
    "the label graph has no edge: no two labels share a point, so there is nothing to walk on. "
    "Give a label graph of your own (label_graph=FILE), or use label_vectors='random'."
)


def random_walks(
    graph: LabelGraph, n_walks: int, length: int, seed: int, progress: Progress = SILENT
) -> Walks:
    """Start `n_walks` walks from every label that has an edge.

    Parameters
    ----------
    graph : LabelGraph
        A step goes to a neighbour with probability proportional to the edge's weight.
    n_walks : int
        Walks from each label.
    length : int
        Labels in a walk, the start included.
    seed : int
    progress : Progress

    Returns
    -------
    int32 array of shape (n_walks * labels with an edge, length)
        Row ``i * labels with an edge + j`` is the i-th walk from the j-th of those labels.

    Raises
    ------
    DataFormatError
        The graph has no edge.
    """
    adjacency = graph.adjacency
    starts = np.flatnonzero(np.diff(adjacency.indptr)).astype(np.int32)
    if not len(starts):
        raise DataFormatError(_NO_EDGE)
    indptr = adjacency.indptr.astype(np.int64)
    indices = adjacency.indices.astype(np.int32, copy=False)
    uniform = bool(adjacency.data.min() == adjacency.data.max())
    cumulative = np.empty(0) if uniform else _row_cumsum(indptr, adjacency.data.astype(np.float64))
    walks = np.empty((n_walks * len(starts), length), dtype=np.int32)
    with progress.stage("walks", total=len(walks), unit="walks") as stage:
        for first in range(0, len(walks), len(starts)):
            _walk_graph(indptr, indices, cumulative, starts, np.uint64(seed), first, walks)
            stage.advance(len(starts))
    return walks


def random_walks_on_points(
    Y: csr_matrix, n_walks: int, length: int, seed: int, progress: Progress = SILENT
) -> Walks:
    """Walk the weighted label graph without building it.

    A step goes from a label to a point that carries it, chosen with probability proportional to
    the number of its other labels, |x| − 1, and on to one of those, uniformly. The transition
    probabilities equal those of the weighted graph: over the points x with both labels c and o,
    ``P(o | c) = Σ_x (|x| − 1)/Z_c · 1/(|x| − 1) = n_co / Σ_o' n_co'``.

    Parameters
    ----------
    Y : csr_matrix of shape (n_samples, n_labels), bool, sorted indices
    n_walks, length, seed, progress
        As in `random_walks`.

    Returns
    -------
    int32 array of shape (n_walks * labels that share a point, length)

    Raises
    ------
    DataFormatError
        No two labels share a point.

    Notes
    -----
    Memory is 12 bytes a non-zero of Y, plus the walks.
    """
    sizes = np.diff(Y.indptr).astype(np.int64)
    by_label = Y.T.tocsr()
    indptr, points = by_label.indptr.astype(np.int64), by_label.indices.astype(np.int32)
    del by_label
    cumulative = _row_cumsum(indptr, (sizes[points] - 1).astype(np.float64))
    carried = np.flatnonzero(np.diff(indptr))
    starts = carried[cumulative[indptr[carried + 1] - 1] > 0].astype(np.int32)
    if not len(starts):
        raise DataFormatError(_NO_EDGE)
    labels_of = Y.indptr.astype(np.int64), Y.indices.astype(np.int32, copy=False)
    walks = np.empty((n_walks * len(starts), length), dtype=np.int32)
    with progress.stage("walks", total=len(walks), unit="walks") as stage:
        for first in range(0, len(walks), len(starts)):
            _walk_points(
                indptr, points, cumulative, *labels_of, starts, np.uint64(seed), first, walks
            )
            stage.advance(len(starts))
    return walks


@compiled()
def _row_cumsum(indptr, values):  # type: ignore[no-untyped-def]
    """Cumulative sums that start anew with every CSR row."""
    for row in range(len(indptr) - 1):
        for i in range(indptr[row] + 1, indptr[row + 1]):
            values[i] += values[i - 1]
    return values


@compiled(inline="always")
def _uniform(key, counter):  # type: ignore[no-untyped-def]
    """The counter-th float64 in [0, 1) of the stream `key`."""
    return unit(mix(key + np.uint64(counter + 1) * GOLDEN))


@compiled(inline="always")
def _draw(cumulative, low, high, u):  # type: ignore[no-untyped-def]
    """First i in low..high-1 with cumulative[i] > u * total; the sums restart at `low`."""
    target = u * cumulative[high - 1]
    high -= 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


@compiled(parallel=True)
def _walk_graph(indptr, indices, cumulative, starts, seed, first, walks):  # type: ignore[no-untyped-def]
    """Fill walks[first : first + len(starts)]; an empty `cumulative` means equal weights."""
    for i in prange(len(starts)):
        key = mix(mix(seed) + np.uint64(first + i))
        label = starts[i]
        walks[first + i, 0] = label
        for step in range(1, walks.shape[1]):
            low, high = indptr[label], indptr[label + 1]
            u = _uniform(key, step)
            if len(cumulative):
                label = indices[_draw(cumulative, low, high, u)]
            else:
                label = indices[low + np.int64(u * (high - low))]
            walks[first + i, step] = label


@compiled(parallel=True)
def _walk_points(  # type: ignore[no-untyped-def]
    label_indptr, points, cumulative, point_indptr, labels, starts, seed, first, walks
):
    """Fill walks[first : first + len(starts)]: label → point → another label of the point."""
    for i in prange(len(starts)):
        key = mix(mix(seed) + np.uint64(first + i))
        label = starts[i]
        walks[first + i, 0] = label
        for step in range(1, walks.shape[1]):
            low, high = label_indptr[label], label_indptr[label + 1]
            point = points[_draw(cumulative, low, high, _uniform(key, 2 * step))]
            begin, others = point_indptr[point], point_indptr[point + 1] - point_indptr[point] - 1
            other = begin + np.int64(_uniform(key, 2 * step + 1) * others)
            if labels[other] >= label:  # skip the label itself
                other += 1
            label = labels[other]
            walks[first + i, step] = label
