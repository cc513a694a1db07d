"""Partition trees, shared by FastXML and LPSR.

An inner node splits the points by a hyperplane, and a leaf stores scores of labels. All trees of a
model are concatenated in flat arrays. These are traversed by one compiled loop, saved as they are,
and memory-mapped on loading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.compiled import compiled, prange
from dxml._core.stages import unpacked_csr
from dxml._core.storage import pack_csr
from dxml.topk import TopK, insert_best, topk_from_csr

__all__ = ["Forest", "Tree", "leaf_shares", "read_only"]

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]

_N_CHUNKS = 64  # of a batch; each has a dense work row, so more would take more memory


@dataclass(frozen=True)
class Tree:
    """One grown tree; node 0 is the root.

    Attributes
    ----------
    children : int32 array of shape (n_nodes, 2)
        Where a point goes with ``w·x + b`` ≤ 0, and with ``w·x + b`` > 0; -1 in leaves.
    bias : float32 array of shape (n_nodes,)
        b.
    splits : csr_matrix of shape (n_nodes, n_features), float32
        The rows are w; empty in leaves.
    leaves : csr_matrix of shape (n_nodes, n_labels), float32
        Scores of the labels of a leaf; empty in inner nodes.
    """

    children: Ids
    bias: Floats
    splits: sp.csr_matrix
    leaves: sp.csr_matrix

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The tree as a piece of a training."""
        rows = {**pack_csr("splits", self.splits), **pack_csr("leaves", self.leaves)}
        return {"children": self.children, "bias": self.bias, **rows}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Tree:
        """The inverse of `arrays`."""
        splits, leaves = unpacked_csr("splits", arrays), unpacked_csr("leaves", arrays)
        return cls(arrays["children"], arrays["bias"], splits, leaves)


