"""Fast construction and products of CSR matrices."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import lru_cache
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core import long_rows
from dxml._core.compiled import compiled, prange

__all__ = [
    "append_rows",
    "canonical",
    "column_counts",
    "column_squares",
    "emptied",
    "indicator",
    "only_values",
    "plain_csr",
    "ranges",
    "row_squares",
    "runs_of_rows",
    "sparse_product",
    "stack_rows",
    "stored",
    "widened",
]

BLOCK = 1 << 24  # stored values that are looked at at a time
MAX_CACHED_ROWS = 4096  # rows of a matrix whose empty template is cached

_Real = TypeVar("_Real", np.float32, np.float64)


def plain_csr(
    data: npt.NDArray[Any], indices: npt.NDArray[Any], indptr: npt.NDArray[Any], shape: Any
) -> sp.csr_matrix:
    """A CSR matrix over these arrays, which are neither copied nor checked.

    scipy's constructor takes 30 µs for its checks, and ranking one point needs about six matrices.
    Copying a cached empty matrix of the same shape takes 8 µs. From 2³¹ stored values on it is one
    of `dxml._core.long_rows`.
    """
    if len(indices) >= long_rows.LONG:
        return long_rows.LongRows.over(data, indices, indptr, shape)
    rows, columns = shape
    matrix = copy(_kept(rows, columns)) if rows <= MAX_CACHED_ROWS else _empty(rows, columns)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


def _empty(rows: int, columns: int) -> sp.csr_matrix:
    return sp.csr_matrix((rows, columns), dtype=np.float32)


_kept = lru_cache(maxsize=256)(_empty)


@compiled()
def stored(starts, row):  # type: ignore[no-untyped-def]
    """The places of a row's values, for loops of compiled functions.

    They are unsigned numbers. Of signed ones numba asks at each access whether they are negative,
    which takes as long as the access itself and keeps the loop from being vectorised.
    """
    return range(np.uint64(starts[row]), np.uint64(starts[row + 1]))


@compiled(parallel=True)
def _sparse_product(indptr, indices, data, weights, out):  # type: ignore[no-untyped-def]
    for i in prange(indptr.shape[0] - 1):
        row = out[i]
        row[:] = 0
        for j in range(indptr[i], indptr[i + 1]):
            value = data[j]
            weight = weights[indices[j]]
            for c in range(row.shape[0]):
                row[c] += value * weight[c]


def sparse_product(X: sp.csr_matrix, weights: npt.NDArray[_Real]) -> npt.NDArray[_Real]:
    """X @ weights for CSR X (n, d) and dense weights (d, h), in their precision, over all cores."""
    out = np.empty((X.shape[0], weights.shape[1]), dtype=weights.dtype)
    _sparse_product(X.indptr, X.indices, X.data, weights, out)
    return out


def ranges(
    starts: npt.NDArray[np.integer[Any]], ends: npt.NDArray[np.integer[Any]]
) -> npt.NDArray[np.int64]:
    """The whole numbers from each start to before its end, one range after the other.

    >>> ranges(np.array([5, 0]), np.array([8, 2])).tolist()
    [5, 6, 7, 0, 1]
    """
    lengths = ends.astype(np.int64) - starts
    before = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(starts - before, lengths)


def runs_of_rows(indptr: npt.NDArray[np.integer[Any]]) -> Iterator[slice]:
    """Rows that follow each other, of about `BLOCK` stored values together; one row at least."""
    start, last = 0, len(indptr) - 1
    while start < last:
        stop = int(np.searchsorted(indptr, indptr[start] + np.int64(BLOCK), side="right")) - 1
        stop = min(max(stop, start + 1), last)
        yield slice(start, stop)
        start = stop


def row_squares(X: sp.csr_matrix) -> npt.NDArray[np.float64]:
    """The sum of each row's squares."""
    squares = np.zeros(X.shape[0])
    for rows in runs_of_rows(X.indptr):
        starts = X.indptr[rows.start : rows.stop + 1]
        filled = np.flatnonzero(np.diff(starts))
        if len(filled):
            values = np.square(X.data[starts[0] : starts[-1]], dtype=np.float64)
            squares[rows.start + filled] = np.add.reduceat(values, starts[filled] - starts[0])
    return squares


def column_counts(X: sp.csr_matrix) -> npt.NDArray[np.int64]:
    """Stored values of each column."""
    counts = np.zeros(X.shape[1], dtype=np.int64)
    for at in range(0, len(X.indices), BLOCK):
        counts += np.bincount(X.indices[at : at + BLOCK], minlength=X.shape[1])
    return counts


def column_squares(X: sp.csr_matrix) -> npt.NDArray[np.float64]:
    """The sum of each column's squares, added up in the order of the rows."""
    if len(X.indices) <= BLOCK:
        squares = X.data.astype(np.float64) ** 2
        return np.asarray(np.bincount(X.indices, squares, X.shape[1]), dtype=np.float64)
    sums = np.zeros(X.shape[1])
    for at in range(0, len(X.indices), BLOCK):
        part = slice(at, at + BLOCK)
        np.add.at(sums, X.indices[part], X.data[part].astype(np.float64) ** 2)
    return sums


