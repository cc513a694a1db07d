"""FastXML: an ensemble of trees whose nodes learn to rank.

Y. Prabhu, M. Varma: FastXML: A Fast, Accurate and Stable Tree-classifier for eXtreme Multi-label
Learning. KDD 2014.

A node sends a point x with labels y to the side δ = ±1 and ranks labels on either side by one list
r±, so that

    min  ‖w‖₁ + Σᵢ C_δ(δᵢ) log(1 + exp(-δᵢ w·xᵢ)) - C_r Σᵢ nDCG(r^δᵢ, yᵢ)      over w, δ, r±

with ``nDCG(r, y) = Σ_l y_l / log(1 + rank of l in r) / Σ_{l ≤ ‖y‖₀} 1 / log(1 + l)``. As in the
paper, δ and r± are optimised alternately from random sides with w = 0. The best list of a side
ranks labels by the sum of ``1 / Σ_{l ≤ ‖y‖₀} 1 / log(1 + l)`` over the side's points with that
label. Then a point changes sides if the other list ranks its labels better. After convergence w is
fitted once, and its sign splits the node. A leaf stores the share of its points with each label. A
prediction is the mean over the trees.

Where we differ: a label without a point on a side is not in the side's list and adds nothing,
whereas the paper ranks all labels. The costs of the two sides are C · n / n_δ, which balances
sides of different size. Points without labels are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays, real
from dxml._core.compiled import compiled
from dxml._core.params import Range, Seed
from dxml._core.random import spawn, spawn_seed
from dxml._core.random_numba import next_bits
from dxml._core.scaling import FeatureScaler, ScalingChoice, fit_scaler
from dxml._core.stages import Pieces
from dxml._core.threads import n_threads
from dxml.base import Classifier
from dxml.baselines._sparse_logistic import columns_of, sparse_logistic
from dxml.baselines._tree import Forest, Tree, leaf_shares
from dxml.metrics import mean_precision
from dxml.progress import Progress
from dxml.topk import TopK

__all__ = ["FastXML"]

MAX_ROUNDS = 20  # of alternating between δ and r±
NEWTON_STEPS = 20
COSTS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""The C tried on held-out points, in this order."""
N_TRIAL_TREES = 10  # trees grown for each C that is tried
MAX_HELD_OUT, MAX_TRAINING = 2000, 5000  # points used to choose C, which bounds the time
TOLERANCE = 0.1  # of the logistic regression: its violation, relative to that of w = 0


@compiled(nogil=True)
def rank_gains(points, side, wanted, y_indptr, labels, ideal, gain, total):  # type: ignore[no-untyped-def]
    """Rank the labels of one side: ``gain[l]`` becomes 1 / log₂(1 + rank of l).

    `total` is a work array of zeros, one per label. Returns the labels in the list.
    """
    n_listed = 0
    size = 0
    for i in range(points.shape[0]):
        if side[i] == wanted:
            size += y_indptr[points[i] + 1] - y_indptr[points[i]]
    listed = np.empty(size, dtype=np.int32)
    for i in range(points.shape[0]):
        if side[i] != wanted:
            continue
        for p in range(y_indptr[points[i]], y_indptr[points[i] + 1]):
            if total[labels[p]] == 0:
                listed[n_listed] = labels[p]
                n_listed += 1
            total[labels[p]] += ideal[points[i]]
    listed = listed[:n_listed]
    order = np.argsort(-total[listed], kind="mergesort")
    for rank in range(n_listed):
        gain[listed[order[rank]]] = 1 / np.log2(rank + 2.0)
    for label in listed:
        total[label] = 0
    return listed


@compiled(nogil=True)
def ranked_sides(points, y_indptr, labels, ideal, state, gains, total):  # type: ignore[no-untyped-def]
    """δ of each point: the sides at which the alternation converges from a random start.

    Parameters
    ----------
    points : rows of Y in the node
    ideal : float64 array of shape (n_samples,)
        1 / Σ_{l ≤ ‖y‖₀} 1 / log₂(1 + l) of every point.
    state : uint64 array of shape (1,)
    gains : float64 work array of shape (2, n_labels), all zero before and after
    total : float64 work array of shape (n_labels,), likewise

    Returns
    -------
    int8 array of -1 and 1
    """
    n = points.shape[0]
    side = np.empty(n, dtype=np.int8)
    for i in range(n):
        side[i] = 1 if next_bits(state) >> np.uint64(63) else -1
    for _ in range(MAX_ROUNDS):
        below = rank_gains(points, side, -1, y_indptr, labels, ideal, gains[0], total)
        above = rank_gains(points, side, 1, y_indptr, labels, ideal, gains[1], total)
        moved = 0
        for i in range(n):
            better = 0.0
            for p in range(y_indptr[points[i]], y_indptr[points[i] + 1]):
                better += gains[1, labels[p]] - gains[0, labels[p]]
            if better * side[i] * ideal[points[i]] < -1e-9:
                side[i] = -side[i]
                moved += 1
        for label in below:
            gains[0, label] = 0
        for label in above:
            gains[1, label] = 0
        if moved == 0:
            break
    return side


