"""Checks of the arrays that users pass; code behind these functions relies on them.

`check_features` returns float32 CSR, `check_labels` boolean CSR. Both have sorted indices and no
duplicates. The caller's arrays are never changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.frames import frame_values, is_frame
from dxml._core.sparse import canonical, indicator
from dxml.exceptions import DataFormatError, ParameterError, advise

__all__ = [
    "as_lists",
    "check_features",
    "check_groups",
    "check_k",
    "check_label_ids",
    "check_labels",
    "check_names",
    "check_pair",
    "check_threshold",
    "is_indicator",
    "is_missing",
    "is_zeros_and_ones",
]

MOST_COLUMNS = 2**31 - 1
BLOCK = 1 << 22  # values that are looked at at a time
_NUMBERS = "buif"  # dtype kinds: bool, unsigned, int, float


def check_features(
    X: Any, n_features: int | None = None, model: str = "the model"
) -> sp.csr_matrix:
    """Features as float32 CSR of shape (n_samples, n_features).

    Parameters
    ----------
    X : scipy sparse matrix, array-like or frame of shape (n_samples, n_features)
    n_features : int, optional
        The width the model was trained on.
    model : str
        What a message calls it.
    """
    given = X if sp.issparse(X) else _as_numbers(np.asarray(frame_values(X)))
    if given.dtype.kind == "c":
        raise DataFormatError(
            f"Complex data not supported: X must hold real numbers, got {given.dtype}."
        )
    if given.dtype.kind not in _NUMBERS:
        raise DataFormatError(
            f"X must hold real numbers, got an array of {given.dtype}. "
            "Turn text into features first, e.g. with scikit-learn's TfidfVectorizer."
        )
    if given.ndim != 2:
        raise DataFormatError(
            f"X must have 2 dimensions (points, features), got {given.ndim}. "
            "Reshape your data: a single point is X[None, :]."
        )
    if given.shape[1] == 0:
        raise DataFormatError(
            f"Found array with 0 feature(s) (shape={given.shape}) while a minimum of 1 is required."
        )
    _check_width("X", given.shape[1])
    _check_places("X", given)
    with np.errstate(over="ignore"):
        matrix = sp.csr_matrix(given, dtype=np.float32)
    bad = _first_not_finite(matrix.data)
    if bad is not None:
        row = int(np.searchsorted(matrix.indptr, bad, side="right") - 1)
        value = given[row, matrix.indices[bad]] if hasattr(given, "__getitem__") else np.nan
        if np.isfinite(value):
            raise DataFormatError(
                f"X must fit 32-bit floats, got {value:g} at row {row}, "
                f"column {matrix.indices[bad]}. Scale the values."
            )
        raise DataFormatError(
            f"X must be finite, got {_not_finite(matrix.data[bad])} at row {row}, "
            f"column {matrix.indices[bad]}. Replace or drop such values."
        )
    if n_features is not None and matrix.shape[1] != n_features:
        raise DataFormatError(
            f"X has {matrix.shape[1]} features, but {model} is expecting {n_features} features as "
            "input. Use the same feature space for training and prediction."
        )
    return canonical(matrix)


def _as_numbers(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Objects that are numbers as an array of them; anything else as it is."""
    if values.dtype != object or values.ndim != 2:
        return values
    try:
        return values.astype(np.float64)
    except ValueError:
        return values


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{value:g}"


def _first_not_finite(values: npt.NDArray[np.float32]) -> int | None:
    """Where the first NaN or infinity is; values are looked at in blocks, as they may be many."""
    for start in range(0, len(values), BLOCK):
        finite = np.isfinite(values[start : start + BLOCK])
        if not finite.all():
            return start + int(np.argmin(finite))
    return None


def check_labels(
    Y: Any, n_labels: int | None = None
) -> tuple[sp.csr_matrix, npt.NDArray[Any] | None]:
    """Labels as boolean CSR of shape (n_samples, n_labels), and their names if they had any.

    Parameters
    ----------
    Y : sparse or dense 0/1 indicator of shape (n_samples, n_labels), or a sequence of label lists
        An indicator may be a frame too, or lists of more than two zeros and ones, equally long.
        Lists of non-negative integers are column numbers; lists of texts are names, and the columns
        are then the sorted distinct names.
    n_labels : int, optional
        Columns of the result where Y holds lists of integers.
    """
    if not is_indicator(Y):
        lists = as_lists(Y)
        if not is_zeros_and_ones(lists):
            return _from_lists(lists, n_labels)
        Y = np.asarray(lists, dtype=bool)
    Y = frame_values(Y)
    if not sp.issparse(Y) and Y.dtype.kind not in _NUMBERS:
        raise DataFormatError(
            f"a frame as Y must hold 0 and 1, a column a label, got {Y.dtype}. "
            "Give labels as lists, e.g. Y['labels'].tolist()."
        )
    if Y.ndim != 2:
        raise DataFormatError(
            f"Y must be a 0/1 matrix of shape (points, labels) or a list of label lists, "
            f"got an array of {Y.ndim} dimension(s)."
        )
    _check_width("Y", Y.shape[1])
    _check_places("Y", Y)
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
    return canonical(matrix), None


def is_indicator(Y: Any) -> bool:
    """Whether Y is a matrix, sparse, of numbers or a frame, rather than lists of labels."""
    numeric = isinstance(Y, np.ndarray) and Y.dtype.kind in _NUMBERS
    return sp.issparse(Y) or numeric or is_frame(Y)


