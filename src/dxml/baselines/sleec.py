"""SLEEC: local embeddings that preserve distances between similar label vectors, and k-NN in them.

K. Bhatia, H. Jain, P. Kar, M. Varma, P. Jain: Sparse Local Embeddings for Extreme Multi-label
Classification. NIPS 2015.

The points are clustered by their features. In a cluster with features X (n, d) and label vectors Y
(n, L), Ω holds the pairs of points of which one is among the other's nearest by label vector. The
embeddings Z (n, r) preserve the inner products of those pairs, and V (d, r) predicts them from the
features:

    min_M ‖P_Ω(Y Yᵀ) − P_Ω(M)‖²  over positive semidefinite M of rank r,  M = Z Zᵀ
    min_V ‖X V − Z‖² + α ‖V‖²

The first is solved by singular value projection (`dxml.baselines._svp`).

A new point goes to the cluster of the nearest centre; the training points nearest to x V there
vote with their labels. Learners with different clusterings add their votes.

Where we differ:

- The rows of Y are scaled to length 1 first, as in the authors' program.
- The eigenvectors of a projection are updated by subspace iteration, not computed from scratch.
- The authors solve for V with ℓ1 and ℓ2 penalties by ADMM and then set small weights to zero. We
  solve the ridge regression, with an intercept, and keep the largest `density` share of the
  weights.
- A vote has the weight cosine^`power` of the two embeddings; theirs is a plain count
  (``power=0``). Both it and the number of neighbours are chosen on held-out points by one more
  learner, unless they are given.
- With one cluster every learner would be the same, so there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays, real, reals, whole
from dxml._core.compiled import compiled, prange
from dxml._core.params import Range, Seed
from dxml._core.random import spawn
from dxml._core.scaling import FeatureScaler, ScalingChoice, fit_scaler
from dxml._core.sparse import sparse_product
from dxml._core.stages import Pieces, unpacked_csr
from dxml._core.storage import pack_csr
from dxml._core.threads import blas_threads
from dxml._neighbors.index import PartitionedIndex
from dxml._neighbors.voting import vote
from dxml.base import Classifier
from dxml.baselines._gram import Gram, occurring
from dxml.baselines._svp import label_neighbours, parts, singular_value_projection
from dxml.metrics import mean_precision
from dxml.progress import Progress, Stage
from dxml.topk import TopK

__all__ = ["SLEEC"]

POINTS_PER_CLUSTER = 6000
KMEANS_STEPS = 10
MIN_WEIGHT = 1e-12  # of a vote; above 0, so that every neighbour counts
N_NEIGHBORS_TRIED = (50, 20, 10, 100)
MOST_NEIGHBORS = 10_000  # that an older version may have stored for fewer points
POWERS_TRIED = (16.0, 8.0, 4.0, 2.0, 0.0, 32.0, 64.0)
"""Values tried on held-out points; the first ones are used where there are too few points."""
MAX_HELD_OUT = 2000  # points; more do not change the choice

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


def cluster_points(X: sp.csr_matrix, n_clusters: int, rng: np.random.Generator) -> Floats:
    """Unit centres of shape (n_clusters, n_features) by k-means on the cosine; X stays sparse."""
    n = X.shape[0]
    if n_clusters == 1:
        return np.zeros((1, X.shape[1]), dtype=np.float32)
    start = np.sort(rng.choice(n, n_clusters, replace=False))
    centres = _unit_rows(X[start].toarray())
    for _ in range(KMEANS_STEPS):
        cluster = nearest_cluster(X, centres)
        members = sp.csr_matrix(
            (np.ones(n, dtype=np.float32), (cluster, np.arange(n))), shape=(n_clusters, n)
        )
        centres = _unit_rows((members @ X).toarray())
    return centres


def nearest_cluster(X: sp.csr_matrix, centres: Floats) -> Ids:
    """The centre of largest inner product with each row; ties go to the lower number."""
    products = sparse_product(X, np.ascontiguousarray(centres.T))
    return products.argmax(axis=1).astype(np.int32)


def _unit_rows(rows: Floats) -> Floats:
    """Rows divided by their length, each by itself; a zero row stays zero."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


@compiled(parallel=True)
def _embed(indptr, indices, data, starts, columns, weights, out):  # type: ignore[no-untyped-def]
    for i in prange(indptr.shape[0] - 1):
        for j in range(indptr[i], indptr[i + 1]):
            for p in range(starts[indices[j]], starts[indices[j] + 1]):
                out[i, columns[p]] += data[j] * weights[p]


