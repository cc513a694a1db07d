"""A tree over the labels with linear classifiers, after Parabel (Prabhu et al., WWW 2018).

The labels of a node are split into two halves of like labels (`dxml._learners.tree_shape`). Every
node has a classifier that tells its points from the other points of its parent, and every label one
that tells its points from the others of its leaf. With m = wᵀx + b of a classifier, the score of a
label is

    − Σ max(0, 1 − m)²

over its own classifier and those on the way down to its leaf: about the logarithm of a probability.
A node has many more points than a label of its own, so that rare labels share what is known of
their relatives. Differences from Parabel: leaves are ten times smaller, and training starts again
from where an earlier one ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.compiled import compiled, prange, spare
from dxml._core.packed import NO_SCALE, Packed, add_products, as_csr, value_at
from dxml._core.sparse import ranges, stored, widened
from dxml._core.threads import n_threads
from dxml._learners.dual_descent import OFFSET
from dxml._learners.linear_training import fit_linear
from dxml._learners.tree_search import Family, search_tree
from dxml._learners.tree_shape import TreeShape
from dxml.progress import SILENT, Progress

__all__ = ["LabelTree", "fit_tree", "tree_signs"]

C = 1.0  # weight of the classifiers' loss
PRUNE = 0.1  # their weights smaller than this are dropped

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


def tree_signs(Y: sp.csr_matrix, shape: TreeShape) -> sp.csr_matrix:
    """The points that each classifier learns from, (n_nodes + n_labels, n_samples), int8.

    As `linear_examples.label_signs`: 1 for the points of the node or label, -1 for the others of
    the parent or leaf. The root has none.
    """
    n_nodes, n_labels = shape.n_nodes, shape.n_labels
    labels = np.flatnonzero(shape.leaves >= 0)
    within = [(labels, shape.leaves[labels])]
    while len(within[-1][0]):
        below, nodes = within[-1]
        up = shape.parents[nodes]
        within.append((below[up >= 0], up[up >= 0]))
    rows = np.concatenate([below for below, _ in within])
    columns = np.concatenate([nodes for _, nodes in within])
    holds = sp.csr_matrix((np.ones(len(rows), np.int32), (rows, columns)), (n_labels, n_nodes))
    of_node = sp.csr_matrix(Y.astype(np.int32) @ holds > 0).astype(np.int8)
    children = np.flatnonzero(shape.parents >= 0)
    own = sp.csr_matrix(sp.hstack([of_node, Y.astype(np.int8)]))
    above = sp.csr_matrix(
        (
            np.ones(len(children) + len(labels), np.int8),
            (
                np.concatenate([shape.parents[children], shape.leaves[labels]]),
                np.concatenate([children, n_nodes + labels]),
            ),
        ),
        (n_nodes, n_nodes + n_labels),
    )
    told = of_node @ above
    signs = sp.csr_matrix((own.multiply(told) * 2 - told).T, dtype=np.int8)
    signs.eliminate_zeros()
    signs.sort_indices()
    return signs


@dataclass(frozen=True, eq=False)
class LabelTree:
    """A tree and its classifiers: those of the nodes first, then those of the labels.

    Attributes
    ----------
    shape : TreeShape
    weights : csr_matrix or Packed of shape (n_nodes + n_labels, n_features)
        Packed ones are scored as they are; those of the nodes are also held by feature.
    biases : float32 array of shape (n_nodes + n_labels,)
    """

    shape: TreeShape
    weights: sp.csr_matrix | Packed
    biases: Floats

    def scores(self, X: sp.csr_matrix, pairs: sp.csr_matrix, every_label: bool = False) -> Floats:
        """The score of each stored (point, label) of `pairs`, at most 0.

        A label that the tree does not know has the score of the leaf that suits the point best: the
        tree has nothing to say against it.

        Parameters
        ----------
        every_label : bool
            Whether most labels of a point are asked for, which another order of work suits.
        """
        out = np.empty(pairs.nnz, dtype=np.float32)
        if spare(X.shape[0]):
            self._score_few(X, pairs, every_label, out)
            return out
        columns = self._columns if every_label else self._node_columns
        n_chunks = max(1, min(X.shape[0], n_threads()))
        _score(
            X.indptr,
            X.indices,
            X.data,
            self.weights.shape[1],
            columns.indptr,
            columns.indices,
            columns.data,
            columns.shape[1],
            self.weights.indptr,
            self.weights.indices,
            self.weights.data,
            self._scale,
            self.biases,
            self.shape.parents,
            self._is_leaf,
            self.shape.leaves,
            pairs.indptr,
            pairs.indices,
            n_chunks,
            out,
        )
        return out

    def best_labels(self, X: sp.csr_matrix, size: int) -> Ids:
        """The labels of best score that a beam search finds, (n_samples, size), best first.

        -1 where it finds fewer.
        """
        found = np.full((X.shape[0], size), -1, dtype=np.int32)
        if spare(X.shape[0]):
            for i, (first, last) in enumerate(pairwise(X.indptr.tolist())):
                own = X.indices[first:last], X.data[first:last]
                best = self._family.search(partial(self._margins, *own, every_label=False), size)
                found[i, : len(best)] = best
            return found
        search_tree(X, self.weights, self._scale, self.biases, self._family, found)
        return found

    def _score_few(
        self, X: sp.csr_matrix, pairs: sp.csr_matrix, every_label: bool, out: Floats
    ) -> None:
        """`_score` by numpy: the same additions in the same order, for the nodes that matter."""
        shape, n_nodes = self.shape, self.shape.n_nodes
        for i, (first, last) in enumerate(pairwise(X.indptr.tolist())):
            pair = slice(*pairs.indptr[i : i + 2])
            labels = pairs.indices[pair]
            leaves = np.full(len(labels), -1, dtype=np.int32)
            leaves[labels < shape.n_labels] = shape.leaves[labels[labels < shape.n_labels]]
            known = leaves >= 0
            nodes = self._up_from(leaves) if known.all() else np.arange(n_nodes)
            rows = np.concatenate([nodes, n_nodes + labels[known]])
            margins = self._margins(
                X.indices[first:last], X.data[first:last], rows, every_label=every_label
            )
            costs = np.maximum(0, 1 - margins) ** 2
            of_node, way = np.zeros((2, n_nodes), dtype=np.float32)
            of_node[nodes] = costs[: len(nodes)]
            for level in self._levels:
                way[level] = way[shape.parents[level]] - of_node[level]
            scores = way[leaves]
            scores[known] -= costs[len(nodes) :]
            if not known.all():
                scores[~known] = way[self._is_leaf].max()
            out[pair] = scores

    def _margins(
        self, features: Ids, values: Floats, rows: npt.NDArray[Any], *, every_label: bool
    ) -> Floats:
        """wᵀx + b of one point and some classifiers."""
        if not every_label:
            margins = self.biases[rows]
            bounds = self.weights.indptr[rows], self.weights.indptr[rows + 1]
            scale = self._scale[rows] if len(self._scale) else NO_SCALE
            add_products(margins, features, values, bounds, self.weights, scale)
            return margins
        columns, margins = self._columns, self.biases.copy()
        starts, ends = columns.indptr[features], columns.indptr[features + 1]
        places = ranges(starts, ends)
        products = np.repeat(values, ends - starts) * columns.data[places]
        np.add.at(margins, columns.indices[places], products)
        return margins[rows]

    def _up_from(self, leaves: Ids) -> npt.NDArray[np.intp]:
        """The nodes on the ways from some leaves to the root."""
        passed = np.zeros(self.shape.n_nodes, dtype=bool)
        while len(leaves):
            passed[leaves] = True
            leaves = np.unique(self.shape.parents[leaves])
            leaves = leaves[leaves >= 0]
        return np.flatnonzero(passed)

    def with_labels(self, labels: npt.NDArray[np.int64]) -> LabelTree:
        """With these labels only, in this order; those that came after the fit have no place."""
        n_nodes, known = self.shape.n_nodes, labels < self.shape.n_labels
        leaves = np.full(len(labels), -1, dtype=np.int32)
        leaves[known] = self.shape.leaves[labels[known]]
        rows = np.concatenate([np.arange(n_nodes), n_nodes + labels[known]])
        places = np.concatenate([np.arange(n_nodes), n_nodes + np.flatnonzero(known)])
        biases = np.zeros(n_nodes + len(labels), dtype=np.float32)
        biases[places] = self.biases[rows]
        kept = as_csr(self.weights)[rows]
        lengths = np.zeros(n_nodes + len(labels), dtype=np.int64)
        lengths[places] = np.diff(kept.indptr)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        shape = (len(biases), kept.shape[1])
        weights = sp.csr_matrix((kept.data, kept.indices, ends), shape=shape)
        return LabelTree(TreeShape(self.shape.parents, leaves), weights, biases)

    def widened(self, n_features: int) -> LabelTree:
        """With more features, which weigh nothing."""
        return LabelTree(self.shape, widened(as_csr(self.weights), n_features), self.biases)

    @property
    def _scale(self) -> Floats:
        return self.weights.scale if isinstance(self.weights, Packed) else NO_SCALE

    @cached_property
    def _family(self) -> Family:
        return Family.of(self.shape)

    @cached_property
    def _is_leaf(self) -> npt.NDArray[np.bool_]:
        leaf = np.ones(self.shape.n_nodes, dtype=bool)
        leaf[self.shape.parents[1:]] = False
        return leaf

    @cached_property
    def _levels(self) -> list[npt.NDArray[np.intp]]:
        """The nodes below the root, those nearest to it first."""
        levels, above = [], np.array([0])
        while len(above):
            above = np.flatnonzero(np.isin(self.shape.parents, above))
            levels.append(above)
        return levels

    @cached_property
    def _node_columns(self) -> sp.csr_matrix:
        """The nodes' weights by feature."""
        n_nodes = self.shape.n_nodes
        if isinstance(self.weights, Packed):
            return sp.csr_matrix(self.weights.rows(np.arange(n_nodes)).T)
        return sp.csr_matrix(self.weights[:n_nodes].T)

    @cached_property
    def _columns(self) -> sp.csr_matrix:
        """All weights by feature."""
        return sp.csr_matrix(as_csr(self.weights).T)


