"""WSABIE: features and labels embedded in one space, trained with the WARP loss.

J. Weston, S. Bengio, N. Usunier: Large Scale Image Annotation: Learning to Rank with Joint
Word-Image Embeddings. Machine Learning 81, 2010; WSABIE: Scaling Up to Large Vocabulary Image
Annotation. IJCAI 2011.

A point x scores label l by f_l(x) = w_lᵀ (xᵀ V + b), with V (d, r) and w_l (r,). For a label y of
x, the weighted approximate-rank pairwise loss is

    Σ_{l not of x} L(rank_y) · max(0, 1 − f_y + f_l) / rank_y,   L(k) = 1 + 1/2 + … + 1/k,

where rank_y counts the labels l not of x with f_l > f_y − 1. A step of stochastic gradient descent
draws labels l until one violates the margin, after N draws, say. Then rank_y ≈ ⌊(m − 1) / N⌋ of m
candidates, and the step is L(⌊(m − 1) / N⌋) times the gradient of 1 − f_y + f_l. Rows of V and W
longer than `max_norm` are scaled back to it.

Where we differ:

- A step takes a point with all its labels, a negative for each, and moves V once: the sum of the
  published steps for single labels.
- The bias b is ours. Dense features are centred, and without b a model of them could not learn that
  some labels are more frequent.
- The step length falls linearly to zero over the epochs; theirs is constant, with early stopping.
- Labels that no training point carries are never drawn and never ranked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays, reals
from dxml._core.compiled import compiled
from dxml._core.params import Range, Seed
from dxml._core.random import spawn
from dxml._core.random_numba import below, next_bits
from dxml._core.scaling import FeatureScaler, ScalingChoice, fit_scaler
from dxml._core.stages import Newest
from dxml.base import Classifier
from dxml.baselines._linear import LinearMap, label_offset, rank_product
from dxml.progress import Progress
from dxml.topk import TopK

__all__ = ["WSABIE", "rank_weights"]

POINTS = 4096  # between two moments at which the state may be stored

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


def rank_weights(n: int) -> Floats:
    """L(0) … L(n): L(k) = Σ_{j ≤ k} 1/j, the cost of k wrong labels before a right one.

    >>> rank_weights(3).round(3).tolist()
    [0.0, 1.0, 1.5, 1.8329999446868896]
    """
    steps = 1 / np.arange(1, n + 1)
    return np.concatenate([[0], np.cumsum(steps)]).astype(np.float32)


@compiled(fastmath=True)
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for c in range(a.shape[0]):
        total += a[c] * b[c]
    return total


@compiled()
def _move(row, step, direction, max_norm):  # type: ignore[no-untyped-def]
    """row += step · direction, then scaled back to length `max_norm` if it is longer."""
    for c in range(row.shape[0]):
        row[c] += step * direction[c]
    length = np.sqrt(_dot(row, row))
    if length > max_norm:
        row *= max_norm / length


@compiled()
def _draw_violator(z, bar, W, candidates, owner, point, max_draws, state):  # type: ignore[no-untyped-def]
    """A label not of the point with f > bar, and the number of draws; -1 where none was found.

    `owner` has, for each label, the last visited point with it; labels of `point` are skipped.
    """
    for draw in range(1, max_draws + 1):
        label = candidates[below(next_bits(state), candidates.shape[0])]
        if owner[label] != point and _dot(W[label], z) > bar:
            return label, draw
    return -1, max_draws


@compiled()
def _descend(  # type: ignore[no-untyped-def]
    indptr, indices, data, starts, labels, order, candidates, costs, step, max_norm, max_draws,
    V, b, W, owner, state, total
):  # fmt: skip
    """Stochastic gradient descent over some points; returns `total` with their loss added."""
    for point in order:
        z = b.copy()
        for j in range(indptr[point], indptr[point + 1]):
            for c in range(z.shape[0]):
                z[c] += data[j] * V[indices[j], c]
        for p in range(starts[point], starts[point + 1]):
            owner[labels[p]] = point
        gradient = np.zeros_like(z)
        for p in range(starts[point], starts[point + 1]):
            label = labels[p]
            score = _dot(W[label], z)
            wrong, draws = _draw_violator(
                z, score - np.float32(1), W, candidates, owner, point, max_draws, state
            )
            if wrong < 0:
                continue
            cost = costs[(candidates.shape[0] - 1) // draws]
            total += cost * (1 - score + _dot(W[wrong], z))
            for c in range(z.shape[0]):
                gradient[c] += cost * (W[label, c] - W[wrong, c])
            _move(W[label], step * cost, z, max_norm)
            _move(W[wrong], -step * cost, z, max_norm)
        for j in range(indptr[point], indptr[point + 1]):
            _move(V[indices[j]], step * data[j], gradient, max_norm)
        _move(b, step, gradient, max_norm)
    return total


class WSABIE(Classifier):
    """A low-rank linear ranking function trained by the WARP loss.

    Points without labels are left out.

    Attributes
    ----------
    map_ : LinearMap
        V and b.
    label_vectors_ : float32 array of shape (n_labels, dim)
        W, zero for labels without a training point.
    history_ : list of float
        Mean WARP loss of a label of a point in each epoch.

    Examples
    --------
    >>> from dxml.data import make_planted
    >>> data = make_planted(300, 200, 10, random_state=0)
    >>> model = WSABIE(dim=20, epochs=5).fit(data.X, data.Y)
    >>> model.predict_topk(data.X[:2], k=3).indices.shape
    (2, 3)
    """

    method: ClassVar[str] = "wsabie"
    summary: ClassVar[str] = "low-rank linear ranking of labels, trained by the WARP loss"
    curve: ClassVar[tuple[str, str] | None] = ("epoch", "mean WARP loss of a label")

    def __init__(
        self,
        *,
        dim: Annotated[int, Range(1), "size r of the shared space"] = 100,
        epochs: Annotated[int, Range(1), "passes over the training points"] = 10,
        learning_rate: Annotated[
            float, Range(0, open_low=True), "first step length; falls linearly to 0"
        ] = 0.01,
        max_norm: Annotated[
            float, Range(0, open_low=True), "largest length of a row of V or W"
        ] = 3.0,
        max_draws: Annotated[
            int, Range(1), "most draws to find a label that violates the margin"
        ] = 1000,
        scaling: ScalingChoice = "auto",
        random_state: Seed = 0,
    ) -> None:
        self.dim = dim
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.max_norm = max_norm
        self.max_draws = max_draws
        self.scaling = scaling
        self.random_state = random_state

    def _fit(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
        self.scaler_ = fit_scaler(X, self.scaling)
        X = self.scaler_.transform(X)
        rng = spawn(self.random_state, "start", "order")
        candidates = np.flatnonzero(self.label_frequency_).astype(np.int32)
        names = ("dim", "epochs", "learning_rate", "max_norm", "max_draws")
        inputs = {"X": X, "Y": Y, **{name: getattr(self, name) for name in names}}
        inputs["start"] = rng["start"].bit_generator.state
        newest = Newest("epochs", inputs, rng["order"])
        now = newest.found or self._begin(X, candidates, rng)
        V, b, W, owner, state = (now[name] for name in ("V", "b", "W", "owner", "state"))
        state = state.view(np.uint64)
        self.history_: list[float] = now["history"].tolist()
        order, total = now["order"], float(now["total"][0])  # what is left of an epoch, its loss
        labelled = np.flatnonzero(np.diff(Y.indptr))
        max_draws = min(self.max_draws, max(len(candidates) - 1, 1))
        costs = rank_weights(len(candidates))
        with progress.stage("epochs", self.epochs, "epochs") as stage:
            stage.advance(len(self.history_))
            while len(self.history_) < self.epochs:
                step = np.float32(self.learning_rate * (1 - len(self.history_) / self.epochs))
                if len(order) == 0:
                    order = rng["order"].permutation(labelled)
                while len(order):
                    total = _descend(
                        *(X.indptr, X.indices, X.data, Y.indptr, Y.indices),
                        *(order[:POINTS], candidates, costs),
                        *(step, np.float32(self.max_norm), max_draws, V, b, W, owner, state, total),
                    )
                    order = order[POINTS:]
                    if len(order):
                        newest.keep(self._now(V, b, W, owner, state, order, total))
                loss, total = total / max(Y.nnz, 1), 0.0
                self.history_.append(float(loss))
                newest.keep(self._now(V, b, W, owner, state, order, total))
                stage.advance()
                stage.note(f"loss {loss:.4f}")
        self.map_, self.label_vectors_ = LinearMap(V, b), W

    def _begin(
        self, X: sp.csr_matrix, candidates: Ids, rng: Mapping[str, np.random.Generator]
    ) -> dict[str, npt.NDArray[Any]]:
        """The state before the first epoch."""
        self.history_ = []
        V = _start(rng["start"], X.shape[1], self.dim)
        W = np.zeros((self.n_labels_, self.dim), dtype=np.float32)
        W[candidates] = _start(rng["start"], len(candidates), self.dim)
        b = np.zeros(self.dim, dtype=np.float32)
        owner = np.full(self.n_labels_, -1, dtype=np.int64)
        state = rng["order"].integers(1, 2**63, 1, dtype=np.uint64)
        return self._now(V, b, W, owner, state, np.empty(0, np.int64), 0.0)

    def _now(
        self,
        V: Floats,
        b: Floats,
        W: Floats,
        owner: npt.NDArray[np.int64],
        state: npt.NDArray[np.uint64],
        order: npt.NDArray[np.int64],
        total: float,
    ) -> dict[str, npt.NDArray[Any]]:
        arrays: dict[str, npt.NDArray[Any]]
        arrays = {"V": V, "b": b, "W": W, "owner": owner, "order": order}
        arrays |= {"state": state.view(np.int64), "total": np.array([total])}
        return {**arrays, "history": np.array(self.history_)}

    def _rank(self, X: sp.csr_matrix, k: int) -> TopK:
        codes = self.map_.apply(self.scaler_.transform(X))
        offset = label_offset(np.zeros(self.n_labels_), self.label_frequency_)
        decoder = np.ascontiguousarray(self.label_vectors_.T)
        return rank_product(codes, decoder, offset, k, self._tie_place)

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        parts = {**self.scaler_.arrays(), **self.map_.arrays()}
        return {"history": self.history_}, {"label_vectors": self.label_vectors_, **parts}

    def _restore(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        self.history_ = reals(config["history"], "history")
        self.scaler_ = FeatureScaler.from_arrays(arrays, self.n_features_in_)
        self.map_ = LinearMap.from_arrays(arrays, self.n_features_in_)
        dim = len(self.map_.bias)
        self.label_vectors_ = arrays.floats("label_vectors", self.n_labels_, dim)


def _start(rng: np.random.Generator, rows: int, dim: int) -> Floats:
    """Vectors of length about 1, at random."""
    return rng.standard_normal((rows, dim), dtype=np.float32) / np.float32(np.sqrt(dim))