def embed(X: sp.csr_matrix, weights: sp.csr_matrix, bias: Floats) -> Floats:
    """Rows x V + b divided by their length, of shape (n_samples, dim)."""
    out = np.tile(np.asarray(bias), (X.shape[0], 1))
    _embed(*parts(X), *parts(weights), out)
    return _unit_rows(out)


def _regress(X: sp.csr_matrix, Z: Floats, alpha: float) -> tuple[Floats, Floats]:
    """V of shape (n_features, dim) and its intercept, by ridge regression."""
    gram = Gram(X)
    targets = Z.astype(np.float64)
    # 1e-3 is accurate enough, and takes a third of the steps
    weights = gram.regress(targets, alpha, tolerance=1e-3)
    bias = targets.mean(axis=0) - gram.mean @ weights
    return weights.astype(np.float32), bias.astype(np.float32)


def _local_map(
    X: sp.csr_matrix, Z: Floats, alpha: float, density: float
) -> tuple[sp.csr_matrix, Floats]:
    """V with its largest weights, and its intercept, from the features that X has."""
    found, narrow = occurring(X)
    dense, bias = _regress(narrow, Z, alpha)
    n_kept = int(np.ceil(X.shape[1] * dense.shape[1] * density))
    kept = _keep_largest(dense, n_kept)
    counts = np.zeros(X.shape[1] + 1, dtype=np.int64)
    counts[found + 1] = np.diff(kept.indptr)
    shape = (X.shape[1], dense.shape[1])
    return sp.csr_matrix((kept.data, kept.indices, np.cumsum(counts)), shape=shape), bias


def _keep_largest(weights: Floats, n_kept: int) -> sp.csr_matrix:
    """The weights with all but the largest `n_kept` set to zero."""
    n_dropped = weights.size - n_kept
    if n_dropped > 0:
        sizes = np.abs(weights)
        bar = np.partition(sizes, n_dropped, axis=None)[n_dropped]
        weights = np.where(sizes >= bar, weights, np.float32(0))
    return sp.csr_matrix(weights)


@dataclass(frozen=True)
class _Cluster:
    """One local embedding.

    Attributes
    ----------
    weights : float32 csr_matrix of shape (n_features, dim)
        V.
    bias : float32 array of shape (dim,)
    points : float32 array of shape (n, dim)
        The cluster's embedded training points.
    rows : int32 array of shape (n,)
        Their numbers in the training data.
    """

    weights: sp.csr_matrix
    bias: Floats
    points: Floats
    rows: Ids

    def search(self, X: sp.csr_matrix, n_neighbors: int) -> tuple[Ids, Floats]:
        """The nearest embedded points of each row of X; see `PartitionedIndex.search`."""
        starts = np.array([0, len(self.points)], dtype=np.int64)
        index = PartitionedIndex(self.points[:1], self.points, self.rows, starts)  # a single cell
        return index.search(embed(X, self.weights, self.bias), n_neighbors)


@dataclass(frozen=True)
class _Learner:
    """One clustering.

    Attributes
    ----------
    centres : float32 array of shape (n_clusters, n_features)
    clusters : list of _Cluster
    errors : list of float
        Relative error that singular value projection left in each cluster.
    """

    centres: Floats
    clusters: list[_Cluster]
    errors: list[float]

    def search(self, X: sp.csr_matrix, n_neighbors: int) -> tuple[Ids, Floats]:
        """Training rows and their cosines, both of shape (n_samples, n_neighbors)."""
        ids = np.full((X.shape[0], n_neighbors), -1, dtype=np.int32)
        distances = np.full((X.shape[0], n_neighbors), np.inf, dtype=np.float32)
        home = nearest_cluster(X, self.centres)
        for c in np.unique(home):
            rows = np.flatnonzero(home == c)
            ids[rows], distances[rows] = self.clusters[c].search(X[rows], n_neighbors)
        return ids, np.maximum(1 - distances / 2, 0)  # of vectors of length 1


