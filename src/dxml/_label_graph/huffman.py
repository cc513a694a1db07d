"""The Huffman tree of hierarchical softmax (Morin & Bengio 2005; Mikolov et al. 2013).

Leaves are numbered from left to right, so that the leaves under any inner node are consecutive. The
sum of counts under a child of a node is then a difference of two prefix sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dxml._core.compiled import compiled

__all__ = ["HuffmanTree", "huffman_tree"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class HuffmanTree:
    """A binary tree over n leaves; it has n - 1 inner nodes, the root last.

    Parameters
    ----------
    position : int32 array of shape (n_leaves,)
        The number of each leaf from left to right.
    low, middle, high : int64 arrays of shape (n_leaves - 1,)
        The positions under inner node j are ``low[j]:high[j]``; those under its left child are
        ``low[j]:middle[j]``.
    """

    position: npt.NDArray[np.int32]
    low: Ints
    middle: Ints
    high: Ints


def huffman_tree(counts: npt.NDArray[np.integer]) -> HuffmanTree:
    """The tree with the least expected depth when leaf i occurs `counts[i]` times.

    Ties go to the leaf before the inner node, then to the lower number.

    Examples
    --------
    >>> tree = huffman_tree(np.array([5, 1, 1]))  # ((1, 2), 0)
    >>> tree.position.tolist()
    [2, 0, 1]
    >>> tree.low.tolist(), tree.middle.tolist(), tree.high.tolist()
    ([0, 0], [1, 2], [2, 3])
    """
    order = np.argsort(counts, kind="stable").astype(np.int64)
    left, right = _merge(counts[order].astype(np.int64))
    position, low, middle, high = _lay_out(left, right, len(order))
    by_leaf = np.empty(len(order), dtype=np.int32)
    by_leaf[order] = position
    return HuffmanTree(by_leaf, low, middle, high)


@compiled()
def _merge(counts):  # type: ignore[no-untyped-def]
    """Children of each inner node by the two-queue method; `counts` ascends, ids ≥ n are inner."""
    n = len(counts)
    mass = np.empty(max(n - 1, 0), np.int64)
    left, right = np.empty(len(mass), np.int64), np.empty(len(mass), np.int64)
    leaf, inner = 0, 0
    for node in range(n - 1):
        total = 0
        for side in range(2):
            if leaf < n and (inner == node or counts[leaf] <= mass[inner]):
                child = leaf
                total += counts[leaf]
                leaf += 1
            else:
                child = n + inner
                total += mass[inner]
                inner += 1
            if side == 0:
                left[node] = child
            else:
                right[node] = child
        mass[node] = total
    return left, right


@compiled()
def _lay_out(left, right, n):  # type: ignore[no-untyped-def]
    """Positions of the leaves, and span of each inner node; children come before their parent."""
    nodes = n - 1
    size = np.ones(n + nodes, np.int64)
    for node in range(nodes):
        size[n + node] = size[left[node]] + size[right[node]]
    start = np.zeros(n + nodes, np.int64)
    low, middle, high = (
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
    )
    for node in range(nodes - 1, -1, -1):
        low[node] = start[n + node]
        middle[node] = low[node] + size[left[node]]
        high[node] = low[node] + size[n + node]
        start[left[node]] = low[node]
        start[right[node]] = middle[node]
    return start[:n], low, middle, high
