"""Arrays of a model in fewer bytes: float16, or int8 with one scale per row.

`pack` returns the arrays to save, `unpack` returns float32. After training, a model is packed and
unpacked once, so that the model in memory ranks exactly like the one on disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core import long_rows
from dxml._core.sparse import plain_csr

__all__ = ["Precision", "pack", "pack_sparse", "precision_of", "unpack", "unpack_sparse"]

Precision = Literal["float32", "float16", "int8"]
Arrays = dict[str, npt.NDArray[Any]]
MAX_INT8 = 127
FLOAT16_RANGE = (2.0**-10, 65504.0)  # that the largest value of an array must lie in


def pack(name: str, array: npt.NDArray[np.float32], precision: Precision) -> Arrays:
    """A dense array of one or two dimensions; one-dimensional arrays stay float32."""
    if precision == "float32" or array.ndim == 1:
        return {name: array}
    if precision == "float16":
        return {name: _half(array)}
    scale = np.abs(array).max(axis=1, initial=0).astype(np.float32) / MAX_INT8
    steps = np.divide(array, scale[:, None], out=np.zeros_like(array), where=scale[:, None] > 0)
    return {name: np.rint(steps).astype(np.int8), f"{name}.scale": scale}


def precision_of(values: npt.NDArray[Any]) -> Precision:
    """That of packed numbers."""
    names: dict[str, Precision] = {"float32": "float32", "float16": "float16", "int8": "int8"}
    return names[values.dtype.name]


def _half(values: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """As float16, or unchanged where the values are outside the range of float16."""
    largest = float(np.abs(values).max(initial=0))
    fits = largest == 0 or FLOAT16_RANGE[0] <= largest <= FLOAT16_RANGE[1]
    return values.astype(np.float16) if fits else values


def unpack(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
    """The inverse of `pack`, as float32."""
    array = np.asarray(arrays[name], dtype=np.float32)
    scale = arrays.get(f"{name}.scale")
    return array if scale is None else array * scale[:, None]


def pack_sparse(name: str, matrix: sp.csr_matrix, precision: Precision) -> Arrays:
    """A sparse matrix; column ids are uint16 where there are at most 65,536 columns."""
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
        scale[filled] = np.maximum.reduceat(np.abs(matrix.data), starts) / MAX_INT8
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
        return _csr(np.ones(len(indices), bool), indices, indptr, shape)
    values = np.asarray(data, dtype=np.float32)
    scale = arrays.get(f"{name}.scale")
    if scale is not None:
        values = values * np.repeat(scale, np.diff(indptr))
    return _csr(values, indices, indptr, shape)


def _csr(
    data: npt.NDArray[Any], indices: npt.NDArray[Any], indptr: npt.NDArray[Any], shape: Any
) -> sp.csr_matrix:
    """Over these arrays, without a look at them where their types agree, or they are long."""
    if indptr.dtype == indices.dtype or len(indices) >= long_rows.LONG:
        return plain_csr(data, indices, indptr, shape)
    return sp.csr_matrix((data, indices, indptr), shape=shape)