def canonical(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Sorted, summed, without stored zeros, int32 ids; copied only where something must change."""
    if matrix.nnz >= long_rows.LONG:
        indices = matrix.indices[: matrix.nnz].astype(np.int32, copy=False)
        matrix = plain_csr(matrix.data[: matrix.nnz], indices, matrix.indptr, matrix.shape)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if not matrix.data.all():
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    if matrix.indices.dtype != np.int32:
        parts = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
        matrix = sp.csr_matrix(parts, shape=matrix.shape)
    return matrix


def indicator(
    columns: npt.NDArray[np.integer[Any]], lengths: npt.ArrayLike, n_columns: int
) -> sp.csr_matrix:
    """A 0/1 matrix, bool: the first row has ones in the first lengths[0] of `columns`, and so on.

    A column may stand twice in a row.
    """
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    ones = np.ones(len(columns), dtype=bool)
    return canonical(sp.csr_matrix((ones, columns, indptr), shape=(len(indptr) - 1, n_columns)))


def widened(matrix: sp.csr_matrix, n_columns: int) -> sp.csr_matrix:
    """The same values, which are not copied, with empty columns at the end."""
    wider = copy(matrix)
    wider.resize(matrix.shape[0], n_columns)
    return wider


def emptied(matrix: sp.csr_matrix, rows: npt.NDArray[np.integer[Any]]) -> sp.csr_matrix:
    """The matrix with nothing in some rows."""
    kept = np.ones(matrix.shape[0], dtype=bool)
    kept[rows] = False
    return only_values(matrix, np.repeat(kept, np.diff(matrix.indptr)))


def only_values(matrix: sp.csr_matrix, kept: npt.NDArray[np.bool_]) -> sp.csr_matrix:
    """The matrix with some of its stored values alone."""
    before = np.zeros(len(kept) + 1, dtype=matrix.indptr.dtype)
    np.cumsum(kept, out=before[1:])
    arrays = matrix.data[kept], matrix.indices[kept], before[matrix.indptr]
    return plain_csr(*arrays, matrix.shape)


class _Room:
    """Arrays with room at their end, shared by the matrices that are their beginnings."""

    def __init__(self, matrix: sp.csr_matrix, size: int, rows: int) -> None:
        self.lock = Lock()
        self.size, self.rows = matrix.nnz, matrix.shape[0]
        self.data = _with_room(matrix.data, size)
        self.indices = _with_room(matrix.indices, size)
        self.indptr = _with_room(matrix.indptr, rows + 1)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """A matrix that is sent to another process has no room there."""
        return type(None), ()

    def holds(self, size: int, rows: int) -> bool:
        return size <= len(self.data) and rows < len(self.indptr)

    def append(self, second: sp.csr_matrix) -> None:
        self.data[self.size : self.size + second.nnz] = second.data
        self.indices[self.size : self.size + second.nnz] = second.indices
        ends = self.indptr[self.rows + 1 : self.rows + 1 + second.shape[0]]
        np.add(second.indptr[1:], self.size, out=ends, casting="unsafe")
        self.size, self.rows = self.size + second.nnz, self.rows + second.shape[0]

    def matrix(self, columns: int) -> sp.csr_matrix:
        arrays = self.data[: self.size], self.indices[: self.size], self.indptr[: self.rows + 1]
        return plain_csr(*arrays, (self.rows, columns))


def _with_room(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    roomy = np.empty(size, dtype=array.dtype)
    roomy[: len(array)] = array
    return roomy


def append_rows(first: sp.csr_matrix, second: sp.csr_matrix) -> sp.csr_matrix:
    """As `stack_rows`, in time that does not depend on `first`, on average over many calls.

    `first` stays as it is: the new rows are written behind its own, into room that both share. If
    other rows were written there already, or the room is too small, `first` is copied. Nobody may
    write into matrices that are made so.
    """
    columns = second.shape[1]
    size, rows = first.nnz + second.nnz, first.shape[0] + second.shape[0]
    if size >= long_rows.LONG or first.data.dtype != second.data.dtype:
        return stack_rows(widened(first, columns), second)
    room: _Room | None = getattr(first, "_room", None)
    if room is not None:
        with room.lock:
            last = (room.size, room.rows) == (first.nnz, first.shape[0])
            if last and room.holds(size, rows):
                room.append(second)
                return _kept_room(room, columns)
    room = _Room(first, size + size // 2, rows + rows // 2)
    room.append(second)
    return _kept_room(room, columns)


def _kept_room(room: _Room, columns: int) -> sp.csr_matrix:
    matrix = room.matrix(columns)
    matrix._room = room
    return matrix


def stack_rows(first: sp.csr_matrix, second: sp.csr_matrix) -> sp.csr_matrix:
    """The rows of one matrix after those of another."""
    return sp.csr_matrix(sp.vstack([first, second], format="csr"))
