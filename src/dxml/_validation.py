"""The only place where arrays are doubted: below this line they are trusted.

`check_features` gives float32 CSR, `check_labels` gives boolean CSR, both with sorted indices and
without duplicates; the caller's own arrays are never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml.exceptions import DataFormatError

__all__ = ["check_features", "check_k", "check_labels", "check_pair"]


def check_features(X: Any, n_features: int | None = None) -> sp.csr_matrix:
    """Features as float32 CSR of shape (n_samples, n_features).

    Parameters
    ----------
    X : scipy sparse matrix or array-like of shape (n_samples, n_features)
    n_features : int, optional
        The width the model was trained on.
    """
    if sp.issparse(X):
        matrix = sp.csr_matrix(X, dtype=np.float32)
    else:
        dense = np.asarray(X)
        if dense.dtype.kind not in "buif":
            raise DataFormatError(
                f"X must hold numbers, got an array of {dense.dtype}. "
                "Turn text into features first, e.g. with scikit-learn's TfidfVectorizer."
            )
        if dense.ndim != 2:
            raise DataFormatError(
                f"X must have 2 dimensions (points, features), got {dense.ndim}. "
                "A single point is X[None, :]."
            )
        matrix = sp.csr_matrix(dense.astype(np.float32))
    if not np.isfinite(matrix.data).all():
        bad = int(np.flatnonzero(~np.isfinite(matrix.data))[0])
        row = int(np.searchsorted(matrix.indptr, bad, side="right") - 1)
        raise DataFormatError(
            f"X must be finite, got {matrix.data[bad]} at row {row}, "
            f"column {matrix.indices[bad]}. Replace or drop such values."
        )
    if n_features is not None and matrix.shape[1] != n_features:
        raise DataFormatError(
            f"X must have {n_features} features like the training data, got {matrix.shape[1]}. "
            "Use the same feature space for training and prediction."
        )
    return _canonical(matrix)


def check_labels(
    Y: Any, n_labels: int | None = None
) -> tuple[sp.csr_matrix, npt.NDArray[Any] | None]:
    """Labels as boolean CSR of shape (n_samples, n_labels), and their names if they had any.

    Parameters
    ----------
    Y : sparse or dense 0/1 indicator of shape (n_samples, n_labels), or a sequence of label lists
        Lists of non-negative integers are column numbers; lists of anything else are names, and
        the columns are then the sorted distinct names.
    n_labels : int, optional
        Columns of the result where Y holds lists of integers.
    """
    if not sp.issparse(Y) and not isinstance(Y, np.ndarray):
        return _from_lists(list(Y), n_labels)
    if isinstance(Y, np.ndarray) and Y.dtype == object:
        return _from_lists(list(Y), n_labels)
    if isinstance(Y, np.ndarray) and Y.ndim != 2:
        raise DataFormatError(
            f"Y must be a 0/1 matrix of shape (points, labels) or a list of label lists, "
            f"got an array of {Y.ndim} dimension(s)."
        )
    matrix = sp.csr_matrix(Y)
    if matrix.dtype != bool:
        stored = np.unique(matrix.data)
        if not np.isin(stored, (0, 1)).all():
            value = stored[~np.isin(stored, (0, 1))][0]
            raise DataFormatError(
                f"Y must hold only 0 and 1, got {value}. "
                "Binarise graded relevance before training, e.g. Y > 0."
            )
        matrix = matrix.astype(bool)
    return _canonical(matrix), None


def check_pair(X: Any, Y: Any) -> tuple[sp.csr_matrix, sp.csr_matrix, npt.NDArray[Any] | None]:
    """Both sides of a training set: equally many rows, at least one label on at least one point."""
    features = check_features(X)
    labels, names = check_labels(Y)
    if features.shape[0] != labels.shape[0]:
        raise DataFormatError(
            f"X and Y must have equally many rows, got {features.shape[0]} and {labels.shape[0]}."
        )
    if labels.nnz == 0:
        raise DataFormatError(
            f"Y must put a label on at least one point, got {labels.shape[0]} points without any. "
            "Check that the label column was read."
        )
    return features, labels, names


def check_k(k: int, n_labels: int, name: str = "k") -> int:
    """How many labels to return: 1 to the number of labels."""
    if isinstance(k, bool) or not hasattr(k, "__index__") or not 1 <= k <= n_labels:
        raise DataFormatError(
            f"{name} must be a whole number from 1 to the number of labels, {n_labels}, got {k!r}."
        )
    return int(k)


def _from_lists(
    rows: Sequence[Any], n_labels: int | None
) -> tuple[sp.csr_matrix, npt.NDArray[Any] | None]:
    for i, row in enumerate(rows):
        if isinstance(row, str | bytes) or not hasattr(row, "__iter__"):
            raise DataFormatError(
                f"Y must be a list of label lists, got {row!r} at position {i}. "
                "Put a single label in a list of its own."
            )
    lists = [list(row) for row in rows]
    flat = [label for row in lists for label in row]
    lengths = np.fromiter((len(row) for row in lists), dtype=np.int64, count=len(lists))
    names: npt.NDArray[Any] | None = None
    if all(isinstance(label, int | np.integer) for label in flat):
        columns = np.asarray(flat, dtype=np.int64)
        if len(columns) and columns.min() < 0:
            raise DataFormatError(f"label ids must not be negative, got {columns.min()}.")
        width = max(n_labels or 0, int(columns.max()) + 1 if len(columns) else 0)
    else:
        kinds = {type(label) for label in flat}
        if len(kinds) > 1:
            shown = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise DataFormatError(f"labels must be all ids or all names, got a mixture of {shown}.")
        names, columns = np.unique(np.asarray(flat), return_inverse=True)
        width = len(names)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    matrix = sp.csr_matrix((np.ones(len(columns), bool), columns, indptr), (len(lists), width))
    return _canonical(matrix), names


def _canonical(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Sorted, summed, without stored zeros, int32 ids; copied only where something must change."""
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if not matrix.data.all():
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    if matrix.indices.dtype != np.int32 and matrix.nnz < 2**31:
        parts = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
        matrix = sp.csr_matrix(parts, shape=matrix.shape)
    return matrix
