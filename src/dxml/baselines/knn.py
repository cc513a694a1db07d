"""k-NN: the labels of the nearest training points, by the cosine of their features.

T. Cover, P. Hart: Nearest Neighbor Pattern Classification. IEEE Transactions on Information
Theory 13(1), 1967; as the extreme classification literature uses it, on all labels at once:

    s(x)_l = Σ_{i ∈ N_k(x)} w_i y_il / Σ_{i ∈ N_k(x)} w_i,   w_i = cos(x, x_i)^p

with N_k(x) the k training points of largest cosine. p = 0 is the plain vote.

Where we differ: a training point whose cosine is not positive is no neighbour, and a point without
any neighbour gets the most frequent labels. k is chosen on held-out points unless it is given.

The search itself is `dxml._neighbors.cosine`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import HELP, Arrays, whole
from dxml._core.params import Range, Seed
from dxml._core.random import spawn
from dxml._core.scaling import FeatureScaler, ScalingChoice, fit_scaler
from dxml._core.storage import pack_csr
from dxml._neighbors.cosine import Neighbours, cosine_weights, unit_rows
from dxml._neighbors.voting import vote
from dxml.base import Classifier
from dxml.exceptions import ModelFormatError
from dxml.metrics import mean_precision
from dxml.progress import Progress
from dxml.topk import TopK

__all__ = ["KNN"]

N_NEIGHBORS_TRIED = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100)
"""The k tried on the held-out points."""
MAX_HELD_OUT = 2000  # points; more do not change the choice
LONGEST = 1.001  # value in a row of length 1, but for rounding

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


class KNN(Classifier):
    """The vote of the training points with the most similar features.

    Attributes
    ----------
    n_neighbors_ : int
        The k in use: given, or chosen on held-out points.
    points_ : csr_matrix of shape (n_labelled, n_features)
        Scaled features of the training points that have a label and a feature.
    train_labels_ : csr_matrix of shape (n_labelled, n_labels)

    Examples
    --------
    >>> from dxml.data import make_planted
    >>> data = make_planted(300, 200, 10, random_state=0)
    >>> model = KNN(n_neighbors=5).fit(data.X, data.Y)
    >>> model.predict_topk(data.X[:2], k=3).indices.shape
    (2, 3)
    """

    method: ClassVar[str] = "knn"
    summary: ClassVar[str] = "k nearest training points by the cosine of their features vote"

    def __init__(
        self,
        *,
        n_neighbors: Annotated[
            int | None, Range(1), "neighbours k that vote; None: chosen on held-out points"
        ] = None,
        power: Annotated[
            float, Range(0), "the weight of a vote is its cosine to this power; 0: equal weights"
        ] = 4.0,
        validation_fraction: Annotated[
            float, Range(0.01, 0.9), "share of the points held out to choose k, at most 2,000"
        ] = 0.1,
        scaling: ScalingChoice = "auto",
        random_state: Seed = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.power = power
        self.validation_fraction = validation_fraction
        self.scaling = scaling
        self.random_state = random_state

    def _fit(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
        self.scaler_ = fit_scaler(X, self.scaling)
        points = unit_rows(self.scaler_.transform(X))
        useful = (np.diff(Y.indptr) > 0) & (np.diff(points.indptr) > 0)
        kept = (points, Y) if useful.all() else (points[useful], Y[useful])
        self.points_, self.train_labels_ = kept
        self.n_neighbors_ = self.n_neighbors or self._choose(progress)
        self.neighbours_ = Neighbours(self.points_)

    def _rank(self, X: sp.csr_matrix, k: int) -> TopK:
        queries = unit_rows(self.scaler_.transform(X))
        ids, cosines = self.neighbours_.search(queries, self.n_neighbors_)
        ranking = self._vote(ids, cosines, self.train_labels_, k)
        alone = ids[:, 0] < 0
        ranking.indices[alone] = np.argsort(self._tie_place)[:k]
        return ranking

    def _vote(self, ids: Ids, cosines: Floats, Y: sp.csr_matrix, k: int) -> TopK:
        weights = cosine_weights(ids, cosines, self.power)
        return vote(ids, weights, Y, k, self._tie_place)

    def _choose(self, progress: Progress) -> int:
        """k by the mean of P@1, P@3 and P@5 on held-out points."""
        n = self.points_.shape[0]
        order = spawn(self.random_state, "validation")["validation"].permutation(n)
        n_held = min(int(np.ceil(n * self.validation_fraction)), MAX_HELD_OUT)
        held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
        sizes = [size for size in N_NEIGHBORS_TRIED if size <= len(kept)]
        if not sizes:
            return 1
        depth = min(5, self.n_labels_)
        with progress.stage("validation"):
            neighbours = Neighbours(self.points_[kept])
            ids, cosines = neighbours.search(self.points_[held], max(sizes))
            scores = []
            for size in sizes:
                ranking = self._vote(
                    ids[:, :size], cosines[:, :size], self.train_labels_[kept], depth
                )
                scores.append(mean_precision(self.train_labels_[held], ranking))
        return sizes[int(np.argmax(scores))]

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        arrays = {
            **self.scaler_.arrays(),
            **pack_csr("points", self.points_),
            **pack_csr("train_labels", self.train_labels_),
        }
        return {"n_neighbors": self.n_neighbors_}, arrays

    def _restore(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        self.n_neighbors_ = whole(config, "n_neighbors", 1, self.n_samples_)
        self.scaler_ = FeatureScaler.from_arrays(arrays, self.n_features_in_)
        self.points_ = arrays.csr("points", None, self.n_features_in_)
        if np.abs(self.points_.data).max(initial=0) > LONGEST:
            raise ModelFormatError(f"the array points must have rows of length 1. {HELP}")
        self.train_labels_ = arrays.csr(
            "train_labels", self.points_.shape[0], self.n_labels_, truth=True
        )
        self.neighbours_ = Neighbours(self.points_)
