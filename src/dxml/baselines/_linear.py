"""Shared by the linear methods: ridge and logistic regression, and ranking by a product.

Ridge regression with an intercept that is not penalised,

    min_{W, b} ‖X W + 1 bᵀ − T‖² + α ‖W‖²   ⇔   (Cᵀ C + α I) W = Cᵀ T,  C = X − 1 μᵀ,

needs only products of the Gram matrix Cᵀ C with blocks of columns. `Gram` stores that matrix where
there are few features, and otherwise multiplies by X and Xᵀ without centring them.

Rankings are computed row by row in a fixed order, so a point has the same scores alone and in a
batch, and each thread stores only one row of scores.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.compiled import compiled, prange
from dxml._core.sparse import sparse_product
from dxml._core.threads import n_threads
from dxml.topk import TopK, insert_best

__all__ = [
    "Gram",
    "LinearMap",
    "Loss",
    "LowRankScores",
    "conjugate_gradient",
    "label_offset",
    "logistic",
    "rank_product",
    "rank_sparse",
    "ridge",
]

MAX_DIRECT = 6000  # features (or labels) up to which a square matrix is stored: 288 MB

Loss = Literal["squared_hinge", "logistic"]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class LinearMap:
    """x ↦ xᵀ weights + bias.

    Attributes
    ----------
    weights : float32 array of shape (n_features, n_outputs)
    bias : float32 array of shape (n_outputs,)
    """

    weights: Floats
    bias: Floats

    def apply(self, X: sp.csr_matrix) -> Floats:
        """Outputs of shape (n_samples, n_outputs), each row computed by itself."""
        return sparse_product(X, np.asarray(self.weights)) + self.bias

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The parts under the names of a saved model."""
        return {"map.weights": self.weights, "map.bias": self.bias}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_features: int) -> LinearMap:
        """The inverse of `arrays`."""
        bias = arrays.floats("map.bias", None)
        return cls(arrays.floats("map.weights", n_features, len(bias)), bias)


