"""The points of a model with shortlists as its folder has them: by feature, to be searched as is.

A folder has such points once, column by column, in the precision of the model. Their neighbours
are searched right there, so that opening a model reads next to nothing and processes share the
pages. The rows are made of the columns when something is learnt.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.long_rows import by_column
from dxml._core.packed import NO_SCALE, as_bits
from dxml._core.precision import Precision, pack_sparse, precision_of, unpack_sparse
from dxml._core.sparse import plain_csr
from dxml._neighbors.cosine import Columns, only_features, unit_scale

__all__ = ["Rows", "StoredPoints", "rows_of"]

Mask = npt.NDArray[np.bool_]
NAME = "columns"


@dataclass(frozen=True, eq=False)
class StoredPoints:
    """Points by feature, in the arrays of a folder.

    Attributes
    ----------
    arrays : dict of arrays
        ``columns.indptr`` (n_features + 1), ``columns.indices``: the points that have a feature,
        ``columns.data``: what they have of it, in float32, float16 or int8, ``columns.scale``
        (n_samples): by which a point's numbers are to be multiplied, with int8 only, and
        ``columns.unit`` (n_samples): what makes a point's row of the compared features one of
        length 1.
    shape : (n_samples, n_features)
    """

    arrays: dict[str, npt.NDArray[Any]]
    shape: tuple[int, int]

    @classmethod
    def of(cls, points: sp.csr_matrix, searched: Mask, precision: Precision) -> StoredPoints:
        """Of scaled rows and the features that are compared."""
        rows = pack_sparse(NAME, points, precision)
        values = rows[f"{NAME}.data"]
        bits = plain_csr(as_bits(values), points.indices, points.indptr, points.shape)
        turned, own_rows, starts = by_column(bits)
        ids = own_rows.astype(np.uint16) if points.shape[0] <= 1 << 16 else own_rows
        arrays = {
            f"{NAME}.indptr": starts,
            f"{NAME}.indices": ids,
            f"{NAME}.data": turned.view(values.dtype),
        }
        arrays[f"{NAME}.unit"] = unit_scale(only_features(unpack_sparse(NAME, rows), searched))
        if f"{NAME}.scale" in rows:
            arrays[f"{NAME}.scale"] = rows[f"{NAME}.scale"]
        return cls(arrays, points.shape)

    @classmethod
    def are_in(cls, arrays: Arrays) -> bool:
        """Whether a folder has its points so."""
        return f"{NAME}.indptr" in arrays

    @classmethod
    def restore(cls, arrays: Arrays, shape: tuple[int, int]) -> StoredPoints:
        """From the checked arrays of a folder."""
        return cls(arrays.packed_columns(NAME, *shape), shape)

    @property
    def precision(self) -> Precision:
        return precision_of(self.arrays[f"{NAME}.data"])

    @cached_property
    def columns(self) -> Columns:
        """For the search."""
        starts, rows = self.arrays[f"{NAME}.indptr"], self.arrays[f"{NAME}.indices"]
        values, unit = self.arrays[f"{NAME}.data"], self.arrays[f"{NAME}.unit"]
        scale = self.arrays.get(f"{NAME}.scale", NO_SCALE)
        return Columns(starts, rows, values, unit, scale)

    @cached_property
    def rows(self) -> sp.csr_matrix:
        """The points, as float32 in memory."""
        data = self.arrays[f"{NAME}.data"]
        ids = np.asarray(self.arrays[f"{NAME}.indices"], dtype=np.int32)
        arrays = as_bits(data), ids, self.arrays[f"{NAME}.indptr"]
        turned, features, starts = by_column(plain_csr(*arrays, self.shape[::-1]))
        packed = {
            f"{NAME}.indptr": starts,
            f"{NAME}.indices": features,
            f"{NAME}.data": turned.view(data.dtype),
            f"{NAME}.shape": np.asarray(self.shape),
        }
        if f"{NAME}.scale" in self.arrays:
            packed[f"{NAME}.scale"] = self.arrays[f"{NAME}.scale"]
        return unpack_sparse(NAME, packed)


Rows: TypeAlias = sp.csr_matrix | StoredPoints
"""Points as they are held."""


def rows_of(points: Rows) -> sp.csr_matrix:
    """The points, row by row."""
    return points.rows if isinstance(points, StoredPoints) else points