def fit_tree(
    X: sp.csr_matrix,
    Y: sp.csr_matrix,
    shape: TreeShape,
    *,
    max_iter: int = 3,
    seed: int = 0,
    stage: str = "label tree",
    progress: Progress = SILENT,
) -> LabelTree:
    """Train all classifiers of a tree.

    Parameters
    ----------
    X, Y : csr_matrix of float32, csr_matrix of bool
        Points without a label teach nothing.
    max_iter : int
        Passes over a classifier's points, at most.
    """
    ones = np.ones((X.shape[0], 1), dtype=np.float32)  # the bias is the weight of one more feature
    head, _ = fit_linear(
        sp.csr_matrix(sp.hstack([X, ones]), dtype=np.float32),
        tree_signs(Y, shape),
        C=C,
        max_iter=max_iter,
        prune=PRUNE,
        seed=seed,
        stage=stage,
        progress=progress,
    )
    weights = head.weights
    biases = weights[:, X.shape[1]].toarray().ravel() + OFFSET
    return LabelTree(shape, sp.csr_matrix(weights[:, : X.shape[1]]), biases)


@compiled(parallel=True)  # added up in order: packed weights score as unpacked ones
def _score(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    data,
    n_features,
    c_starts,
    c_ids,
    c_data,
    n_columns,
    starts,
    features,
    weights,
    scale,
    biases,
    parents,
    is_leaf,
    leaves,
    pairs,
    labels,
    n_chunks,
    out,
):
    n, n_nodes, scaled = indptr.shape[0] - 1, parents.shape[0], scale.shape[0] > 0
    for chunk in prange(n_chunks):
        x = np.zeros(n_features, dtype=np.float32)
        margins = np.empty(n_columns, dtype=np.float32)
        way = np.zeros(n_nodes, dtype=np.float32)  # the sum from the root down to each node
        for i in range(chunk * n // n_chunks, (chunk + 1) * n // n_chunks):
            margins[:] = biases[:n_columns]
            for j in stored(indptr, i):
                x[indices[j]] = data[j]
                for q in stored(c_starts, indices[j]):
                    margins[c_ids[q]] += data[j] * c_data[q]
            best = np.float32(-1e30)
            for node in range(n_nodes):
                if node:
                    short = max(np.float32(0), np.float32(1) - margins[node])
                    way[node] = way[parents[node]] - short * short
                if is_leaf[node]:
                    best = max(best, way[node])
            for p in range(pairs[i], pairs[i + 1]):
                label = labels[p]
                if label >= leaves.shape[0] or leaves[label] < 0:
                    out[p] = best
                    continue
                row = n_nodes + label
                if row < n_columns:
                    margin = margins[row]
                else:
                    margin = biases[row]
                    unit = scale[row] if scaled else np.float32(1)
                    for q in stored(starts, row):
                        margin += x[features[q]] * (value_at(weights, q) * unit)
                short = max(np.float32(0), np.float32(1) - margin)
                out[p] = way[leaves[label]] - short * short
            for j in stored(indptr, i):
                x[indices[j]] = 0
