"""Beam search for the best labels of a tree: of each depth only the best nodes are followed down.

The score of a node is − Σ max(0, 1 − m)² over the classifiers on the way to it, as in
`dxml._learners.label_trees`. Compiled code and numpy find the same: of equal scores the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.compiled import compiled, prange
from dxml._core.packed import Packed, value_at
from dxml._core.sparse import stored
from dxml._core.threads import n_threads
from dxml._learners.tree_shape import TreeShape

__all__ = ["BEAM", "Family", "search_tree"]

BEAM = 5  # nodes of a depth that are followed

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Family:
    """The rows of weights below each node: its children, or the labels of a leaf.

    Attributes
    ----------
    n_nodes : int
        Rows from here on are those of labels.
    starts : int64 array of shape (n_nodes + 1,)
        The rows below node v are members[starts[v]:starts[v + 1]].
    members : int32 array
        In rising order.
    """

    n_nodes: int
    starts: npt.NDArray[np.int64]
    members: Ids

    @classmethod
    def of(cls, shape: TreeShape) -> Family:
        """Labels without a leaf are below no node."""
        labels = np.flatnonzero(shape.leaves >= 0)
        above = np.concatenate([shape.parents[1:], shape.leaves[labels]])
        rows = np.concatenate([np.arange(1, shape.n_nodes), shape.n_nodes + labels])
        starts = np.zeros(shape.n_nodes + 1, dtype=np.int64)
        np.cumsum(np.bincount(above, minlength=shape.n_nodes), out=starts[1:])
        return cls(shape.n_nodes, starts, rows[np.argsort(above, kind="stable")].astype(np.int32))

    def search(self, margins_of: Callable[[Ids], Floats], size: int) -> Ids:
        """The best labels of one point, best first.

        Parameters
        ----------
        margins_of : callable
            wᵀx + b of some rows of weights.
        """
        beam, scores = np.zeros(1, np.int32), np.zeros(1, np.float32)
        labels, found = [np.empty(0, np.int32)], [np.empty(0, np.float32)]
        while len(beam):
            below = [self.members[self.starts[v] : self.starts[v + 1]] for v in beam.tolist()]
            rows = np.concatenate(below)
            above = np.repeat(scores, [len(each) for each in below])
            scores = above - np.maximum(0, 1 - margins_of(rows)) ** 2
            ends = rows >= self.n_nodes
            labels.append(rows[ends] - np.int32(self.n_nodes))
            found.append(scores[ends])
            beam, scores = _best(rows[~ends], scores[~ends], BEAM)
        return _best(np.concatenate(labels), np.concatenate(found), size)[0]


def _best(rows: Ids, scores: Floats, size: int) -> tuple[Ids, Floats]:
    order = np.lexsort((rows, -scores))[:size]
    return rows[order], scores[order]


def search_tree(
    X: sp.csr_matrix,
    weights: sp.csr_matrix | Packed,
    scale: Floats,
    biases: Floats,
    family: Family,
    out: Ids,
) -> None:
    """`Family.search` of each point; writes up to as many labels as `out` has columns."""
    _search(
        X.indptr,
        X.indices,
        X.data,
        weights.shape[1],
        weights.indptr,
        weights.indices,
        weights.data,
        scale,
        biases,
        family.n_nodes,
        family.starts,
        family.members,
        max(1, min(X.shape[0], n_threads())),
        out,
    )


@compiled(parallel=True)
def _search(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    data,
    n_features,
    starts,
    features,
    weights,
    scale,
    biases,
    n_nodes,
    below,
    members,
    n_chunks,
    out,
):
    n, scaled, size = indptr.shape[0] - 1, scale.shape[0] > 0, out.shape[1]
    for chunk in prange(n_chunks):
        x = np.zeros(n_features, dtype=np.float32)
        beam, held = np.zeros((2, BEAM), np.int32), np.zeros((2, BEAM), np.float32)
        best = np.zeros(size, np.float32)
        for i in range(chunk * n // n_chunks, (chunk + 1) * n // n_chunks):
            for j in stored(indptr, i):
                x[indices[j]] = data[j]
            beam[0, 0], held[0, 0] = 0, 0
            width, filled, now = 1, 0, 0
            while width:
                following = 0
                for place in range(width):
                    node = beam[now, place]
                    for m in range(below[node], below[node + 1]):
                        row = members[m]
                        margin = biases[row]
                        unit = scale[row] if scaled else np.float32(1)
                        for q in stored(starts, row):
                            margin += x[features[q]] * (value_at(weights, q) * unit)
                        short = max(np.float32(0), np.float32(1) - margin)
                        score = held[now, place] - short * short
                        if row >= n_nodes:
                            filled = _insert(out[i], best, filled, row - n_nodes, score)
                        else:
                            following = _insert(beam[1 - now], held[1 - now], following, row, score)
                width, now = following, 1 - now
            for j in stored(indptr, i):
                x[indices[j]] = 0


@compiled()
def _insert(ids, scores, filled, one, score):  # type: ignore[no-untyped-def]
    """Put one among the best, in falling order; of equal scores the smaller id is first."""
    place = filled
    while place > 0 and (
        scores[place - 1] < score or (scores[place - 1] == score and ids[place - 1] > one)
    ):
        if place < ids.shape[0]:
            ids[place], scores[place] = ids[place - 1], scores[place - 1]
        place -= 1
    if place < ids.shape[0]:
        ids[place], scores[place] = one, score
    return min(filled + 1, ids.shape[0])
