"""Neighbours and their labels → ranked labels: Algorithm 2, lines 4 and 5."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.compiled import compiled, prange, spare
from dxml._core.sparse import ranges, stored
from dxml._core.threads import n_threads
from dxml.topk import TopK, best_first, insert_best

__all__ = ["Vote", "vote", "vote_pairs"]

Vote = Literal["mean", "sum"]
Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


@compiled(parallel=True)
def _vote(neighbours, weights, indptr, labels, tie_order, n_chunks, ids, scores):  # type: ignore[no-untyped-def]
    n_labels = tie_order.shape[0]
    for chunk in prange(n_chunks):
        votes = np.zeros(n_labels, dtype=np.float32)
        named = np.empty(n_labels, dtype=np.int32)
        named_by = np.full(
            n_labels, -1, dtype=np.int64
        )  # the last query whose neighbours have the label
        for i in range(
            chunk * neighbours.shape[0] // n_chunks, (chunk + 1) * neighbours.shape[0] // n_chunks
        ):
            count = 0
            for j in range(neighbours.shape[1]):
                point = neighbours[i, j]
                if point < 0:
                    continue
                for p in stored(indptr, point):
                    label = labels[p]
                    if named_by[label] != i:
                        named_by[label] = i
                        votes[label] = 0
                        named[count] = label
                        count += 1
                    votes[label] += weights[i, j]
            filled = 0
            for j in range(count):
                label = named[j]
                filled = insert_best(ids[i], scores[i], filled, label, votes[label], tie_order)


def vote(neighbours: Ids, weights: Floats, Y: sp.csr_matrix, k: int, tie_order: Ids) -> TopK:
    """Add up the neighbours' weights over their labels and rank.

    Parameters
    ----------
    neighbours : int32 array of shape (n_samples, n_neighbors)
        Rows of Y; -1 where a point has fewer neighbours.
    weights : float32 array of shape (n_samples, n_neighbors)
        1 for the sum of the neighbours' labels, 1/k for their mean.
    Y : csr_matrix of shape (n_train, n_labels)
    tie_order : int32 array of shape (n_labels,)
        From `dxml.topk.tie_order`.

    Notes
    -----
    Only labels of neighbours are ranked, so a row may end in -1.
    """
    ids = np.full((len(neighbours), k), -1, dtype=np.int32)
    scores = np.zeros((len(neighbours), k), dtype=np.float32)
    if spare(len(neighbours)):
        for i in range(len(neighbours)):
            votes, named = _votes_of(neighbours[i], weights[i], Y)
            best_first(named, votes[named], tie_order, ids[i], scores[i])
    else:
        n_chunks = min(len(neighbours), n_threads())
        _vote(neighbours, weights, Y.indptr, Y.indices, tie_order, n_chunks, ids, scores)
    return TopK(ids, scores)


def _votes_of(neighbours: Ids, weights: Floats, Y: sp.csr_matrix) -> tuple[Floats, Ids]:
    """The votes for every label by one point's neighbours, and the labels that they carry."""
    found = neighbours >= 0
    points = neighbours[found]
    starts, ends = Y.indptr[points], Y.indptr[points + 1]
    labels = Y.indices[ranges(starts, ends)]
    votes = np.zeros(Y.shape[1], dtype=np.float32)
    np.add.at(votes, labels, np.repeat(weights[found], ends - starts))
    return votes, np.unique(labels)


@compiled(parallel=True)
def _vote_pairs(neighbours, weights, indptr, labels, n_labels, starts, wanted, n_chunks, out):  # type: ignore[no-untyped-def]
    n = neighbours.shape[0]
    for chunk in prange(n_chunks):
        votes = np.zeros(n_labels, dtype=np.float32)
        for i in range(chunk * n // n_chunks, (chunk + 1) * n // n_chunks):
            for j in range(neighbours.shape[1]):
                point = neighbours[i, j]
                if point >= 0:
                    for p in stored(indptr, point):
                        votes[labels[p]] += weights[i, j]
            for p in range(starts[i], starts[i + 1]):
                out[p] = votes[wanted[p]]
            for j in range(neighbours.shape[1]):
                point = neighbours[i, j]
                if point >= 0:
                    for p in stored(indptr, point):
                        votes[labels[p]] = 0


def vote_pairs(neighbours: Ids, weights: Floats, Y: sp.csr_matrix, pairs: sp.csr_matrix) -> Floats:
    """The votes for each stored (point, label) of `pairs`, in its order; see `vote`."""
    out = np.zeros(pairs.nnz, dtype=np.float32)
    if spare(len(neighbours)):
        for i, (start, stop) in enumerate(pairwise(pairs.indptr.tolist())):
            votes, _ = _votes_of(neighbours[i], weights[i], Y)
            out[start:stop] = votes[pairs.indices[start:stop]]
    else:
        n_chunks = min(len(neighbours), n_threads())
        _vote_pairs(
            neighbours,
            weights,
            Y.indptr,
            Y.indices,
            Y.shape[1],
            pairs.indptr,
            pairs.indices,
            n_chunks,
            out,
        )
    return out
