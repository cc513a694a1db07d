"""Dataset: features, labels and their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from dxml._core.validation import check_features, check_labels
from dxml.exceptions import DataFormatError, ParameterError

__all__ = ["Dataset"]


def _check_names(what: str, names: Sequence[str] | None, size: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if len(names) != size:
        raise DataFormatError(
            f"{what}_names holds {len(names)} names but there are {size} {what}s. "
            f"Give one name for each {what}, in the order of its columns."
        )
    return tuple(names)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Points with sparse features and sets of labels.

    Matrices are converted to CSR with int32 indices, sorted in each row, without duplicates and
    without stored zeros. The arrays that are passed in are not changed.

    Parameters
    ----------
    X : csr_matrix of shape (n_samples, n_features), float32
        Features. A row may be empty.
    Y : csr_matrix of shape (n_samples, n_labels), bool
        Labels: True where the point carries the label. A row or a column may be empty.
    name : str
        Name of the data in messages and tables.
    label_names, feature_names : tuple of str, optional
        One name a column.
    propensity : (A, B)
        Constants of the label propensity model, for propensity-scored metrics.
    """

    X: csr_matrix
    Y: csr_matrix
    name: str = ""
    label_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    propensity: tuple[float, float] = (0.55, 1.5)

    def __post_init__(self) -> None:
        if self.X.shape[0] != self.Y.shape[0]:
            raise DataFormatError(
                f"X has {self.X.shape[0]} rows but Y has {self.Y.shape[0]}. "
                "Give one row of labels for each row of features."
            )
        object.__setattr__(self, "X", check_features(self.X))
        object.__setattr__(self, "Y", check_labels(csr_matrix(self.Y))[0])
        label_names = _check_names("label", self.label_names, self.n_labels)
        feature_names = _check_names("feature", self.feature_names, self.n_features)
        object.__setattr__(self, "label_names", label_names)
        object.__setattr__(self, "feature_names", feature_names)

    @property
    def n_samples(self) -> int:
        """Number of points."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.X.shape[1])

    @property
    def n_labels(self) -> int:
        """Number of columns of Y."""
        return int(self.Y.shape[1])

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, {self.n_samples} points, "
            f"{self.n_features} features, {self.n_labels} labels)"
        )

    def take(self, rows: ArrayLike) -> Dataset:
        """The points at `rows` (ids from 0, or a boolean mask), in that order."""
        rows = np.asarray(rows)
        if rows.dtype != np.bool_:
            rows = rows.astype(np.int64)
        elif rows.shape != (self.n_samples,):
            raise ParameterError(
                f"a mask of shape {rows.shape} was given for {self.n_samples} points. "
                "Give one entry for each point."
            )
        return replace(self, X=self.X[rows], Y=self.Y[rows])

    def describe(self) -> dict[str, float]:
        """Summary statistics of the data, by name."""
        per_point = np.diff(self.Y.indptr)
        per_label = np.bincount(self.Y.indices, minlength=self.n_labels)
        features = np.diff(self.X.indptr)
        cells = self.n_samples * self.n_features
        return {
            "points": self.n_samples,
            "features": self.n_features,
            "labels": self.n_labels,
            "labels a point": _mean(per_point),
            "points a label": _mean(per_label),
            "features a point": _mean(features),
            "points without labels": int(np.count_nonzero(per_point == 0)),
            "points without features": int(np.count_nonzero(features == 0)),
            "labels without points": int(np.count_nonzero(per_label == 0)),
            "density": self.X.nnz / cells if cells else 0.0,
        }


def _mean(counts: Any) -> float:
    return float(counts.mean()) if counts.size else 0.0
