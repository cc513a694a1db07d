"""Frames of pandas and polars as arrays, and the names of their columns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from dxml.exceptions import DataFormatError

__all__ = ["check_feature_names", "column_names", "frame_values", "is_frame"]

Names = npt.NDArray[np.object_]
SHOWN = 5  # names in a message, at most


def is_frame(table: Any) -> bool:
    """Whether it is a frame of pandas or polars."""
    return hasattr(table, "to_numpy") and hasattr(table, "columns")


def frame_values(table: Any) -> Any:
    """A frame as an array, of numbers if its columns are; anything else as it is."""
    if not is_frame(table):
        return table
    values = table.to_numpy()
    if values.dtype == object:  # mixed column types, such as int and bool
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError):
            pass
    return values


def column_names(table: Any) -> Names | None:
    """The names of a frame's columns; None where they are numbers, or where there is no frame."""
    if not is_frame(table):
        return None
    names = list(table.columns)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        other = names[texts.index(False)]
        raise DataFormatError(
            f"the names of columns must be all texts or all numbers, got {other!r:.40} among "
            "texts. Turn them into texts, e.g. X.columns = X.columns.astype(str)."
        )
    if not all(texts) or not names:
        return None
    found = np.empty(len(names), dtype=object)
    found[:] = names
    return found


def check_feature_names(names: Names | None, X: Any, estimator: str) -> None:
    """Refuse a frame whose columns are others than `names`, or in another order.

    Messages are those of scikit-learn, whose users know them.
    """
    given = column_names(X)
    if names is None and given is not None:
        warnings.warn(
            f"X has feature names, but {estimator} was fitted without feature names",
            UserWarning,
            stacklevel=4,
        )
    elif names is not None and given is None:
        warnings.warn(
            f"X does not have valid feature names, but {estimator} was fitted with feature names",
            UserWarning,
            stacklevel=4,
        )
    elif names is not None and given is not None and not np.array_equal(names, given):
        said = ["The feature names should match those that were passed during fit."]
        said += _listed("Feature names unseen at fit time:", set(given) - set(names))
        said += _listed("Feature names seen at fit time, yet now missing:", set(names) - set(given))
        if len(said) == 1:
            said.append("Feature names must be in the same order as they were in fit.")
        raise DataFormatError("\n".join(said) + "\n")


def _listed(what: str, names: set[str]) -> list[str]:
    if not names:
        return []
    shown = [f"- {name}" for name in sorted(names)[:SHOWN]]
    return [what, *shown, *(["- ..."] if len(names) > SHOWN else [])]
