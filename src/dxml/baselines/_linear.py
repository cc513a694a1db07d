"""Shared by the linear methods: a linear map, logistic regression, and ranking by a product.

A score is summed in a fixed order, so a point has the same scores alone and in a batch, and a
thread stores the scores of a few labels only.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.compiled import compiled, prange
from dxml._core.sparse import sparse_product
from dxml._core.threads import n_threads
from dxml.topk import TopK, insert_best

__all__ = [
    "LinearMap",
    "Loss",
    "LowRankScores",
    "label_offset",
    "logistic",
    "rank_product",
    "rank_sparse",
]

LABELS_AT_A_TIME = 1024  # whose part of the decoder stays in a core's cache for all its points

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
    n, m = codes.shape
    n_labels, k = offset.shape[0], ids.shape[1]
    for chunk in prange(n_chunks):
        begin, end = chunk * n // n_chunks, (chunk + 1) * n // n_chunks
        filled = np.zeros(end - begin, dtype=np.int64)
        row = np.empty(LABELS_AT_A_TIME, dtype=np.float32)
        for first in range(0, n_labels, LABELS_AT_A_TIME):
            size = min(LABELS_AT_A_TIME, n_labels - first)
            for i in range(begin, end):
                row[:size] = offset[first : first + size]
                for c in range(m):
                    value, weights = codes[i, c], decoder[c, first : first + size]
                    for j in range(size):
                        row[j] += value * weights[j]
                count = filled[i - begin]
                for j in range(size):
                    if row[j] > -np.inf and (count < k or row[j] >= scores[i, k - 1]):
                        count = insert_best(ids[i], scores[i], count, first + j, row[j], tie_order)
                filled[i - begin] = count


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
