"""The shape of a tree over the labels: which labels belong together, after Parabel.

The labels of a node are split into two halves of like labels, by balanced 2-means over the mean
points of the labels, until fewer than `LEAF` are left. How large the halves are depends on the
number of labels alone, so that all nodes are numbered before the first one is split, and those of
one depth are split side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.compiled import compiled, prange
from dxml._core.sparse import plain_csr, stored
from dxml._core.threads import n_threads

__all__ = ["LEAF", "TreeShape", "grow_tree"]

LEAF = 10  # a node of fewer labels is not split
SMALL = np.float32(0.02)
"""Weights of a label's mean point, of length 1, below which it is split without them."""
ROUNDS = 10  # of 2-means, at most
GAIN = 1e-4  # relative gain of a round from which on another is made

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TreeShape:
    """Which labels belong together.

    Attributes
    ----------
    parents : int32 array of shape (n_nodes,)
        Node 0 is the root and has -1; a parent comes before its children.
    leaves : int32 array of shape (n_labels,)
        The leaf of each label; -1 of a label that no point carries.
    """

    parents: Ids
    leaves: Ids

    @property
    def n_nodes(self) -> int:
        return len(self.parents)

    @property
    def n_labels(self) -> int:
        return len(self.leaves)


def grow_tree(
    X: sp.csr_matrix, Y: sp.csr_matrix, rng: np.random.Generator, leaf: int = LEAF
) -> TreeShape:
    """Split the labels that points carry, again and again.

    Parameters
    ----------
    X : csr_matrix of shape (n_samples, n_features), float32
    Y : csr_matrix of shape (n_samples, n_labels), bool
    rng : Generator
        Chooses the two labels that a split begins with.
    leaf : int
        A node of fewer labels is not split; at least 2.
    """
    labels = np.unique(Y.indices).astype(np.int64)
    nodes = _number_nodes(len(labels), rng, leaf)
    means = mean_points(X, Y)
    is_split = nodes.first[:, 0] >= 0
    for depth in range(int(nodes.depths.max()) + 1):
        own = np.flatnonzero(is_split & (nodes.depths == depth))
        if len(own):
            _split(
                means.indptr,
                means.indices,
                means.data,
                means.shape[1],
                labels,
                nodes.bounds[own],
                nodes.first[own],
                min(len(own), n_threads()),
            )
    leaves = np.full(Y.shape[1], -1, dtype=np.int32)
    for node in np.flatnonzero(~is_split):
        leaves[labels[slice(*nodes.bounds[node])]] = node
    return TreeShape(nodes.parents, leaves)


class _Nodes(NamedTuple):
    """The nodes of a tree over some number of labels.

    Attributes
    ----------
    parents, depths : int32 arrays of shape (n_nodes,)
    bounds : int array of shape (n_nodes, 2)
        Where the labels of the node begin and end, once its ancestors are split.
    first : int array of shape (n_nodes, 2)
        The two of its labels that the split begins with; -1 of a leaf.
    """

    parents: Ids
    depths: Ids
    bounds: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]


def _number_nodes(n_labels: int, rng: np.random.Generator, leaf: int) -> _Nodes:
    parents, depths, bounds, first = [-1], [0], [(0, n_labels)], [(-1, -1)]
    waiting = [0]
    while waiting:
        node = waiting.pop()
        start, stop = bounds[node]
        if stop - start < leaf:
            continue
        first[node] = tuple(rng.choice(stop - start, 2, replace=False).tolist())
        middle = start + (stop - start + 1) // 2
        for half in ((start, middle), (middle, stop)):
            waiting.append(len(parents))
            parents.append(node)
            depths.append(depths[node] + 1)
            bounds.append(half)
            first.append((-1, -1))
    return _Nodes(
        np.array(parents, dtype=np.int32),
        np.array(depths, dtype=np.int32),
        np.array(bounds, dtype=np.int64),
        np.array(first, dtype=np.int64),
    )


