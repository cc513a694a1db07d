"""A sparse matrix in the bytes that it is stored in, read by compiled code as it is.

`dxml._core.precision` packs numbers as float16, or as int8 with one scale per row. `Packed` holds
such a matrix without unpacking it, so that the arrays of a saved model stay in their file, whose
pages processes share. `value_at` reads one number inside compiled loops: float16, which numba does
not compute with on a CPU, comes as the same bits in uint16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.compiled import when_loaded
from dxml._core.precision import Precision, precision_of, unpack_sparse

__all__ = ["NO_SCALE", "Packed", "add_products", "as_bits", "as_csr", "value_at"]

NO_SCALE = np.empty(0, dtype=np.float32)
"""Where numbers have no scale."""

AT_ONCE = 1 << 17
"""Pairs of rows and features that numpy looks up together: their places stay in a few MB."""


def as_bits(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers as `value_at` reads them; nothing is copied."""
    return values.view(np.uint16) if values.dtype == np.float16 else values


def value_at(values: npt.NDArray[Any], place: int) -> np.float32:
    """One number of `as_bits`, as float32; only inside compiled code."""
    raise NotImplementedError


@when_loaded
def _overload_value_at(numba: Any) -> None:
    from numba.extending import overload

    @overload(value_at)
    def _value_at(values, place):  # type: ignore[no-untyped-def]
        if values.dtype != numba.types.uint16:
            return lambda values, place: np.float32(values[place])

        def half(values, place):  # type: ignore[no-untyped-def]
            """Sign, exponent and fraction moved to float32's places; its exponent is 112 larger."""
            bits = np.uint32(values[place])
            sign = np.uint32((bits & np.uint32(0x8000)) << np.uint32(16))
            rest = np.uint32((bits & np.uint32(0x7FFF)) << np.uint32(13))
            return np.uint32(sign | rest).view(np.float32) * np.float32(2.0**112)

        return half


@dataclass(frozen=True, eq=False)
class Packed:
    """A CSR matrix as `dxml._core.precision.pack_sparse` lays it out.

    Attributes
    ----------
    name : str
        That its arrays begin with.
    arrays : mapping of str to array
        As `dxml._core.arrays.Arrays.packed_csr` gives them.
    """

    name: str
    arrays: Mapping[str, npt.NDArray[Any]]

    @cached_property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.arrays[f"{self.name}.shape"].tolist()
        return rows, columns

    @property
    def indptr(self) -> npt.NDArray[Any]:
        return self.arrays[f"{self.name}.indptr"]

    @property
    def indices(self) -> npt.NDArray[Any]:
        return self.arrays[f"{self.name}.indices"]

    @property
    def precision(self) -> Precision:
        return precision_of(self.values)

    @cached_property
    def data(self) -> npt.NDArray[Any]:
        """As `value_at` reads it."""
        return as_bits(self.values)

    @property
    def values(self) -> npt.NDArray[Any]:
        """As numpy reads it."""
        return self.arrays[f"{self.name}.data"]

    @property
    def scale(self) -> npt.NDArray[np.float32]:
        """By which the numbers of each row are to be multiplied, or `NO_SCALE`."""
        return self.arrays.get(f"{self.name}.scale", NO_SCALE)

    def unpacked(self) -> sp.csr_matrix:
        """As float32 in memory."""
        return unpack_sparse(self.name, self.arrays)

    def rows(self, which: npt.NDArray[np.integer[Any]]) -> sp.csr_matrix:
        """Some rows, as float32 in memory."""
        starts = self.indptr[:-1][which].astype(np.int64)
        lengths = self.indptr[1:][which] - starts
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        kept = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
        values = self.values[kept].astype(np.float32)
        if len(self.scale):
            values *= np.repeat(self.scale[which], lengths)
        ids = self.indices[kept].astype(np.int32)
        return sp.csr_matrix((values, ids, indptr), shape=(len(which), self.shape[1]))


def as_csr(matrix: sp.csr_matrix | Packed) -> sp.csr_matrix:
    """As float32 in memory."""
    return matrix.unpacked() if isinstance(matrix, Packed) else matrix


def add_products(
    out: npt.NDArray[np.float32],
    features: npt.NDArray[np.int32],
    values: npt.NDArray[np.float32],
    bounds: tuple[npt.NDArray[np.integer[Any]], npt.NDArray[np.integer[Any]]],
    matrix: sp.csr_matrix | Packed,
    scale: npt.NDArray[np.float32] = NO_SCALE,
) -> None:
    """Add the products of one sparse vector with some rows, one feature after the other.

    Features that the vector does not have would add 0; the others are looked up in each row.

    Parameters
    ----------
    out : float32 array
        One number for each of the rows.
    features, values : arrays
        Of the vector, in rising order of the features.
    bounds : (starts, ends)
        Where each row lies in the arrays of `matrix`; its features are in rising order.
    matrix : csr_matrix or Packed
    scale : float32 array
        Of each of the rows, or `NO_SCALE`.
    """
    ids, weights = matrix.indices, matrix.values if isinstance(matrix, Packed) else matrix.data
    inside = features < matrix.shape[1]
    features, values = features[inside].astype(ids.dtype, copy=False), values[inside]
    if not len(ids) or not len(features):
        return
    starts, ends = (np.asarray(bound, dtype=np.int64) for bound in bounds)
    step = max(1, AT_ONCE // len(features))
    for first in range(0, len(starts), step):
        block = slice(first, first + step)
        places = _lower_bounds(ids, starts[block], ends[block], features)
        has = ids.take(places, mode="clip") == features
        has &= places < ends[block, None]
        rows, columns = np.nonzero(has)
        numbers = weights[places[has]].astype(np.float32)
        if len(scale):
            numbers *= scale[block][rows]
        np.add.at(out[block], rows, values[columns] * numbers)


def _lower_bounds(
    ids: npt.NDArray[Any],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    wanted: npt.NDArray[Any],
) -> npt.NDArray[np.int64]:
    """Where each id would stand in each of some sorted stretches of `ids`, (stretches, wanted).

    All are searched at once, each by halving what is left of its stretch.
    """
    ends = ends[:, None]
    low = np.repeat(starts[:, None], len(wanted), axis=1)
    longest = int((ends - low[:, :1]).max(initial=0))
    step = 1 << longest.bit_length() >> 1
    while step:
        further = low + step
        fits = ids.take(np.minimum(further, ends) - 1) < wanted
        fits &= further <= ends
        low += fits * step
        step >>= 1
    return low