@compiled(nogil=True)
def _part(points, w, found, indptr, features, values, dense):  # type: ignore[no-untyped-def]
    """Move the points with w·x + b > 0 to the end; returns how many are before them.

    The sum has the order and precision of `Forest.route`, so that a training point reaches the
    leaf in which it was counted. `dense` is a work array of zeros, one per feature.
    """
    side = np.empty(points.shape[0], dtype=np.bool_)
    for i in range(points.shape[0]):
        for p in range(indptr[points[i]], indptr[points[i] + 1]):
            dense[features[p]] = values[p]
        total = float(np.float32(w[-1]))
        for j in range(found.shape[0]):
            if w[j] != 0:
                total += np.float32(w[j]) * dense[found[j]]
        side[i] = total > 0
        for p in range(indptr[points[i]], indptr[points[i] + 1]):
            dense[features[p]] = 0
    parted = np.concatenate((points[~side], points[side]))
    points[:] = parted
    return points.shape[0] - side.sum()


@compiled(nogil=True)
def _enlarged(array, size):  # type: ignore[no-untyped-def]
    """`array` itself, or a copy of twice `size` entries."""
    if size <= array.shape[0]:
        return array
    larger = np.empty(2 * size, dtype=array.dtype)
    larger[: array.shape[0]] = array
    return larger


@compiled(nogil=True)
def grow(  # type: ignore[no-untyped-def]
    indptr, features, values, d, y_indptr, labels, n_labels, ideal, leaf_size, C, seed
):
    """One tree: children, bias, the splits by rows, and the leaf of each training point."""
    n = indptr.shape[0] - 1
    state = np.array([seed], dtype=np.uint64)
    gains, total = np.zeros((2, n_labels)), np.zeros(n_labels)
    slot, dense = np.full(d, -1, dtype=np.int32), np.zeros(d, dtype=np.float32)
    children = np.full((max(2 * n, 1), 2), -1, dtype=np.int32)
    bias = np.zeros(children.shape[0], dtype=np.float32)
    w_indptr = np.zeros(children.shape[0] + 1, dtype=np.int64)
    w_features, w_values = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.float32)
    points, leaf_of = np.arange(n), np.zeros(n, dtype=np.int32)
    begin, end = np.zeros(children.shape[0], np.int64), np.zeros(children.shape[0], np.int64)
    end[0] = n
    n_nodes, node = 1, 0
    while node < n_nodes:  # breadth first: children come after their node
        here = points[begin[node] : end[node]]
        w_indptr[node + 1] = w_indptr[node]
        cut = 0
        if here.shape[0] > leaf_size:
            side = ranked_sides(here, y_indptr, labels, ideal, state, gains, total)
            above = (side > 0).sum()
            if 0 < above < side.shape[0]:
                found, starts, rows, cells = columns_of(here, indptr, features, values, slot)
                share = np.where(side > 0, above, side.shape[0] - above) / side.shape[0]
                w = sparse_logistic(
                    starts, rows, cells, side, C / share, TOLERANCE, NEWTON_STEPS, state
                )
                cut = _part(here, w, found, indptr, features, values, dense)
        if 0 < cut < here.shape[0]:
            bias[node] = w[-1]
            at = w_indptr[node]
            w_features = _enlarged(w_features, at + found.shape[0])
            w_values = _enlarged(w_values, at + found.shape[0])
            for j in range(found.shape[0]):
                if w[j] != 0:
                    w_features[at], w_values[at] = found[j], w[j]
                    at += 1
            w_indptr[node + 1] = at
            for k in range(2):
                children[node, k] = n_nodes + k
            begin[n_nodes], end[n_nodes] = begin[node], begin[node] + cut
            begin[n_nodes + 1], end[n_nodes + 1] = begin[node] + cut, end[node]
            n_nodes += 2
        else:
            leaf_of[here] = node
        node += 1
    w_nnz = w_indptr[n_nodes]
    return (
        children[:n_nodes].copy(),
        bias[:n_nodes].copy(),
        w_indptr[: n_nodes + 1].copy(),
        w_features[:w_nnz].copy(),
        w_values[:w_nnz].copy(),
        leaf_of,
    )