@dataclass(frozen=True)
class Forest:
    """Concatenated trees; the attributes are those of `Tree`, and `roots` has each tree's root."""

    roots: Ids
    children: Ids
    bias: Floats
    splits: sp.csr_matrix
    leaves: sp.csr_matrix

    @classmethod
    def join(cls, trees: Sequence[Tree]) -> Forest:
        """One forest of one or more trees."""
        sizes = [len(tree.bias) for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
        children = [
            np.where(tree.children < 0, np.int32(-1), tree.children + root)
            for tree, root in zip(trees, roots, strict=True)
        ]
        return cls(
            roots,
            np.concatenate(children).astype(np.int32),
            np.concatenate([tree.bias for tree in trees]),
            _stack([tree.splits for tree in trees]),
            _stack([tree.leaves for tree in trees]),
        )

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    @property
    def depth(self) -> int:
        """Splits between a root and its deepest leaf."""
        level, depth = self.roots, -1
        while len(level):
            below = self.children[level].ravel()
            level, depth = below[below >= 0], depth + 1
        return depth

    def route(self, X: sp.csr_matrix) -> Ids:
        """The leaf that each row of X reaches in each tree: int32 of shape (n_samples, n_trees)."""
        reached = np.empty((X.shape[0], self.n_trees), dtype=np.int32)
        roots, children, bias = read_only(self.roots, self.children, self.bias)
        starts, features, weights = read_only(
            self.splits.indptr, self.splits.indices, self.splits.data
        )
        row = (X.indptr, X.indices, X.data)
        _route(*row, roots, children, bias, starts, features, weights, X.shape[1], reached)
        return reached

    def mean_of_leaves(self, X: sp.csr_matrix, k: int, tie_order: Ids) -> TopK:
        """Rank labels by their value in the leaves that a row reaches, averaged over the trees."""
        reached = self.route(X)
        ids = np.full((X.shape[0], k), -1, dtype=np.int32)
        scores = np.zeros((X.shape[0], k), dtype=np.float32)
        starts, labels, values = read_only(
            self.leaves.indptr, self.leaves.indices, self.leaves.data
        )
        _mean_of_leaves(reached, starts, labels, values, tie_order, ids, scores)
        return TopK(ids, scores)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays for a saved model."""
        return {
            "tree.roots": self.roots,
            "tree.children": self.children,
            "tree.bias": self.bias,
            **pack_csr("tree.splits", self.splits),
            **pack_csr("tree.leaves", self.leaves),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_features: int, n_labels: int) -> Forest:
        """The inverse of `arrays`."""
        bias = arrays.floats("tree.bias", None)
        n = len(bias)
        children = arrays.ids("tree.children", n, 2, below=n, least=-1)
        _check_children(children)
        return cls(
            arrays.ids("tree.roots", None, below=n),
            children,
            bias,
            arrays.csr("tree.splits", n, n_features),
            arrays.csr("tree.leaves", n, n_labels, positive=True),
        )


def _check_children(children: Ids) -> None:
    """Refuse nodes that a route could come back to, or that hang from two others."""
    leaves = children < 0
    below = children[~leaves]
    if (leaves[:, 0] != leaves[:, 1]).any():
        raise ValueError("'tree.children' must be two to a node, or none")
    if (children <= np.arange(len(children))[:, None])[~leaves].any():
        raise ValueError("'tree.children' must come after their parents")
    if len(np.unique(below)) < len(below):
        raise ValueError("'tree.children' must each have one parent")


def leaf_shares(
    leaf_of: Ids, n_nodes: int, Y: sp.csr_matrix, n_kept: int, tie_order: Ids
) -> sp.csr_matrix:
    """The share of a leaf's points that carry a label, for its `n_kept` most frequent labels.

    Parameters
    ----------
    leaf_of : int32 array of shape (n_samples,)
        The node in which each training point ends.
    Y : csr_matrix of shape (n_samples, n_labels)
    tie_order : int32 array of shape (n_labels,)
        From `dxml.topk.tie_order`.

    Returns
    -------
    csr_matrix of shape (n_nodes, n_labels), float32
    """
    n = len(leaf_of)
    members = sp.csr_matrix((np.ones(n), (leaf_of, np.arange(n))), shape=(n_nodes, n))
    counts = sp.csr_matrix(members @ Y.astype(np.float64))
    sizes = np.bincount(leaf_of, minlength=n_nodes)
    counts.data /= np.repeat(sizes, np.diff(counts.indptr))
    widest = max(int(np.diff(counts.indptr).max(initial=0)), 1)
    kept = topk_from_csr(counts, min(n_kept, widest), tie_order)
    return kept.to_csr(Y.shape[1]).astype(np.float32)


def read_only(*arrays: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Views that cannot be written to, as memory-mapped arrays are: one type for the compiler."""
    views = [np.asarray(array).view() for array in arrays]
    for view in views:
        view.flags.writeable = False
    return views


def _stack(parts: Sequence[sp.csr_matrix]) -> sp.csr_matrix:
    """Rows of several matrices under one another, with 64-bit row pointers as when loaded."""
    starts = np.concatenate([[0], np.cumsum([part.nnz for part in parts])[:-1]])
    pointers = [part.indptr[:-1] + start for part, start in zip(parts, starts, strict=True)]
    indptr = np.concatenate([*pointers, [sum(part.nnz for part in parts)]]).astype(np.int64)
    stacked = sp.csr_matrix((len(indptr) - 1, parts[0].shape[1]), dtype=np.float32)
    stacked.indptr = indptr
    stacked.indices = np.concatenate([part.indices for part in parts]).astype(np.int32)
    stacked.data = np.concatenate([part.data for part in parts]).astype(np.float32)
    return stacked


@compiled(parallel=True)
def _route(  # type: ignore[no-untyped-def]
    indptr, features, values, roots, children, bias, w_indptr, w_features, w_values, d, reached
):
    n = reached.shape[0]
    n_pieces = min(n, _N_CHUNKS)
    for piece in prange(n_pieces):
        x = np.zeros(d, dtype=np.float32)
        for i in range(piece * n // n_pieces, (piece + 1) * n // n_pieces):
            for p in range(indptr[i], indptr[i + 1]):
                x[features[p]] = values[p]
            for t in range(roots.shape[0]):
                node = roots[t]
                while children[node, 0] >= 0:
                    side = float(bias[node])
                    for p in range(w_indptr[node], w_indptr[node + 1]):
                        side += w_values[p] * x[w_features[p]]
                    node = children[node, 1] if side > 0 else children[node, 0]
                reached[i, t] = node
            for p in range(indptr[i], indptr[i + 1]):
                x[features[p]] = 0


@compiled(parallel=True)
def _mean_of_leaves(reached, indptr, labels, values, tie_order, ids, scores):  # type: ignore[no-untyped-def]
    n, n_trees = reached.shape
    n_pieces = min(n, _N_CHUNKS)
    for piece in prange(n_pieces):
        total = np.zeros(tie_order.shape[0], dtype=np.float64)
        named = np.empty(tie_order.shape[0], dtype=np.int32)
        for i in range(piece * n // n_pieces, (piece + 1) * n // n_pieces):
            count = 0
            for t in range(n_trees):
                for p in range(indptr[reached[i, t]], indptr[reached[i, t] + 1]):
                    label = labels[p]
                    if total[label] == 0:
                        named[count] = label
                        count += 1
                    total[label] += values[p]
            filled = 0
            for j in range(count):
                mean = np.float32(total[named[j]] / n_trees)
                filled = insert_best(ids[i], scores[i], filled, named[j], mean, tie_order)
                total[named[j]] = 0
