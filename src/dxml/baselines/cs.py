"""CS: labels compressed by a random matrix, predicted, and recovered as a sparse vector.

D. Hsu, S. Kakade, J. Langford, T. Zhang: Multi-Label Prediction via Compressed Sensing. NIPS 2009.
A random matrix A of shape (dim, n_labels) with independent entries N(0, 1/dim) compresses a label
vector to A y. Training is a regression of the codes A y on the features, here
ridge regression. A predicted code z is decoded by a sparse recovery algorithm:

    ŷ ≈ argmin ‖z − A y‖²  over y with at most s nonzeros.

The decoder is orthogonal matching pursuit: s times, take the label whose column
correlates most with what is left of z, and fit all labels taken so far by least squares. The
correlation decoder scores labels by Aᵀ z alone.

Where we differ: labels are 0 or 1, so a label is taken only where its correlation is positive;
labels are ranked by their coefficient in the last fit, and a label that is not taken is not named,
so a ranking ends after `sparsity` labels. A label without a training point is never taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays, whole
from dxml._core.compiled import compiled, prange
from dxml._core.params import Range, Seed
from dxml._core.random import spawn
from dxml._core.scaling import ScalingChoice, fit_scaler
from dxml._core.threads import n_threads
from dxml.baselines._gram import Gram, ridge
from dxml.baselines._linear import LowRankScores, label_offset
from dxml.baselines._low_rank import LowRankClassifier
from dxml.progress import Progress
from dxml.topk import TopK, insert_best

__all__ = ["CompressedSensing", "matching_pursuit"]

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


@compiled()
def _take_label(left, A, offset, taken, correlation):  # type: ignore[no-untyped-def]
    """The label whose column correlates most with `left`, or -1 where none does."""
    correlation[:] = offset
    for c in range(A.shape[0]):
        for label in range(A.shape[1]):
            correlation[label] += left[c] * A[c, label]
    for label in taken:
        correlation[label] = -np.inf
    best = np.argmax(correlation)
    return best if correlation[best] > 1e-6 else -1


@compiled(parallel=True)
def _pursue(codes, A, offset, sparsity, tie_order, n_chunks, ids, scores):  # type: ignore[no-untyped-def]
    n, dim = codes.shape
    for chunk in prange(n_chunks):
        correlation = np.empty(A.shape[1], dtype=np.float32)
        columns = np.empty((sparsity, dim))
        products = np.empty((sparsity, sparsity))
        target = np.empty(sparsity)
        taken = np.empty(sparsity, dtype=np.int64)
        for i in range(chunk * n // n_chunks, (chunk + 1) * n // n_chunks):
            left = codes[i].copy()
            fitted = np.empty(0)
            for step in range(sparsity):
                label = _take_label(left, A, offset, taken[:step], correlation)
                if label < 0:
                    break
                taken[step] = label
                columns[step] = A[:, label]
                target[step] = np.sum(columns[step] * codes[i])
                for other in range(step + 1):
                    product = np.sum(columns[step] * columns[other])
                    products[step, other] = product
                    products[other, step] = product
                products[step, step] += 1e-6  # two labels may have the same column
                fitted = np.linalg.solve(
                    np.ascontiguousarray(products[: step + 1, : step + 1]), target[: step + 1]
                )
                left[:] = codes[i]
                for other in range(step + 1):
                    for c in range(dim):
                        left[c] -= np.float32(fitted[other] * columns[other, c])
            filled = 0
            for step in range(fitted.shape[0]):
                score = np.float32(fitted[step])
                filled = insert_best(ids[i], scores[i], filled, taken[step], score, tie_order)


def matching_pursuit(
    codes: Floats, A: Floats, offset: Floats, sparsity: int, k: int, tie_order: Ids
) -> TopK:
    """Decode by orthogonal matching pursuit and rank by coefficient.

    Parameters
    ----------
    codes : float32 array of shape (n_samples, dim)
    A : float32 array of shape (dim, n_labels)
    offset : float32 array of shape (n_labels,)
        0, or −∞ for a label that must not be taken.
    sparsity : int
        Labels taken at most.
    tie_order : int32 array of shape (n_labels,)
        From `dxml.topk.tie_order`.
    """
    ids = np.full((len(codes), k), -1, dtype=np.int32)
    scores = np.zeros((len(codes), k), dtype=np.float32)
    n_chunks = min(len(codes), n_threads())
    sparsity = min(sparsity, A.shape[1])
    _pursue(codes, np.asarray(A), np.asarray(offset), sparsity, tie_order, n_chunks, ids, scores)
    return TopK(ids, scores)


class CompressedSensing(LowRankClassifier):
    """Multi-label prediction via compressed sensing.

    Attributes
    ----------
    scores_ : LowRankScores
        Its encoder predicts the code A y of a point, its decoder is A, its offset is 0, or −∞ for
        labels without a training point.
    sparsity_ : int
        Labels taken for a point at most.

    Examples
    --------
    >>> from dxml.data import make_planted
    >>> data = make_planted(300, 200, 10, random_state=0)
    >>> model = CompressedSensing(dim=8).fit(data.X, data.Y)
    >>> model.predict_topk(data.X[:2], k=3).indices.shape
    (2, 3)
    """

    method: ClassVar[str] = "cs"
    summary: ClassVar[str] = "random codes of labels, ridge regression, sparse recovery"

    def __init__(
        self,
        *,
        dim: Annotated[
            int | None, Range(1), "size of a code; None: as many as labels, at most 500"
        ] = None,
        decoder: Annotated[
            Literal["omp", "correlation"], "orthogonal matching pursuit, or Aᵀ z alone"
        ] = "omp",
        sparsity: Annotated[
            int | None, Range(1), "labels taken for a point; None: their mean number, 5 or more"
        ] = None,
        alpha: Annotated[
            float, Range(0, open_low=True), "penalty of the ridge regression on codes"
        ] = 1.0,
        scaling: ScalingChoice = "auto",
        random_state: Seed = 0,
    ) -> None:
        self.dim = dim
        self.decoder = decoder
        self.sparsity = sparsity
        self.alpha = alpha
        self.scaling = scaling
        self.random_state = random_state

    def _fit(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
        self.scaler_ = fit_scaler(X, self.scaling)
        dim = self.dim or min(self.n_labels_, 500)
        rng = spawn(self.random_state, "matrix")["matrix"]
        A = (rng.standard_normal((dim, self.n_labels_)) / np.sqrt(dim)).astype(np.float32)
        with progress.stage("features"):
            gram = Gram(self.scaler_.transform(X))
        with progress.stage("regression"):
            encoder = ridge(gram, Y @ A.T.astype(np.float64), self.alpha)
        offset = label_offset(np.zeros(self.n_labels_), self.label_frequency_)
        self.scores_ = LowRankScores(encoder, A, offset)
        mean = self.label_frequency_.sum() / self.n_samples_
        self.sparsity_ = min(self.sparsity or max(5, round(float(mean))), self.n_labels_)

    def _rank(self, X: sp.csr_matrix, k: int) -> TopK:
        if self.decoder == "correlation":
            return super()._rank(X, k)
        codes = self.scores_.encoder.apply(self.scaler_.transform(X))
        A, offset = self.scores_.decoder, self.scores_.offset
        return matching_pursuit(codes, A, offset, self.sparsity_, k, self._tie_place)

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        return {"sparsity": self.sparsity_}, super()._state()[1]

    def _restore(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        self.sparsity_ = whole(config, "sparsity", 1, self.n_labels_)
        super()._restore(config, arrays)