class FastXML(Classifier):
    """An ensemble of trees whose splits are optimised for nDCG.

    Attributes
    ----------
    forest_ : Forest
        The trees.
    C_ : float
        The value in use: given, or chosen on held-out points.
    scaler_ : FeatureScaler

    Examples
    --------
    >>> from dxml.data import make_planted
    >>> data = make_planted(200, 100, 10, random_state=0)
    >>> model = FastXML(n_trees=5).fit(data.X, data.Y)
    >>> model.predict_topk(data.X[:2], k=3).indices.shape
    (2, 3)
    """

    method: ClassVar[str] = "fastxml"
    summary: ClassVar[str] = "FastXML (KDD 2014): an ensemble of trees whose splits learn to rank"

    def __init__(
        self,
        *,
        n_trees: Annotated[int, Range(1), "trees that are averaged"] = 50,
        leaf_size: Annotated[int, Range(1), "a node with at most this many points is a leaf"] = 10,
        leaf_labels: Annotated[int, Range(1), "labels that a leaf keeps"] = 100,
        C: Annotated[
            float | None,
            Range(0, open_low=True),
            "cost of a point on the wrong side, against ‖w‖₁; None: chosen on held-out points",
        ] = None,
        scaling: ScalingChoice = "auto",
        random_state: Seed = 0,
    ) -> None:
        self.n_trees = n_trees
        self.leaf_size = leaf_size
        self.leaf_labels = leaf_labels
        self.C = C
        self.scaling = scaling
        self.random_state = random_state

    def _fit(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
        labelled = np.diff(Y.indptr) > 0
        X, Y = X[labelled], Y[labelled]
        self.scaler_ = fit_scaler(X, self.scaling)
        X = self.scaler_.transform(X)
        self.C_ = self.C if self.C is not None else self._choose(X, Y, progress)
        with progress.stage("trees", self.n_trees, "trees") as stage:
            trees = []
            for tree in self._grow_all(X, Y, self.C_, self.n_trees):
                trees.append(tree)
                stage.advance()
        self.forest_ = Forest.join(trees)

    def _choose(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> float:
        """C by the mean of P@1, P@3 and P@5 of a few trees; larger C are tried until it falls."""
        order = spawn(self.random_state, "validation")["validation"].permutation(X.shape[0])
        n_held = min(len(order) // 4, MAX_HELD_OUT)
        held, kept = np.sort(order[:n_held]), np.sort(order[n_held:][:MAX_TRAINING])
        if n_held == 0:
            return 1.0
        depth = min(5, Y.shape[1])
        scores: list[float] = []
        with progress.stage("validation", unit="values of C") as stage:
            for C in COSTS:
                forest = Forest.join(list(self._grow_all(X[kept], Y[kept], C, N_TRIAL_TREES)))
                ranking = forest.mean_of_leaves(X[held], depth, self._tie_place)
                scores.append(mean_precision(Y[held], ranking))
                stage.advance()
                if scores[-1] < max(scores):
                    break
        return COSTS[int(np.argmax(scores))]

    def _grow_all(
        self, X: sp.csr_matrix, Y: sp.csr_matrix, C: float, n_trees: int
    ) -> Iterator[Tree]:
        """The trees, in order; each is one task for one thread."""
        counts = np.diff(Y.indptr)
        discounts = 1 / np.log2(2 + np.arange(int(counts.max(initial=1))))
        ideal = 1 / np.cumsum(discounts)[counts - 1]
        sides = (X.shape[1], Y.indptr.astype(np.int64), Y.indices, Y.shape[1])
        data = (X.indptr.astype(np.int64), X.indices, X.data, *sides, ideal)
        entropy = spawn_seed(self.random_state, "trees")

        inputs = {"X": X, "Y": Y, "C": C, "seed": entropy}
        inputs |= {"leaf_size": self.leaf_size, "leaf_labels": self.leaf_labels}

        def one(number: int) -> Tree:
            seed = np.uint64(spawn_seed(entropy, f"tree {number}"))
            children, bias, indptr, features, weights, leaf_of = grow(
                *data, self.leaf_size, C, seed
            )
            splits = sp.csr_matrix((weights, features, indptr), shape=(len(bias), X.shape[1]))
            leaves = leaf_shares(leaf_of, len(bias), Y, self.leaf_labels, self._tie_place)
            return Tree(children, bias, splits, leaves)

        with Pieces("trees", inputs) as pieces:
            n_stored = 0
            while n_stored < n_trees and (stored := pieces.take()) is not None:
                n_stored += 1
                yield Tree.from_arrays(stored)
            with ThreadPoolExecutor(n_threads()) as pool:
                for tree in pool.map(one, range(n_stored, n_trees)):
                    pieces.add(tree.arrays())
                    yield tree

    def _rank(self, X: sp.csr_matrix, k: int) -> TopK:
        return self.forest_.mean_of_leaves(self.scaler_.transform(X), k, self._tie_place)

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        return {"C": self.C_}, {**self.scaler_.arrays(), **self.forest_.arrays()}

    def _restore(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        self.C_ = real(config, "C")
        self.scaler_ = FeatureScaler.from_arrays(arrays, self.n_features_in_)
        self.forest_ = Forest.from_arrays(arrays, self.n_features_in_, self.n_labels_)