@dataclass(frozen=True)
class LowRankScores:
    """x ↦ encoder(x)ᵀ decoder + offset: label scores through a code of m numbers.

    Attributes
    ----------
    encoder : LinearMap
        From n_features to m numbers.
    decoder : float32 array of shape (m, n_labels)
    offset : float32 array of shape (n_labels,)
        −∞ for labels that are never ranked.
    """

    encoder: LinearMap
    decoder: Floats
    offset: Floats

    def rank(self, X: sp.csr_matrix, k: int, tie_order: Ids) -> TopK:
        """The k best labels of each row of X."""
        return rank_product(self.encoder.apply(X), self.decoder, self.offset, k, tie_order)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The parts under the names of a saved model."""
        return {**self.encoder.arrays(), "decoder": self.decoder, "offset": self.offset}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_features: int, n_labels: int) -> LowRankScores:
        """The inverse of `arrays`."""
        encoder = LinearMap.from_arrays(arrays, n_features)
        decoder = arrays.floats("decoder", len(encoder.bias), n_labels)
        return cls(encoder, decoder, arrays.floats("offset", n_labels, never=True))


class Gram:
    """Cᵀ C of centred features C = X − 1 μᵀ, as an operator.

    Attributes
    ----------
    mean : float64 array of shape (n_features,)
        μ.
    dense : float64 array of shape (n_features, n_features), or None with many features
    """

    def __init__(self, X: sp.csr_matrix, direct: int = MAX_DIRECT) -> None:
        self.X = X
        self.n_samples, self.n_features = X.shape
        self.transposed = X.T.tocsr()
        self.mean = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel() / max(X.shape[0], 1)
        self.dense: Doubles | None = None
        self._factors: dict[float, Any] = {}
        if self.n_features <= direct:
            self.dense = (self.transposed @ X).toarray().astype(np.float64)
            self.dense -= self.n_samples * np.outer(self.mean, self.mean)

    def __matmul__(self, S: Doubles) -> Doubles:
        """Cᵀ C S for S of shape (n_features, m)."""
        if self.dense is not None:
            return self.dense @ S
        return self.correlate(self.project(S))

    def project(self, S: Doubles) -> Doubles:
        """C S, of shape (n_samples, m); its columns sum to 0."""
        outputs = sparse_product(self.X, np.ascontiguousarray(S, dtype=np.float32))
        return outputs.astype(np.float64) - self.mean @ S

    def correlate(self, T: Doubles | sp.csr_matrix) -> Doubles:
        """Cᵀ T, of shape (n_features, m), for dense or sparse T of shape (n_samples, m)."""
        if sp.issparse(T):
            totals = np.asarray(T.sum(axis=0, dtype=np.float64)).ravel()
            product = (self.transposed @ T.astype(np.float32)).toarray().astype(np.float64)
        else:
            totals = T.sum(axis=0)
            product = sparse_product(
                self.transposed, np.ascontiguousarray(T, dtype=np.float32)
            ).astype(np.float64)
        return product - np.outer(self.mean, totals)

    def solve(self, B: Doubles, alpha: float) -> Doubles:
        """(Cᵀ C + α I)⁻¹ B for B of shape (n_features, m)."""
        if self.dense is None:
            return conjugate_gradient(self, B, np.ones(B.shape[1]), alpha, np.zeros_like(B), 200)
        if alpha not in self._factors:
            shifted = self.dense + alpha * np.eye(self.n_features)
            self._factors = {alpha: scipy.linalg.cho_factor(shifted, overwrite_a=True)}
        solution: Doubles = scipy.linalg.cho_solve(self._factors[alpha], B)
        return solution


def conjugate_gradient(
    gram: Gram,
    B: Doubles,
    curvature: Doubles,
    alpha: float,
    start: Doubles,
    steps: int,
    tolerance: float = 1e-5,
) -> Doubles:
    """Solve (cᵢ G + α I) sᵢ = bᵢ for every column i at once.

    Parameters
    ----------
    gram : Gram
        G, of shape (n_features, n_features).
    B, start : float64 arrays of shape (n_features, m)
    curvature : float64 array of shape (m,)
        cᵢ, not negative.
    steps : int
        Products with G at most.
    tolerance : float
        Stop when every residual is this small beside its bᵢ.
    """
    solution = start.copy()
    residual = B - (gram @ solution) * curvature - alpha * solution
    direction = residual.copy()
    square = np.einsum("ij,ij->j", residual, residual)
    enough = tolerance**2 * np.einsum("ij,ij->j", B, B)
    for _ in range(steps):
        if (square <= enough).all():
            break
        image = (gram @ direction) * curvature + alpha * direction
        bend = np.einsum("ij,ij->j", direction, image)
        step = np.where(square > enough, square / np.maximum(bend, 1e-300), 0)
        solution += step * direction
        residual -= step * image
        before, square = square, np.einsum("ij,ij->j", residual, residual)
        direction *= square / np.maximum(before, 1e-300)
        direction += residual
    return solution


def ridge(gram: Gram, T: Doubles | sp.csr_matrix, alpha: float) -> LinearMap:
    """Ridge regression of the targets T, of shape (n_samples, m), on the features of `gram`."""
    weights = gram.solve(gram.correlate(T), alpha)
    mean = np.asarray(T.sum(axis=0, dtype=np.float64)).ravel() / max(gram.n_samples, 1)
    bias = mean - gram.mean @ weights
    return LinearMap(weights.astype(np.float32), bias.astype(np.float32))


def logistic(X: sp.csr_matrix, y: npt.NDArray[np.bool_], C: float) -> tuple[Doubles, float]:
    """Weights and bias of one binary logistic regression, by liblinear's Newton steps.

    Parameters
    ----------
    X : float64 csr_matrix of shape (n_samples, n_features)
    y : bool array of shape (n_samples,), with both values in it
    C : float
        Weight of the loss beside ‖w‖² / 2; the bias is penalised as well.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    machine = LogisticRegression(C=C, solver="liblinear", tol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y)
    return machine.coef_[0], float(machine.intercept_[0])


