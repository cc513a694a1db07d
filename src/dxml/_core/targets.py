"""Labels in the forms that a user has them in, and the form that a prediction has.

Y is a 0/1 matrix (sparse, dense or a frame), a list of labels a point, or one label a point: the
1-D y of scikit-learn's classifiers. A prediction has the form that `fit` was given.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import listed_texts
from dxml._core.frames import column_names, frame_values, is_frame
from dxml._core.sparse import indicator
from dxml._core.validation import (
    as_lists,
    check_labels,
    check_names,
    is_indicator,
    is_zeros_and_ones,
)
from dxml.exceptions import DataFormatError

__all__ = ["Target", "as_values", "encode_target", "grown_labels", "names_in", "read_target"]

Form = Literal["sparse", "dense", "lists", "values"]
"""A 0/1 matrix of either kind, lists of labels, or one label a point."""

Names = npt.NDArray[Any]
_DTYPE = re.compile(r"bool|str|(u?int|float)[0-9]{1,3}")
"""NumPy would take more: it evaluates parts of other names, and one can mean gigabytes a value."""


@dataclass(frozen=True)
class Target:
    """The form of Y, and the type of a dense matrix."""

    form: Form = "sparse"
    dtype: str = "bool"

    def state(self) -> dict[str, str]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, str] | None, has_names: bool) -> Target:
        """The inverse of `state`; models of earlier versions have none."""
        if state is None:
            return cls("lists" if has_names else "sparse")
        found = cls(**dict[str, Any](state))
        if found.form not in get_args(Form) or not _DTYPE.fullmatch(found.dtype):
            raise ValueError(f"no form of labels is {found!r:.80}")
        np.dtype(found.dtype)  # a TypeError where there is none of so many bits
        return found

    def names(self, stored: Any, n_labels: int) -> Names:
        """The names or values of the labels, read from JSON."""
        if self.form != "values" or all(isinstance(name, str) for name in stored):
            return np.asarray(listed_texts(stored, "label_names", n_labels))
        if len(stored) != n_labels or not all(type(x) in (int, float, bool) for x in stored):
            raise ValueError("'label_names' must be a value for each label")
        return np.asarray(stored)


def read_target(Y: Any) -> tuple[sp.csr_matrix, Names | None, Target]:
    """Labels as boolean CSR, what its columns are called where Y tells, and the form of Y."""
    if Y is None:
        raise DataFormatError(
            "fit requires y to be passed, but the target y is None. Give the labels of the points."
        )
    if not (hasattr(Y, "__len__") or sp.issparse(Y)):
        Y = list(Y) if hasattr(Y, "__iter__") else np.asarray(Y)
    values = as_values(Y)
    if values is not None:
        classes, columns = np.unique(values, return_inverse=True)
        return indicator(columns, [1] * len(values), len(classes)), classes, Target("values")
    if sp.issparse(Y):
        return *check_labels(Y), Target("sparse")
    if is_frame(Y):
        matrix, names = check_labels(Y)[0], column_names(Y)
        return matrix, None if names is None else names.astype(str), _dense(frame_values(Y))
    if is_indicator(Y):
        return *check_labels(Y), _dense(Y)
    Y = as_lists(Y)
    if is_zeros_and_ones(Y):
        return *check_labels(Y), _dense(np.asarray(Y))
    return *check_labels(Y), Target("lists")


def encode_target(Y: Any, names: Names | None) -> Any:
    """Y by columns: a 0/1 matrix, or lists of the columns of `names`; unknown names are left out.

    Columns of a frame are found by their names.
    """
    if names is None:
        return Y
    column = {name: i for i, name in enumerate(names.tolist())}
    values = as_values(Y)
    if values is not None:
        return [[column[value]] if value in column else [] for value in values.tolist()]
    frame_names = column_names(Y)
    if frame_names is not None:
        places = [(i, column[name]) for i, name in enumerate(frame_names) if name in column]
        given, own = np.array(places, dtype=np.int64).reshape(-1, 2).T
        shape = len(frame_names), len(names)
        moved = sp.csr_matrix((np.ones(len(own), dtype=bool), (given, own)), shape=shape)
        return check_labels(Y)[0] @ moved
    if is_indicator(Y):
        return Y
    lists = as_lists(Y)
    if is_zeros_and_ones(lists):
        return np.asarray(lists, dtype=bool)
    return [[column[name] for name in row if name in column] for row in check_names(lists)]


def names_in(Y: Any) -> set[Any]:
    """The names that Y has for labels: values, names of a frame's columns, or those in lists."""
    values = as_values(Y)
    if values is not None:
        return set(values.tolist())
    frame_names = column_names(Y)
    if frame_names is not None:
        return set(frame_names.tolist())
    if is_indicator(Y) or is_zeros_and_ones(lists := as_lists(Y)):
        return set()
    return {name for row in check_names(lists) for name in row}