def check_names(Y: Any) -> list[list[str]]:
    """Lists of names, for a model whose labels have names."""
    lists = as_lists(Y)
    labels, names = _from_lists(lists)
    if names is None and labels.nnz:
        raise DataFormatError(
            "the labels of this model have names, got lists of ids. "
            "Give lists of names, or a 0/1 matrix."
        )
    return lists


def check_label_ids(labels: npt.ArrayLike, n_labels: int) -> npt.NDArray[np.int32]:
    """Labels by their columns: whole numbers from 0 on, below the number of labels."""
    ids = np.asarray(labels)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "ui"):
        raise DataFormatError(f"labels must be a list of label ids, got {labels!r:.40}.")
    outside = ids[(ids < 0) | (ids >= n_labels)]
    if outside.size:
        raise DataFormatError(
            f"label ids must be from 0 to {n_labels - 1}, got {outside[0]}. "
            f"The model has {n_labels} labels."
        )
    return ids.astype(np.int32)


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


def check_threshold(threshold: float | None) -> None:
    """A probability, where one is given."""
    if threshold is not None and not 0 <= threshold <= 1:
        raise ParameterError(
            f"threshold is a probability from 0 to 1, got {threshold}. For 30 per cent give 0.3."
        )


def is_missing(value: Any) -> bool:
    """Whether a cell is None, NaN, or pandas' NA or NaT."""
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def check_groups(groups: Any, n: int) -> npt.NDArray[np.int64]:
    """A number from 0 for the group of each of n points; at least two groups.

    A point whose group is None, NaN or "" has a group of its own.
    """
    values = list(groups)
    if len(values) != n:
        raise DataFormatError(f"expected a group for each of {n:,} points, got {len(values):,}.")
    known: dict[Any, int] = {}
    codes = np.empty(n, dtype=np.int64)
    for place, value in enumerate(values):
        alone = is_missing(value) or value == ""
        key = (None, place) if alone else (value,)
        codes[place] = known.setdefault(key, len(known))
    if n and len(known) == 1:
        raise DataFormatError(
            f"all {n:,} points are of one group, {values[0]!r}: there is no other to hold out. "
            f"Leave {advise('groups', '--group')} out."
        )
    return codes


def as_lists(Y: Iterable[Any]) -> list[list[Any]]:
    """The labels of each point as a list."""
    lists = []
    for i, row in enumerate(Y):
        if isinstance(row, str | bytes) or not hasattr(row, "__iter__"):
            raise DataFormatError(
                f"Y must be a list of label lists, got {row!r} at position {i}. "
                "Put a single label in a list of its own."
            )
        lists.append(list(row))
    return lists


def _from_lists(
    lists: list[list[Any]], n_labels: int | None = None
) -> tuple[sp.csr_matrix, npt.NDArray[Any] | None]:
    flat = [label for row in lists for label in row]
    names: npt.NDArray[Any] | None = None
    if _are_ids(flat):
        if flat and min(flat) < 0:
            raise DataFormatError(f"label ids must not be negative, got {min(flat)}.")
        _check_width("Y", int(max(flat, default=-1)) + 1)
        columns = np.asarray(flat, dtype=np.int64)
        width = max(n_labels or 0, int(columns.max()) + 1 if len(columns) else 0)
    else:
        names, columns = np.unique(np.asarray(flat), return_inverse=True)
        width = len(names)
    return indicator(columns, [len(row) for row in lists], width), names


def _are_ids(labels: list[Any]) -> bool:
    """Whether labels are ids; if not, all are names."""
    kinds = set(map(type, labels))
    ids = {kind for kind in kinds if issubclass(kind, int | np.integer) and kind is not bool}
    names = {kind for kind in kinds if issubclass(kind, str)}
    if wrong := kinds - ids - names:
        label = next(label for label in labels if type(label) in wrong)
        raise DataFormatError(
            f"labels must be text or whole numbers, got {label!r:.40} ({type(label).__name__}). "
            "Turn such labels into text."
        )
    if ids and names:
        shown = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise DataFormatError(f"labels must be all ids or all names, got a mixture of {shown}.")
    return not names


def is_zeros_and_ones(rows: Any, least: int = 3) -> bool:
    """Whether rows are as long as each other, of 0 and 1 alone, and of `least` or more.

    Lists of two may be the ids of two labels.
    """
    width = len(rows[0]) if len(rows) else 0
    return (
        width >= least
        and all(len(row) == width for row in rows)
        and all(isinstance(x, Real | np.bool_) and x in (0, 1) for row in rows for x in row)
    )


def _check_width(name: str, columns: int) -> None:
    """Refuse more columns than ids of 32 bits have numbers for; the last ones would be negative."""
    if columns > MOST_COLUMNS:
        raise DataFormatError(
            f"{name} may have {MOST_COLUMNS:,} columns, got {columns:,}. "
            "Leave out columns that nothing has."
        )


def _check_places(name: str, matrix: Any) -> None:
    """Refuse a sparse matrix with row boundaries or indices that lead out of it.

    scipy makes such a matrix without a word, and neither its conversions nor our compiled code
    check bounds.
    """
    if not sp.issparse(matrix) or matrix.format not in ("csr", "csc"):
        return  # other formats check themselves
    lines, places = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    starts, indices = matrix.indptr, matrix.indices
    good = len(starts) == lines + 1 and starts[0] == 0 and (starts[1:] >= starts[:-1]).all()
    good = good and starts[-1] <= min(len(indices), len(matrix.data))
    if good and len(indices):
        good = indices.min() >= 0 and indices.max() < places
    if not good:
        raise DataFormatError(
            f"{name} is a damaged sparse matrix: its indices or row boundaries lead out of it. "
            "Make it anew from its entries."
        )