def label_offset(offset: npt.NDArray[Any], label_frequency: npt.NDArray[np.int64]) -> Floats:
    """The scores' offset, with −∞ for labels without a training point, which are never ranked."""
    return np.where(label_frequency > 0, offset, -np.inf).astype(np.float32)


@compiled(parallel=True)
def _rank_product(codes, decoder, offset, tie_order, n_chunks, ids, scores):  # type: ignore[no-untyped-def]
    n = codes.shape[0]
    for chunk in prange(n_chunks):
        row = np.empty(offset.shape[0], dtype=np.float32)
        for i in range(chunk * n // n_chunks, (chunk + 1) * n // n_chunks):
            row[:] = offset
            for c in range(codes.shape[1]):
                value = codes[i, c]
                for label in range(row.shape[0]):
                    row[label] += value * decoder[c, label]
            filled = 0
            for label in range(row.shape[0]):
                if row[label] > -np.inf:
                    filled = insert_best(ids[i], scores[i], filled, label, row[label], tie_order)


@compiled(parallel=True)
def _rank_sparse(  # type: ignore[no-untyped-def]
    indptr, indices, data, starts, labels, weights, offset, tie_order, n_chunks, ids, scores
):
    n = indptr.shape[0] - 1
    for chunk in prange(n_chunks):
        row = np.empty(offset.shape[0], dtype=np.float32)
        for i in range(chunk * n // n_chunks, (chunk + 1) * n // n_chunks):
            row[:] = offset
            for j in range(indptr[i], indptr[i + 1]):
                for p in range(starts[indices[j]], starts[indices[j] + 1]):
                    row[labels[p]] += data[j] * weights[p]
            filled = 0
            for label in range(row.shape[0]):
                if row[label] > -np.inf:
                    filled = insert_best(ids[i], scores[i], filled, label, row[label], tie_order)


def rank_product(codes: Floats, decoder: Floats, offset: Floats, k: int, tie_order: Ids) -> TopK:
    """The k best labels of each row of ``codes @ decoder + offset``; labels with −∞ are left out.

    Parameters
    ----------
    codes : float32 array of shape (n_samples, m)
    decoder : float32 array of shape (m, n_labels)
    offset : float32 array of shape (n_labels,)
    tie_order : int32 array of shape (n_labels,)
        From `dxml.topk.tie_order`.
    """
    ids, scores = _empty(len(codes), k)
    n_chunks = min(len(codes), n_threads())
    _rank_product(codes, np.asarray(decoder), np.asarray(offset), tie_order, n_chunks, ids, scores)
    return TopK(ids, scores)


def rank_sparse(
    X: sp.csr_matrix, weights: sp.csr_matrix, offset: Floats, k: int, tie_order: Ids
) -> TopK:
    """The k best labels of each row of ``X @ weights + offset``; labels with −∞ are left out.

    Parameters
    ----------
    X : csr_matrix of shape (n_samples, n_features)
    weights : csr_matrix of shape (n_features, n_labels)
    offset, tie_order : as in `rank_product`
    """
    ids, scores = _empty(X.shape[0], k)
    n_chunks = min(X.shape[0], n_threads())
    columns = (weights.indptr, weights.indices, weights.data)
    starts, labels, values = (np.asarray(part) for part in columns)
    _rank_sparse(
        X.indptr,
        X.indices,
        X.data,
        starts,
        labels,
        values,
        np.asarray(offset),
        tie_order,
        n_chunks,
        ids,
        scores,
    )
    return TopK(ids, scores)


def _empty(n: int, k: int) -> tuple[Ids, Floats]:
    return np.full((n, k), -1, dtype=np.int32), np.zeros((n, k), dtype=np.float32)