class SLEEC(Classifier):
    """Sparse local embeddings for extreme multi-label classification.

    Points without labels are left out.

    Attributes
    ----------
    learners_ : list of _Learner
        Each has a clustering and its local embeddings.
    n_neighbors_, power_ : int, float
        The values in use: given, or chosen on held-out points.
    train_labels_ : csr_matrix of shape (n_labelled, n_labels)

    Examples
    --------
    >>> from dxml.data import make_planted
    >>> data = make_planted(300, 200, 10, random_state=0)
    >>> model = SLEEC(dim=8).fit(data.X, data.Y)
    >>> model.predict_topk(data.X[:2], k=3).indices.shape
    (2, 3)
    """

    method: ClassVar[str] = "sleec"
    summary: ClassVar[str] = "local embeddings that keep near label vectors near, and a k-NN vote"
    former_names: ClassVar[Mapping[str, str]] = {"steps": "max_iter"}

    def __init__(
        self,
        *,
        n_learners: Annotated[
            int, Range(1), "clusterings whose votes are added; 1 is used where n_clusters is 1"
        ] = 5,
        n_clusters: Annotated[
            int | None, Range(1), "clusters in a learner; None: one for each 6,000 points"
        ] = None,
        dim: Annotated[int, Range(1), "size r of an embedding"] = 100,
        graph_neighbors: Annotated[
            int, Range(1), "nearest label vectors whose inner product is kept"
        ] = 100,
        max_iter: Annotated[int, Range(1), "steps of singular value projection"] = 20,
        alpha: Annotated[float, Range(0, open_low=True), "ridge penalty α of the regression"] = 1.0,
        density: Annotated[
            float, Range(0, 1, open_low=True), "share of the regression's weights that is kept"
        ] = 0.3,
        n_neighbors: Annotated[
            int | None,
            Range(1),
            "neighbours that vote, in each learner; None: chosen on held-out points",
        ] = None,
        power: Annotated[
            float | None,
            Range(0),
            "the weight of a vote is its cosine to this power; None: chosen on held-out points",
        ] = None,
        validation_fraction: Annotated[
            float, Range(0.01, 0.9), "share of the points held out to choose them, at most 2,000"
        ] = 0.1,
        scaling: ScalingChoice = "auto",
        random_state: Seed = 0,
    ) -> None:
        self.n_learners = n_learners
        self.n_clusters = n_clusters
        self.dim = dim
        self.graph_neighbors = graph_neighbors
        self.max_iter = max_iter
        self.alpha = alpha
        self.density = density
        self.n_neighbors = n_neighbors
        self.power = power
        self.validation_fraction = validation_fraction
        self.scaling = scaling
        self.random_state = random_state

    @property
    def n_iter_(self) -> int:
        """Steps of singular value projection that were made: all."""
        self._check_fitted()
        return self.max_iter

    def _fit(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
        labelled = np.diff(Y.indptr) > 0
        X, Y = X[labelled], Y[labelled]
        self.scaler_ = fit_scaler(X, self.scaling)
        X = self.scaler_.transform(X)
        self.train_labels_ = Y
        chosen, self.power_ = self._choose(X, Y, progress)
        self.n_neighbors_ = min(chosen, X.shape[0])
        n_clusters = self._count_clusters(X.shape[0])
        n_learners = self.n_learners if n_clusters > 1 else 1
        rng = spawn(self.random_state, "learners")["learners"]
        with (
            progress.stage("embeddings", n_learners * n_clusters, "clusters") as stage,
            self._pieces(X, Y, rng) as pieces,
        ):
            self.learners_ = [self._learn(X, Y, rng, stage, pieces) for _ in range(n_learners)]

    def _count_clusters(self, n: int) -> int:
        return max(1, min(self.n_clusters or n // POINTS_PER_CLUSTER, n))

    def _pieces(self, X: sp.csr_matrix, Y: sp.csr_matrix, rng: np.random.Generator) -> Pieces:
        """Centres and clusters of learners, as they are stored."""
        names = ("dim", "graph_neighbors", "max_iter", "alpha", "density")
        settings = {name: getattr(self, name) for name in names}
        n_clusters = self._count_clusters(X.shape[0])
        inputs = {"X": X, "Y": Y, "n_clusters": n_clusters, "threads": blas_threads()}
        return Pieces("clusters", inputs | settings, rng)

    def _learn(
        self,
        X: sp.csr_matrix,
        Y: sp.csr_matrix,
        rng: np.random.Generator,
        stage: Stage,
        pieces: Pieces,
    ) -> _Learner:
        """Algorithm 1 of the paper, for one learner."""
        n_clusters = self._count_clusters(X.shape[0])
        found = pieces.next(lambda: {"centres": cluster_points(X, n_clusters, rng)})
        centres = found["centres"]
        home = nearest_cluster(X, centres)
        filled = np.unique(home)
        learner = _Learner(centres[filled], [], [])
        for c in filled:
            rows = np.flatnonzero(home == c).astype(np.int32)
            found = pieces.next(partial(self._embed, X[rows], Y[rows], rng))
            weights, error = unpacked_csr("weights", found), float(found["error"][0])
            learner.clusters.append(_Cluster(weights, found["bias"], found["points"], rows))
            learner.errors.append(error)
            stage.advance()
            stage.note(f"error {error:.3f}")
        return learner

    def _embed(
        self, X: sp.csr_matrix, Y: sp.csr_matrix, rng: np.random.Generator
    ) -> dict[str, npt.NDArray[Any]]:
        """The local embedding of a cluster's points."""
        graph = label_neighbours(Y, self.graph_neighbors)
        Z, errors = singular_value_projection(graph, self.dim, self.max_iter, rng)
        weights, bias = _local_map(X, Z, self.alpha, self.density)
        found = {"bias": bias, "points": embed(X, weights, bias), "error": np.array(errors[-1:])}
        return pack_csr("weights", weights) | found

    def _choose(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> tuple[int, float]:
        """Neighbours and power by the mean P@1, P@3 and P@5 of one learner on held-out points."""
        sizes = N_NEIGHBORS_TRIED if self.n_neighbors is None else (self.n_neighbors,)
        powers = POWERS_TRIED if self.power is None else (self.power,)
        n_held = min(int(np.ceil(X.shape[0] * self.validation_fraction)), MAX_HELD_OUT)
        if len(sizes) * len(powers) == 1 or X.shape[0] - n_held < 2:
            return sizes[0], powers[0]
        rng = spawn(self.random_state, "validation")["validation"]
        order = rng.permutation(X.shape[0])
        held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
        depth = min(5, self.n_labels_)
        scores = {}
        with progress.stage("validation", self._count_clusters(len(kept)), "clusters") as stage:
            with self._pieces(X[kept], Y[kept], rng) as pieces:
                learner = self._learn(X[kept], Y[kept], rng, stage, pieces)
            ids, cosines = learner.search(X[held], max(sizes))
            for size in sizes:
                for power in powers:
                    ranking = self._vote(ids[:, :size], cosines[:, :size], power, Y[kept], depth)
                    scores[size, power] = mean_precision(Y[held], ranking)
        return max(scores, key=lambda pair: scores[pair])

    def _rank(self, X: sp.csr_matrix, k: int) -> TopK:
        X = self.scaler_.transform(X)
        found = [learner.search(X, self.n_neighbors_) for learner in self.learners_]
        ids, cosines = (np.hstack(side) for side in zip(*found, strict=True))
        return self._vote(ids, cosines, self.power_, self.train_labels_, k)

    def _vote(self, ids: Ids, cosines: Floats, power: float, Y: sp.csr_matrix, k: int) -> TopK:
        """s(x) = Σ w_i y_i / Σ w_i,  w_i = cos(x V, x_i V)^power."""
        weights = np.maximum(cosines.astype(np.float64) ** power, MIN_WEIGHT)
        weights /= np.maximum((weights * (ids >= 0)).sum(axis=1, keepdims=True), MIN_WEIGHT)
        return vote(ids, weights.astype(np.float32), Y, k, self._tie_place)

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        arrays = {**self.scaler_.arrays(), **pack_csr("train_labels", self.train_labels_)}
        for t, learner in enumerate(self.learners_):
            arrays[f"{t}.centres"] = learner.centres
            for c, cluster in enumerate(learner.clusters):
                arrays |= pack_csr(f"{t}.{c}.weights", cluster.weights)
                for name in ("bias", "points", "rows"):
                    arrays[f"{t}.{c}.{name}"] = getattr(cluster, name)
        config = {
            "n_neighbors": self.n_neighbors_,
            "power": self.power_,
            "errors": [learner.errors for learner in self.learners_],
        }
        return config, arrays

    def _restore(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        self.scaler_ = FeatureScaler.from_arrays(arrays, self.n_features_in_)
        self.train_labels_ = arrays.csr("train_labels", None, self.n_labels_, truth=True)
        most = max(self.n_samples_, MOST_NEIGHBORS)
        self.n_neighbors_ = min(whole(config, "n_neighbors", 1, most), self.n_samples_)
        self.power_ = real(config, "power")
        self.learners_ = []
        for t, saved in enumerate(config["errors"]):
            errors = reals(saved, "errors")
            centres = arrays.floats(f"{t}.centres", len(errors), self.n_features_in_)
            clusters = [self._restored_cluster(f"{t}.{c}", arrays) for c in range(len(errors))]
            self.learners_.append(_Learner(centres, clusters, errors))
        if not self.learners_ or not all(learner.errors for learner in self.learners_):
            raise ValueError("'errors' must have a learner, and a cluster in each")

    def _restored_cluster(self, name: str, arrays: Arrays) -> _Cluster:
        bias = arrays.floats(f"{name}.bias", None)
        weights = arrays.csr(f"{name}.weights", self.n_features_in_, len(bias))
        rows = arrays.ids(f"{name}.rows", None, below=self.train_labels_.shape[0])
        points = arrays.floats(f"{name}.points", len(rows), len(bias))
        return _Cluster(weights, bias, points, rows)
