"""Scores of (point, label) pairs by sparse weights.

A pair can be scored in two ways. With the point spread out over all features, every weight of the
label is read. With the label's weights spread out, every feature of the point is read. The second
is worth it for a label that many points of a batch are to be scored by, and that has many more
weights than a point has features. Both add up the same products in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.compiled import compiled, prange
from dxml._core.packed import value_at
from dxml._core.sparse import stored
from dxml._core.threads import n_threads
from dxml._learners.dual_descent import OFFSET

__all__ = ["score_pairs"]

FEW_ROWS = 4  # points, below which labels are not counted
MANY_ROWS = 16  # from which on they are, also where that is not sure to be worth it
READS = 16  # weights read in the time that counting a label takes, at least

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.integer[Any]]


def score_pairs(
    X: sp.csr_matrix,
    pairs: sp.csr_matrix,
    starts: Ints,
    ends: Ints,
    features: Ints,
    weights: npt.NDArray[Any],
    scale: Floats,
    out: Floats,
) -> None:
    """Write wᵀx − 1 of each stored (point, label) of `pairs` to `out`, in its order.

    Parameters
    ----------
    starts, ends : int arrays of shape (n_labels,)
        Where the weights of a label lie in `features` and `weights`, in rising order of features.
    scale : float32 array
        By which a label's weights are to be multiplied; empty: by 1.
    """
    rows = (X.indptr, X.indices, X.data, X.shape[1])
    stored = (starts, ends, features, weights, scale)
    often = np.zeros(len(starts), dtype=np.bool_)
    if _worth_counting(X.shape[0], pairs.nnz, len(starts), len(features)):
        lengths = np.diff(X.indptr)
        often, begins, places, points = _by_label(
            lengths, pairs.indptr, pairs.indices, starts, ends
        )
        if len(begins) > 1:
            work = np.diff(begins) * max(1, int(lengths.mean()))
            labels = np.flatnonzero(often)
            order = np.argsort(-(work + ends[labels] - starts[labels]), kind="stable")
            n_chunks = max(1, min(len(labels), n_threads()))
            _by_labels(*rows, *stored, labels, order, begins, places, points, n_chunks, out)
    n_chunks = max(1, min(X.shape[0], n_threads()))
    _by_points(*rows, *stored, pairs.indptr, pairs.indices, often, n_chunks, out)


def _worth_counting(n_rows: int, n_pairs: int, n_labels: int, n_weights: int) -> bool:
    """Whether to look for labels to spread out; that takes a look at every label there is."""
    if n_rows < FEW_ROWS:
        return False
    return n_rows >= MANY_ROWS or n_pairs * n_weights > READS * n_labels**2


@compiled()
def _by_label(lengths, indptr, indices, starts, ends):  # type: ignore[no-untyped-def]
    """The labels whose weights are to be spread out, and their pairs one label after the other."""
    n, n_labels = len(indptr) - 1, len(starts)
    counts = np.zeros(n_labels, np.int64)
    reads = np.zeros(n_labels, np.int64)  # features of all the points
    for i in range(n):
        for p in range(indptr[i], indptr[i + 1]):
            counts[indices[p]] += 1
            reads[indices[p]] += lengths[i]
    often = np.zeros(n_labels, np.bool_)
    free = np.zeros(n_labels, np.int64)
    total = 0
    chosen = 0
    for label in range(n_labels):
        size = ends[label] - starts[label]
        often[label] = (counts[label] - 2) * size > reads[label]
        if often[label]:
            free[label] = total
            total += counts[label]
            chosen += 1
    begins = np.zeros(chosen + 1, np.int64)
    chosen = 0
    for label in range(n_labels):
        if often[label]:
            chosen += 1
            begins[chosen] = begins[chosen - 1] + counts[label]
    places = np.empty(total, np.int64)
    points = np.empty(total, np.int32)
    for i in range(n):
        for p in range(indptr[i], indptr[i + 1]):
            label = indices[p]
            if often[label]:
                places[free[label]] = p
                points[free[label]] = i
                free[label] += 1
    return often, begins, places, points


@compiled(parallel=True)
def _by_labels(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    data,
    n_features,
    starts,
    ends,
    features,
    weights,
    scale,
    labels,
    order,
    begins,
    places,
    points,
    n_chunks,
    out,
):
    scaled = scale.shape[0] > 0
    for chunk in prange(n_chunks):
        w = np.zeros(n_features, dtype=np.float32)
        for turn in range(chunk, order.shape[0], n_chunks):
            number = order[turn]
            label = labels[number]
            unit = scale[label] if scaled else np.float32(1)
            for q in range(np.uint64(starts[label]), np.uint64(ends[label])):
                w[features[q]] = value_at(weights, q) * unit
            for p in range(begins[number], begins[number + 1]):
                score = OFFSET
                for j in stored(indptr, points[p]):
                    score += data[j] * w[indices[j]]
                out[places[p]] = score
            for q in range(np.uint64(starts[label]), np.uint64(ends[label])):
                w[features[q]] = 0


@compiled(parallel=True)  # added up in order: packed weights score as unpacked ones
def _by_points(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    data,
    n_features,
    starts,
    ends,
    features,
    weights,
    scale,
    pairs,
    labels,
    done,
    n_chunks,
    out,
):
    n = indptr.shape[0] - 1
    scaled = scale.shape[0] > 0
    for chunk in prange(n_chunks):
        x = np.zeros(n_features, dtype=np.float32)
        for i in range(chunk * n // n_chunks, (chunk + 1) * n // n_chunks):
            for j in stored(indptr, i):
                x[indices[j]] = data[j]
            for p in range(pairs[i], pairs[i + 1]):
                if done[labels[p]]:
                    continue
                score = OFFSET
                unit = scale[labels[p]] if scaled else np.float32(1)
                for q in range(np.uint64(starts[labels[p]]), np.uint64(ends[labels[p]])):
                    score += x[features[q]] * (value_at(weights, q) * unit)
                out[p] = score
            for j in stored(indptr, i):
                x[indices[j]] = 0