def mean_points(X: sp.csr_matrix, Y: sp.csr_matrix) -> sp.csr_matrix:
    """The mean point of each label, of length 1 and then without its `SMALL` weights."""
    points = sp.csr_matrix(Y.T)
    rows = (points.indptr, points.indices, X.indptr, X.indices, X.data, X.shape[1])
    n_labels = points.shape[0]
    n_chunks = max(1, min(n_labels, n_threads()))
    ends = np.zeros(n_labels + 1, dtype=np.int64)
    nothing: tuple[npt.NDArray[Any], ...] = (np.empty(0, np.int32), np.empty(0, np.float32))
    _mean_points(*rows, n_chunks, ends, *nothing)  # counts, and writes nothing yet
    np.cumsum(ends, out=ends)
    features, values = np.empty(ends[-1], np.int32), np.empty(ends[-1], np.float32)
    _mean_points(*rows, n_chunks, ends, features, values)
    return plain_csr(values, features, ends, (n_labels, X.shape[1]))


@compiled(parallel=True)
def _mean_points(  # type: ignore[no-untyped-def]
    starts, points, x_starts, x_features, x_data, n_features, n_chunks, ends, features, values
):
    """Without room for the weights, count those of label l in ends[l + 1]; else write them."""
    n_labels, counting = starts.shape[0] - 1, features.shape[0] == 0
    for chunk in prange(n_chunks):
        total = np.zeros(n_features, dtype=np.float32)
        seen = np.zeros(n_features, dtype=np.bool_)
        named = np.empty(n_features, dtype=np.int32)
        for label in range(chunk, n_labels, n_chunks):
            count = 0
            for p in stored(starts, label):
                for j in stored(x_starts, points[p]):
                    feature = x_features[j]
                    total[feature] += x_data[j]
                    if not seen[feature]:
                        seen[feature] = True
                        named[count] = feature
                        count += 1
            square = np.float64(0)
            for at in range(count):
                square += np.float64(total[named[at]]) ** 2
            unit = np.float32(1 / np.sqrt(square)) if square > 0 else np.float32(0)
            kept = 0
            for at in range(count):
                feature = named[at]
                value = total[feature] * unit
                total[feature], seen[feature] = 0, False
                if abs(value) >= SMALL:
                    if not counting:
                        features[ends[label] + kept], values[ends[label] + kept] = feature, value
                    kept += 1
            if counting:
                ends[label + 1] = kept


@compiled(parallel=True)
def _split(starts, features, data, n_features, labels, bounds, first, n_chunks):  # type: ignore[no-untyped-def]
    """Put the labels of each node into the order of its halves."""
    for chunk in prange(n_chunks):
        sums = np.zeros((2, n_features), dtype=np.float32)
        for node in range(chunk, bounds.shape[0], n_chunks):
            own = labels[bounds[node, 0] : bounds[node, 1]]
            right = _halved(starts, features, data, own, first[node], sums)
            own[:] = np.concatenate((own[~right], own[right]))


@compiled()
def _halved(starts, features, data, labels, first, sums):  # type: ignore[no-untyped-def]
    """Which labels are in the second half; `sums` is 0 before and after."""
    m = labels.shape[0]
    right = np.zeros(m, dtype=np.bool_)
    likes = np.empty(m, dtype=np.float32)
    for half in range(2):
        label = labels[first[half]]
        for p in stored(starts, label):
            sums[half, features[p]] += data[p]
    scale = np.ones(2, dtype=np.float32)
    best = np.float64(0)
    for turn in range(ROUNDS):
        for j in range(m):
            like = np.float32(0)
            for p in stored(starts, labels[j]):
                at = features[p]
                like += data[p] * (scale[1] * sums[1, at] - scale[0] * sums[0, at])
            likes[j] = like
        order = np.argsort(likes, kind="mergesort")
        quality = np.float64(0)
        for place in range(m):
            right[order[place]] = place >= (m + 1) // 2
            quality += likes[order[place]] if right[order[place]] else -likes[order[place]]
        _clear(starts, features, labels, sums)
        if turn and quality <= best * (1 + GAIN):
            break
        best = quality
        squares = np.zeros(2, dtype=np.float64)
        for j in range(m):
            half = int(right[j])
            for p in stored(starts, labels[j]):
                sums[half, features[p]] += data[p]
        for j in range(m):
            half = int(right[j])
            for p in stored(starts, labels[j]):
                squares[half] += data[p] * sums[half, features[p]]
        for half in range(2):
            scale[half] = 1 / np.sqrt(max(squares[half], 1e-12))
    _clear(starts, features, labels, sums)
    return right


@compiled()
def _clear(starts, features, labels, sums):  # type: ignore[no-untyped-def]
    for label in labels:
        for p in stored(starts, label):
            sums[0, features[p]] = 0
            sums[1, features[p]] = 0
