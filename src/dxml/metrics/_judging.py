"""Compare rankings with the truth: the checks and counts that every measure starts from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dxml._core.validation import check_labels
from dxml.exceptions import DataFormatError
from dxml.topk import TopK

__all__ = [
    "Judged",
    "Labels",
    "Ranking",
    "check_depth",
    "check_truth",
    "describe",
    "judge",
    "row_of_each_entry",
]

Ranking: TypeAlias = TopK | NDArray[Any]
Labels: TypeAlias = sp.spmatrix | sp.sparray
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Judged:
    """The truth and the first k positions of the ranking, both checked."""

    truth: sp.csr_matrix  # (n_samples, n_labels), sorted, only True stored
    labels: IntArray  # (n_samples, k), padded with -1
    hits: NDArray[np.bool_]  # (n_samples, k)

    @property
    def n_labels(self) -> int:
        return int(self.truth.shape[1])

    @property
    def n_true(self) -> IntArray:
        """Number of labels of each point."""
        return np.diff(self.truth.indptr).astype(np.int64)

    @property
    def label_frequency(self) -> IntArray:
        """Number of points of each label."""
        return np.bincount(self.truth.indices, minlength=self.n_labels)

    def label_counts(self) -> Iterator[tuple[IntArray, IntArray]]:
        """For each depth 1..k: correct predictions of each label, and all predictions of it."""
        right = np.zeros(self.n_labels, dtype=np.int64)
        predicted = np.zeros_like(right)
        for labels, hits in zip(self.labels.T, self.hits.T, strict=True):
            right = right + np.bincount(labels[hits], minlength=self.n_labels)
            predicted = predicted + np.bincount(labels[labels >= 0], minlength=self.n_labels)
            yield right, predicted

    def hit_weights(self, weights: FloatArray) -> FloatArray:
        """The weight of each correct label in the ranking, 0 for a wrong one; (n_samples, k)."""
        return np.where(self.hits, weights[self.labels], 0.0)


def judge(Y: Labels, ranking: Ranking, k: int) -> Judged:
    truth = check_truth(Y)
    labels = _check_ranking(ranking, truth.shape, check_depth(k))
    return Judged(truth, labels, _find_hits(truth, labels))


def _find_hits(truth: sp.csr_matrix, labels: IntArray) -> NDArray[np.bool_]:
    """Which of `labels` (n, k) are True in the truth, by searching row x L + label."""
    n_samples, n_labels = truth.shape
    true_keys = row_of_each_entry(truth) * n_labels + truth.indices
    keys = np.arange(n_samples)[:, None] * n_labels + labels
    at = np.searchsorted(true_keys, keys)
    found: NDArray[np.bool_] = (
        np.append(true_keys, -1)[at] == keys
    )  # -1 is found after the last key
    return found & (labels >= 0)


def row_of_each_entry(truth: sp.csr_matrix) -> IntArray:
    return np.repeat(np.arange(truth.shape[0]), np.diff(truth.indptr))


def check_truth(Y: Any) -> sp.csr_matrix:
    """Y as boolean CSR with sorted indices and nothing stored but True; Y itself is left alone."""
    shape: tuple[int, ...] = getattr(Y, "shape", ())
    if not sp.issparse(Y) or len(shape) != 2:
        raise DataFormatError(
            "Y must be a scipy.sparse matrix of shape (n_samples, n_labels); got "
            f"{describe(Y)}. Wrap it in scipy.sparse.csr_matrix(...)."
        )
    if 0 in shape:
        raise DataFormatError(
            f"Y must have at least one row and one label column; got shape {shape}. "
            "There is nothing to average over."
        )
    return check_labels(Y)[0]


def _check_ranking(ranking: Ranking, shape: tuple[int, int], k: int) -> IntArray:
    """The first k places of the ranking as int64 (n_samples, k)."""
    n_samples, n_labels = shape
    given = ranking.indices if isinstance(ranking, TopK) else ranking
    if not isinstance(given, np.ndarray) or given.ndim != 2 or given.dtype.kind not in "iu":
        raise DataFormatError(
            "ranking must be a TopK or an integer array of shape (n_samples, k) of label ids; got "
            f"{describe(given)}. Scores have to be ranked first."
        )
    if len(given) != n_samples:
        raise DataFormatError(
            f"Y and ranking must have as many rows; got {n_samples} and {len(given)}. "
            "Pass the truth and the predictions of the same points."
        )
    if given.shape[1] < k:
        raise DataFormatError(
            f"k={k} needs a ranking of at least {k} places; got {given.shape[1]}. "
            f"Predict with k={k}, or ask for a smaller k."
        )
    labels = given[:, :k].astype(np.int64)
    _check_ids(labels, n_labels)
    _check_no_repeats(labels)
    return labels


def _check_ids(labels: IntArray, n_labels: int) -> None:
    wrong = (labels < -1) | (labels >= n_labels)
    if wrong.any():
        row, place = np.argwhere(wrong)[0]
        raise DataFormatError(
            f"ranking row {row}: label id {labels[row, place]} is outside 0..{n_labels - 1}, the "
            "columns of Y. Number labels from 0 and pad with -1."
        )


def _check_no_repeats(labels: IntArray) -> None:
    ordered = np.sort(labels, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if repeated.any():
        row, place = np.argwhere(repeated)[0]
        raise DataFormatError(
            f"ranking row {row}: label {ordered[row, place]} stands there twice, expected each "
            "label at most once. Drop the repeats and pad with -1."
        )


def check_depth(k: int) -> int:
    if isinstance(k, bool) or not hasattr(k, "__index__") or k < 1:
        raise DataFormatError(f"k must be a whole number, 1 or more; got {k!r}. Try k=5.")
    return int(k)


def describe(value: object) -> str:
    shape = getattr(value, "shape", None)
    dtype = getattr(value, "dtype", None)
    name = type(value).__name__
    return name if shape is None else f"{name} of {dtype}, shape {shape}"
