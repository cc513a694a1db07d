"""Arrays of a model in fewer bytes: float16, or int8 with a scale a row.

`pack` gives what is saved, `unpack` gives float32 back. Who trains a model packs and unpacks it
once, so that the model in memory ranks exactly like the one on disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

__all__ = ["Precision", "pack", "pack_sparse", "unpack", "unpack_sparse"]

Precision = Literal["float32", "float16", "int8"]
Arrays = dict[str, npt.NDArray[Any]]
LARGEST = 127
HALF = (2.0**-10, 65504.0)  # where the largest number of an array must lie for float16


def pack(name: str, array: npt.NDArray[np.float32], precision: Precision) -> Arrays:
    """A dense array of one or two dimensions; of one dimension it keeps its float32."""
    if precision == "float32" or array.ndim == 1:
        return {name: array}
    if precision == "float16":
        return {name: _half(array)}
    scale = np.abs(array).max(axis=1, initial=0).astype(np.float32) / LARGEST
    steps = np.divide(array, scale[:, None], out=np.zeros_like(array), where=scale[:, None] > 0)
    return {name: np.rint(steps).astype(np.int8), f"{name}.scale": scale}


def _half(values: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """As float16, unless its range is too small for them."""
    largest = float(np.abs(values).max(initial=0))
    fits = largest == 0 or HALF[0] <= largest <= HALF[1]
    return values.astype(np.float16) if fits else values


def unpack(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
    """The inverse of `pack`, as float32."""
    array = np.asarray(arrays[name], dtype=np.float32)
    scale = arrays.get(f"{name}.scale")
    return array if scale is None else array * scale[:, None]


def pack_sparse(name: str, matrix: sp.csr_matrix, precision: Precision) -> Arrays:
    """A sparse matrix; column ids take two bytes where there are no more than 65,536 columns."""
    ids = matrix.indices.astype(np.uint16) if matrix.shape[1] <= 1 << 16 else matrix.indices
    packed: Arrays = {
        f"{name}.indptr": matrix.indptr,
        f"{name}.indices": ids,
        f"{name}.shape": np.asarray(matrix.shape, dtype=np.int64),
    }
    if matrix.dtype == bool:
        return packed
    if precision != "int8":
        values = matrix.data.astype(np.float32, copy=False)
        return packed | {f"{name}.data": _half(values) if precision == "float16" else values}
    lengths = np.diff(matrix.indptr)
    scale = np.zeros(matrix.shape[0], dtype=np.float32)
    filled = np.flatnonzero(lengths)
    if len(filled):
        starts = matrix.indptr[:-1][filled]
        scale[filled] = np.maximum.reduceat(np.abs(matrix.data), starts) / LARGEST
    spread = np.repeat(scale, lengths)
    steps = np.divide(matrix.data, spread, out=np.zeros_like(matrix.data), where=spread > 0)
    return packed | {f"{name}.data": np.rint(steps).astype(np.int8), f"{name}.scale": scale}


def unpack_sparse(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> sp.csr_matrix:
    """The inverse of `pack_sparse`: float32 or bool, with int32 ids."""
    indptr = np.asarray(arrays[f"{name}.indptr"])
    indices = np.asarray(arrays[f"{name}.indices"], dtype=np.int32)
    data = arrays.get(f"{name}.data")
    shape = tuple(arrays[f"{name}.shape"].tolist())
    if data is None:
        return sp.csr_matrix((np.ones(len(indices), bool), indices, indptr), shape=shape)
    values = np.asarray(data, dtype=np.float32)
    scale = arrays.get(f"{name}.scale")
    if scale is not None:
        values = values * np.repeat(scale, np.diff(indptr))
    return sp.csr_matrix((values, indices, indptr), shape=shape)
