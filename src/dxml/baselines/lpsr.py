"""LPSR: label partitioning for sublinear ranking.

J. Weston, A. Makadia, H. Yee: Label Partitioning for Sublinear Ranking. ICML 2013.

The points are partitioned, and each partition keeps its most relevant labels. A base scorer ranks
only those. A prediction takes one pass through the tree and a few products,
instead of one product for every label. As in the paper the partitions are the leaves of a
hierarchical k-means tree, here with two children: a point goes to the nearer of the centres c₀ and
c₁, that is, by the sign of

    (c₁ - c₀)·x + (‖c₀‖² - ‖c₁‖²) / 2.

A leaf keeps the `leaf_labels` labels that most of its training points carry. The base is, as in the
published results, 1-vs-All (`dxml.baselines.one_vs_all`), or for many labels multinomial naive
Bayes, with x_j read as the count of feature j and N_lj its sum over the points of label l:

    s_l(x) = log n_l / n + Σ_j x_j log (N_lj + a) / (Σ_j N_lj + a d).

Where we differ: the paper weighs a point in k-means by how well the base ranks its labels, and a
label in a leaf by the base's rank of it. Both weights are one here, which saves ranking every
training point by the base.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.compiled import compiled, prange
from dxml._core.params import Range, Seed
from dxml._core.random import spawn
from dxml._core.scaling import FeatureScaler, ScalingChoice, fit_scaler
from dxml._core.stages import Pieces, remembered, unpacked_csr
from dxml._core.storage import pack_csr
from dxml._core.threads import blas_threads
from dxml.base import Classifier
from dxml.baselines._linear import Loss
from dxml.baselines._tree import Forest, Tree, leaf_shares, read_only
from dxml.baselines.one_vs_all import OneVsAll
from dxml.progress import Progress
from dxml.topk import TopK, insert_best

__all__ = ["LPSR", "Scorer", "kmeans_tree", "naive_bayes"]

MIN_LABELS_BAYES = 10_000  # labels from which the base is naive Bayes, as in the published results
ITERATIONS = 20  # of 2-means in a node
_N_CHUNKS = 64  # of a batch

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Scorer:
    """The base: ``s_l(x) = w_l·x + length_l ‖x⁺‖₁ + bias_l``, with x⁺ the positive part of x.

    Attributes
    ----------
    weights : csr_matrix of shape (n_labels, n_features), float32
    length, bias : float32 arrays of shape (n_labels,)
    """

    weights: sp.csr_matrix
    length: Floats
    bias: Floats

    def rank(
        self, X: sp.csr_matrix, leaf: Ids, kept: sp.csr_matrix, k: int, tie_order: Ids
    ) -> TopK:
        """The k best of the labels in row ``leaf[i]`` of `kept`, for each row i of X."""
        ids = np.full((X.shape[0], k), -1, dtype=np.int32)
        scores = np.zeros((X.shape[0], k), dtype=np.float32)
        row = (X.indptr, X.indices, X.data, X.shape[1], leaf)
        starts, labels = read_only(kept.indptr, kept.indices)
        w = read_only(self.weights.indptr, self.weights.indices, self.weights.data)
        length, bias = read_only(self.length, self.bias)
        _rank(*row, starts, labels, w[0], w[1], w[2], length, bias, tie_order, ids, scores)
        return TopK(ids, scores)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays for a saved model."""
        packed = pack_csr("base.weights", self.weights)
        return {**packed, "base.length": self.length, "base.bias": self.bias}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_features: int, n_labels: int) -> Scorer:
        """The inverse of `arrays`."""
        weights = arrays.csr("base.weights", n_labels, n_features)
        length = arrays.floats("base.length", n_labels)
        return cls(weights, length, arrays.floats("base.bias", n_labels, never=True))