def as_values(Y: Any) -> Names | None:
    """One label a point, as an array of texts or of numbers; None where Y has another form."""
    if sp.issparse(Y):
        return None
    if is_frame(Y) or (isinstance(Y, np.ndarray) and Y.ndim == 2):
        return _as_column(Y)
    if isinstance(Y, np.ndarray) and Y.ndim == 1 and Y.dtype != object:
        return _checked(Y)
    if isinstance(Y, str | bytes) or not hasattr(Y, "__iter__"):
        return None
    Y = Y.tolist() if hasattr(Y, "tolist") else list(Y)
    if not Y or not all(isinstance(label, str) or np.isscalar(label) for label in Y):
        return None
    return _checked(np.asarray(Y, dtype=object))


def _as_column(Y: Any) -> Names | None:
    """A single column that is no 0/1 indicator: one label a point, as scikit-learn takes it."""
    values = np.asarray(frame_values(Y))
    if values.shape[1] != 1 or values.dtype.kind == "b" or is_zeros_and_ones(values, 1):
        return None
    from sklearn.exceptions import DataConversionWarning

    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Change the shape of y to "
        "(n_samples,), for example using ravel().",
        DataConversionWarning,
        stacklevel=2,
    )
    return as_values(values[:, 0])


def _checked(values: Names) -> Names:
    """Values that are labels: texts, whole numbers, or True and False."""
    if values.dtype == object:
        kinds = {type(value) for value in values}
        if len({issubclass(kind, str) for kind in kinds}) > 1:
            shown = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise DataFormatError(f"labels must be all texts or all numbers, got {shown}.")
        values = np.asarray(values.tolist())
    if values.dtype.kind not in "buifU":
        raise DataFormatError(
            f"Unknown label type: labels must be texts or whole numbers, got {values.dtype}. "
            "Turn such labels into text."
        )
    if values.dtype.kind == "f":
        rest = values[~np.isfinite(values)]
        if len(rest):
            what = "NaN" if math.isnan(rest[0]) else "infinity"
            raise DataFormatError(f"Input y contains {what}. Drop points without a label.")
        rest = values[values != np.floor(values)]
        if len(rest):
            raise DataFormatError(
                f"Unknown label type: labels must be texts or whole numbers, got {rest[0]}, as of "
                "a continuous quantity. Make classes of it first."
            )
    return values


def _dense(matrix: Any) -> Target:
    return Target("dense", np.asarray(matrix).dtype.name)


def grown_labels(
    Y: Any, n_points: int, n_labels: int, names: Names | None
) -> tuple[sp.csr_matrix, Names | None]:
    """Labels of new points in the columns of a model and new ones after them; the names of all."""
    if names is not None:
        new = sorted(names_in(Y) - set(names.tolist()))
        names = np.asarray([*names.tolist(), *new])
        Y = encode_target(Y, names)
    labels, unknown = check_labels(Y, n_labels if names is None else len(names))
    if unknown is not None or labels.shape[1] < n_labels:
        raise DataFormatError(
            f"Y must have the {n_labels} labels of the model, and may have more, "
            f"got {labels.shape[1]}{'' if unknown is None else ' by name'}."
        )
    if names is not None and labels.shape[1] > len(names):
        raise DataFormatError(
            f"the {len(names)} labels of this model have names, and new ones need them too, "
            f"got a matrix of {labels.shape[1]} columns. Give lists of names."
        )
    if labels.shape[0] != n_points:
        raise DataFormatError(
            f"X and Y must have equally many rows, got {n_points} and {labels.shape[0]}."
        )
    return labels, names
