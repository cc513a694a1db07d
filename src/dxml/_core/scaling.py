"""Feature scaling: rows to length 1, or columns to mean 0 and standard deviation 1.

The first suits bags of words, the second dense measurements. ``auto`` decides by the share of
non-zeros in X.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.sparse import plain_csr, row_squares, runs_of_rows

__all__ = ["FeatureScaler", "Scaling", "ScalingChoice", "fit_scaler", "is_dense", "to_length_one"]

Scaling = Literal["auto", "rows", "columns", "none"]
ScalingChoice = Annotated[
    Scaling, "of features: rows to length 1, columns standardised, auto by density"
]
"""The parameter ``scaling`` of every method."""
DENSE_SHARE = 0.5  # share of non-zeros above which ``auto`` treats X as dense measurements
LARGE = 1e18  # whose square a 32-bit float still holds
LEAST_SPREAD = 1e-36  # of a column; 32-bit floats have few digits left below
WIDE = 1e30  # the spread that makes zeros of such a column
MIN_RELATIVE_SPREAD = 1e-6  # of a column's mean; less is float32 rounding of a constant column


def is_dense(X: sp.csr_matrix | npt.NDArray[Any]) -> bool:
    """Whether more than half of X is non-zero, as in measurements but not in bags of words."""
    filled = np.count_nonzero(X) if isinstance(X, np.ndarray) else X.nnz
    return bool(filled > DENSE_SHARE * X.shape[0] * X.shape[1])


def to_length_one(X: sp.csr_matrix) -> sp.csr_matrix:
    """Each row divided by its length; zero rows stay zero."""
    squares = row_squares(X)
    scale = np.divide(1, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)
    values = np.empty(len(X.indices), dtype=np.result_type(X.data, np.float32))
    for rows in runs_of_rows(X.indptr):
        own = slice(X.indptr[rows.start], X.indptr[rows.stop])
        lengths = np.diff(X.indptr[rows.start : rows.stop + 1])
        values[own] = _times(X.data[own], scale[rows], lengths)
    return plain_csr(values, X.indices, X.indptr, X.shape)


def _times(
    data: npt.NDArray[np.float32], scale: npt.NDArray[np.float64], lengths: npt.NDArray[Any]
) -> npt.NDArray[np.float32]:
    """The values of rows of these lengths, each times what its row has in `scale`."""
    tiny = scale > np.finfo(np.float32).max  # rows of denormal numbers
    values: npt.NDArray[np.float32] = data * np.repeat(
        np.where(tiny, 0, scale).astype(np.float32), lengths
    )
    if tiny.any():
        own = np.repeat(tiny, lengths)
        values[own] = data[own] * np.repeat(scale, lengths)[own]
    return values


def _standardised(
    X: sp.csr_matrix, mean: npt.NDArray[np.float32], spread: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """X minus the columns' means, in units of their spreads; what would overflow is cut off.

    Also a small number may: in a column whose training values were far smaller still.
    """
    largest = float(max(np.abs(X.data).max(initial=0), np.abs(mean).max(initial=0)))
    if max(largest, largest / float(spread.min(initial=1))) < LARGE:
        return (X.toarray() - mean) / spread
    scaled = (X.toarray() - mean.astype(np.float64)) / spread
    return np.clip(scaled, -LARGE, LARGE).astype(np.float32)


@dataclass(frozen=True)
class FeatureScaler:
    """A fitted scaling.

    Attributes
    ----------
    mean, spread : float32 arrays of shape (n_features,) or None
        Mean and standard deviation of each column; None where columns are not scaled.
    rows : bool
        Whether each row is then divided by its length.
    """

    mean: npt.NDArray[np.float32] | None
    spread: npt.NDArray[np.float32] | None
    rows: bool

    def transform(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Scaled float32 CSR; empty rows stay empty unless columns are scaled."""
        if self.mean is not None and self.spread is not None:
            X = sp.csr_matrix(_standardised(X, self.mean, self.spread))
        if not self.rows:
            return X
        return to_length_one(X)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays for a saved model."""
        saved: dict[str, npt.NDArray[Any]] = {"scaler.rows": np.array([self.rows])}
        if self.mean is not None and self.spread is not None:
            saved |= {"scaler.mean": self.mean, "scaler.spread": self.spread}
        return saved

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_features: int) -> FeatureScaler:
        """The inverse of `arrays`."""
        rows = bool(arrays.flags("scaler.rows", 1)[0])
        if "scaler.mean" not in arrays and "scaler.spread" not in arrays:
            return cls(None, None, rows)
        mean = arrays.floats("scaler.mean", n_features)
        spread = arrays.floats("scaler.spread", n_features, least=0)
        tiny = spread < LEAST_SPREAD / 2  # no fit leaves one, but for rounding
        return cls(mean, np.where(tiny, np.float32(WIDE), spread) if tiny.any() else spread, rows)


def fit_scaler(X: sp.csr_matrix, scaling: Scaling) -> FeatureScaler:
    """Choose and fit a scaling on training features (n_samples, n_features)."""
    if scaling == "auto":
        scaling = "columns" if is_dense(X) else "rows"
    if scaling != "columns":
        return FeatureScaler(None, None, rows=scaling == "rows")
    n = max(X.shape[0], 1)
    values, columns = X.data.astype(np.float64), X.shape[1]
    mean = np.bincount(X.indices, values, columns) / n
    zeros = n - np.bincount(X.indices, minlength=columns)
    square = np.bincount(X.indices, (values - mean[X.indices]) ** 2, columns) + zeros * mean**2
    spread = np.sqrt(square / n)
    spread[spread <= MIN_RELATIVE_SPREAD * np.abs(mean)] = 1
    spread[spread <= LEAST_SPREAD] = WIDE
    return FeatureScaler(mean.astype(np.float32), spread.astype(np.float32), rows=True)