@compiled(parallel=True)
def _rank(  # type: ignore[no-untyped-def]
    indptr, features, values, d, leaf, starts, labels, w_starts, w_features, w_values, length, bias,
    tie_order, ids, scores,
):  # fmt: skip
    n = leaf.shape[0]
    n_pieces = min(n, _N_CHUNKS)
    for piece in prange(n_pieces):
        x = np.zeros(d, dtype=np.float32)
        for i in range(piece * n // n_pieces, (piece + 1) * n // n_pieces):
            total = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                x[features[p]] = values[p]
                total += max(values[p], 0)
            filled = 0
            for q in range(starts[leaf[i]], starts[leaf[i] + 1]):
                label = labels[q]
                score = bias[label] + length[label] * total
                for p in range(w_starts[label], w_starts[label + 1]):
                    score += w_values[p] * x[w_features[p]]
                score = np.float32(score)
                filled = insert_best(ids[i], scores[i], filled, label, score, tie_order)
            for p in range(indptr[i], indptr[i + 1]):
                x[features[p]] = 0


def naive_bayes(X: sp.csr_matrix, Y: sp.csr_matrix, smoothing: float) -> Scorer:
    """Multinomial naive Bayes, one class a label; a point counts for each of its labels.

    Parameters
    ----------
    X : csr_matrix of shape (n_samples, n_features)
        Counts or weights; negative values count as 0.
    Y : csr_matrix of shape (n_samples, n_labels)
    smoothing : float
        a: added to the count of every feature in every label.

    Notes
    -----
    With N_l = Σ_j N_lj the score is ``log n_l / n + Σ_j x_j log(1 + N_lj / a)
    - ‖x‖₁ log(N_l / a + d)``, whose weights are zero where N_lj is.
    """
    positive = X.multiply(X > 0).tocsr().astype(np.float32)
    counts = sp.csr_matrix(Y.T.tocsr().astype(np.float32) @ positive)
    totals = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
    counts.data = np.log1p(counts.data / np.float32(smoothing))
    frequency = np.bincount(Y.indices, minlength=Y.shape[1])
    prior = np.log(np.maximum(frequency, 1) / Y.shape[0])
    length = -np.log(totals / smoothing + X.shape[1])
    counts.indptr = counts.indptr.astype(np.int64)
    return Scorer(counts, length.astype(np.float32), prior.astype(np.float32))


def _remembered_bayes(X: sp.csr_matrix, Y: sp.csr_matrix, smoothing: float) -> Scorer:
    found = remembered(
        "bayes",
        {"X": X, "Y": Y, "smoothing": smoothing},
        lambda: naive_bayes(X, Y, smoothing).arrays(),
    )
    weights = unpacked_csr("base.weights", found)
    return Scorer(weights, found["base.length"], found["base.bias"])


def one_vs_all(
    X: sp.csr_matrix,
    Y: sp.csr_matrix,
    loss: Loss,
    C: float | None,
    seed: int | None,
    progress: Progress,
) -> Scorer:
    """`OneVsAll` as the base; its weights by labels."""
    base = OneVsAll(loss=loss, C=C, scaling="none", random_state=seed)
    base.fit(X, Y, progress=progress)
    weights = base.weights_.T.tocsr()
    weights.indptr = weights.indptr.astype(np.int64)
    return Scorer(weights, np.zeros(Y.shape[1], np.float32), base.offset_)


def two_means(X: sp.csr_matrix, rng: np.random.Generator) -> npt.NDArray[np.float64] | None:
    """Two centres, of shape (2, n_features), by Lloyd's iterations from two rows of X.

    None where all rows have the same nearest centre.
    """
    chosen = rng.choice(X.shape[0], 2, replace=False)
    centres = X[chosen].toarray().astype(np.float64)
    side = np.zeros(X.shape[0], dtype=bool)
    for step in range(ITERATIONS):
        before, side = side, np.asarray(X @ (centres[1] - centres[0]) + _bias(centres)) > 0
        if not 0 < side.sum() < len(side):
            return None
        if step and np.array_equal(side, before):
            break
        members = np.stack([~side, side]).astype(np.float64)
        centres = np.asarray((X.T @ members.T).T) / members.sum(axis=1, keepdims=True)
    return centres


def kmeans_tree(X: sp.csr_matrix, leaf_size: int, rng: np.random.Generator, n_labels: int) -> Tree:
    """Split X by 2-means until a node has at most `leaf_size` points; leaves get no labels yet."""
    parts, children, bias = [np.arange(X.shape[0])], [(-1, -1)], [0.0]
    splits = [sp.csr_matrix((1, X.shape[1]), dtype=np.float32)]
    node = 0
    inputs = {"X": X, "leaf_size": leaf_size, "threads": blas_threads()}
    with Pieces("nodes", inputs, rng) as pieces:
        while node < len(parts):  # breadth first: children come after their node
            points = parts[node]
            if len(points) > leaf_size:
                split = pieces.next(partial(_split, X[points], rng))
                if len(split["bias"]):
                    w, bias[node] = unpacked_csr("w", split), float(split["bias"][0])
                    above = np.asarray(X[points] @ w.T.toarray()).ravel() + bias[node] > 0
                    children[node], splits[node] = (len(parts), len(parts) + 1), w
                    for part in (points[~above], points[above]):
                        parts.append(part)
                        children.append((-1, -1))
                        bias.append(0.0)
                        splits.append(sp.csr_matrix((1, X.shape[1]), dtype=np.float32))
            node += 1
    return Tree(
        np.asarray(children, dtype=np.int32),
        np.asarray(bias, dtype=np.float32),
        sp.vstack(splits, format="csr"),
        sp.csr_matrix((len(bias), n_labels), dtype=np.float32),
    )


def _split(X: sp.csr_matrix, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    """The hyperplane between two centres; without a bias where there is none."""
    centres = two_means(X, rng)
    w = np.zeros(X.shape[1]) if centres is None else centres[1] - centres[0]
    bias = [] if centres is None else [_bias(centres)]
    return {**pack_csr("w", sp.csr_matrix(w[None].astype(np.float32))), "bias": np.array(bias)}


def _bias(centres: npt.NDArray[np.float64]) -> float:
    """(‖c₀‖² - ‖c₁‖²) / 2."""
    return float(centres[0] @ centres[0] - centres[1] @ centres[1]) / 2


class LPSR(Classifier):
    """A base scorer that ranks only the labels of the partition in which a point lies.

    Attributes
    ----------
    forest_ : Forest
        One tree; its leaves hold the share of their points that carry each kept label.
    base_ : Scorer
    scaler_ : FeatureScaler

    Examples
    --------
    >>> from dxml.data import make_planted
    >>> data = make_planted(200, 100, 10, random_state=0)
    >>> model = LPSR().fit(data.X, data.Y)
    >>> model.predict_topk(data.X[:2], k=3).indices.shape
    (2, 3)
    """

    method: ClassVar[str] = "lpsr"
    summary: ClassVar[str] = (
        "LPSR (ICML 2013): a base scorer that ranks only the labels of a point's partition"
    )

    def __init__(
        self,
        *,
        base: Annotated[
            Literal["auto", "linear", "naive_bayes"],
            "scorer; auto: linear 1-vs-All, or naive Bayes from 10,000 labels on",
        ] = "auto",
        leaf_size: Annotated[
            int, Range(1), "a node with at most this many points is a leaf"
        ] = 1000,
        leaf_labels: Annotated[int, Range(1), "labels that a leaf keeps"] = 1000,
        loss: Annotated[Loss, "loss of a label's linear classifier"] = "squared_hinge",
        C: Annotated[
            float | None,
            Range(0, open_low=True),
            "weight of the loss relative to ‖w‖²/2; None: the default of 1-vs-All",
        ] = None,
        smoothing: Annotated[
            float, Range(0, open_low=True), "added to every count in naive Bayes"
        ] = 0.01,
        scaling: ScalingChoice = "auto",
        random_state: Seed = 0,
    ) -> None:
        self.base = base
        self.leaf_size = leaf_size
        self.leaf_labels = leaf_labels
        self.loss = loss
        self.C = C
        self.smoothing = smoothing
        self.scaling = scaling
        self.random_state = random_state

    def _fit(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
        linear = self.base == "linear" or (self.base == "auto" and Y.shape[1] < MIN_LABELS_BAYES)
        rows = (
            self.scaling == "auto" and not linear
        )  # naive Bayes needs counts, which are not negative
        self.scaler_ = fit_scaler(X, "rows" if rows else self.scaling)
        X = self.scaler_.transform(X)
        if linear:
            self.base_ = one_vs_all(X, Y, self.loss, self.C, self.random_state, progress)
        else:
            with progress.stage("naive Bayes"):
                self.base_ = _remembered_bayes(X, Y, self.smoothing)
        with progress.stage("partition"):
            self.forest_ = self._partition(X, Y)

    def _partition(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> Forest:
        """The tree, and the labels of its leaves."""
        rng = spawn(self.random_state, "partition")["partition"]
        tree = kmeans_tree(X, self.leaf_size, rng, Y.shape[1])
        leaf_of = Forest.join([tree]).route(X)[:, 0]
        leaves = leaf_shares(leaf_of, len(tree.bias), Y, self.leaf_labels, self._tie_place)
        return Forest.join([Tree(tree.children, tree.bias, tree.splits, leaves)])

    def _rank(self, X: sp.csr_matrix, k: int) -> TopK:
        X = self.scaler_.transform(X)
        leaf = np.ascontiguousarray(self.forest_.route(X)[:, 0])
        return self.base_.rank(X, leaf, self.forest_.leaves, k, self._tie_place)

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        return {}, {**self.scaler_.arrays(), **self.forest_.arrays(), **self.base_.arrays()}

    def _restore(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        self.scaler_ = FeatureScaler.from_arrays(arrays, self.n_features_in_)
        self.forest_ = Forest.from_arrays(arrays, self.n_features_in_, self.n_labels_)
        if self.forest_.n_trees != 1:
            raise ValueError(f"'tree.roots' must have 1 entry, has {self.forest_.n_trees}")
        self.base_ = Scorer.from_arrays(arrays, self.n_features_in_, self.n_labels_)
