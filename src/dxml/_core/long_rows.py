"""Rows of 2³¹ stored values and more: what scipy would copy in 64 bits, taken as it lies.

Where rows begin must be said by int64 then, and column ids still fit int32. scipy wants both of one
type: it copies all ids as int64 for each slice, and keeps results so. `LongRows` does what training
and ranking need by itself. All else is scipy's, right and with such copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.compiled import compiled, prange

__all__ = ["LONG", "LongRows", "by_column", "fits_int32"]

LONG = 2**31  # stored values of a matrix, from which on int32 cannot say where a row begins
BLOCK = 1 << 24  # stored values that are looked at at a time


def fits_int32(matrix: sp.csr_matrix) -> bool:
    """Whether every column's id does."""
    return bool(matrix.shape[1] <= 2**31)


class LongRows(sp.csr_matrix):
    """A CSR matrix with int32 ids and row boundaries of int64."""

    data: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    indptr: npt.NDArray[Any]

    @classmethod
    def over(
        cls, data: npt.NDArray[Any], indices: npt.NDArray[Any], indptr: npt.NDArray[Any], shape: Any
    ) -> LongRows:
        """Over these arrays, which are neither copied nor checked."""
        matrix = cls(tuple(shape), dtype=data.dtype)
        matrix.data, matrix.indices = data, indices
        matrix.indptr = np.asarray(indptr, dtype=np.int64)
        return matrix

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            start, stop, step = key.indices(self.shape[0])
            wanted = np.arange(start, stop, step)
            return self._run(start, max(start, stop)) if step == 1 else self._some(wanted)
        if isinstance(key, list | np.ndarray):
            rows = np.asarray(key)
            if rows.ndim == 1 and rows.dtype == bool and len(rows) == self.shape[0]:
                return self._some(np.flatnonzero(rows))
            if rows.ndim == 1 and rows.dtype.kind in "iu":
                return self._some(self._from_start(rows.astype(np.int64)))
        return self._in_64_bits()[key]

    def _in_64_bits(self) -> sp.csr_matrix:
        """A matrix of scipy's, with a copy of the ids in 64 bits."""
        same = sp.csr_matrix(self.shape, dtype=self.data.dtype)
        same.data, same.indptr = self.data, self.indptr
        same.indices = self.indices.astype(np.int64)
        return same

    def _from_start(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Rows counted from the first one, none of them outside."""
        n = self.shape[0]
        if len(rows) and (rows.min() < -n or rows.max() >= n):
            raise IndexError(f"row {rows[(rows < -n) | (rows >= n)][0]} is outside of {n} rows")
        return np.where(rows < 0, rows + n, rows)

    def _run(self, start: int, stop: int) -> sp.csr_matrix:
        """Rows from `start` to before `stop`; all of them are the matrix itself."""
        if (start, stop) == (0, self.shape[0]):
            return self
        first, last = self.indptr[start], self.indptr[stop]
        arrays = np.array(self.data[first:last]), np.array(self.indices[first:last])
        return _over(*arrays, self.indptr[start : stop + 1] - first, (stop - start, self.shape[1]))

    def _some(self, rows: npt.NDArray[np.int64]) -> sp.csr_matrix:
        """Copies of some rows, in the order given."""
        lengths = np.diff(self.indptr)[rows]
        ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        data = np.empty(ends[-1], dtype=self.data.dtype)
        indices = np.empty(ends[-1], dtype=self.indices.dtype)
        _copy_rows(
            self.indptr,
            self.indices,
            self.data.view(_bits(self.data)),
            rows,
            ends,
            indices,
            data.view(_bits(data)),
        )
        return _over(data, indices, ends, (len(rows), self.shape[1]))

    def _with_data(self, data: npt.NDArray[Any], copy: bool = True) -> sp.csr_matrix:
        """Other values at the same places; scipy's own operations on values come here."""
        parts = (self.indices.copy(), self.indptr.copy()) if copy else (self.indices, self.indptr)
        return _over(data, *parts, self.shape)

    def tocsc(self, copy: bool = False) -> sp.csc_matrix:
        """By columns, with int32 ids where there are no more rows than that."""
        data, rows, starts = by_column(self)
        columns = sp.csc_matrix(self.shape, dtype=data.dtype)
        columns.data, columns.indices, columns.indptr = data, rows, starts
        return columns

    @property
    def has_canonical_format(self) -> bool:
        """Whether the ids of each row rise."""
        return all(self._rises(at) for at in range(0, max(self.shape[0], 1), self._rows_at_a_time))

    @has_canonical_format.setter
    def has_canonical_format(self, value: bool) -> None:
        """scipy says so after its own operations; here it is looked at."""

    @property
    def _rows_at_a_time(self) -> int:
        return max(1, BLOCK * self.shape[0] // max(len(self.indices), 1))

    @property
    def has_sorted_indices(self) -> bool:
        """As `has_canonical_format`: ids that stand twice are sorted together with the others."""
        return self.has_canonical_format

    @has_sorted_indices.setter
    def has_sorted_indices(self, value: bool) -> None:
        """As that of `has_canonical_format`."""

    def _rises(self, first: int) -> bool:
        starts = self.indptr[first : first + self._rows_at_a_time + 1]
        ids = self.indices[starts[0] : starts[-1]]
        rises = ids[1:] > ids[:-1]
        inner = starts[1:-1] - starts[0]
        rises[inner[(inner > 0) & (inner < len(ids))] - 1] = True  # a row's first, after another's
        return bool(rises.all())

    def sum_duplicates(self) -> None:
        """Sorted ids, none twice; by scipy, which takes a copy of the ids in 64 bits."""
        self._by_scipy("sum_duplicates")

    def eliminate_zeros(self) -> None:
        """As `sum_duplicates`."""
        self._by_scipy("eliminate_zeros")

    def sort_indices(self) -> None:
        """As `sum_duplicates`."""
        if not self.has_sorted_indices:
            self._by_scipy("sort_indices")

    def _by_scipy(self, name: str) -> None:
        same = self._in_64_bits()
        getattr(same, name)()
        self.data, self.indptr = same.data, np.asarray(same.indptr, dtype=np.int64)
        self.indices = same.indices.astype(np.int32)


def _over(
    data: npt.NDArray[Any], indices: npt.NDArray[Any], indptr: npt.NDArray[Any], shape: Any
) -> sp.csr_matrix:
    """A matrix of the kind that its size asks for."""
    if len(indices) >= LONG:
        return LongRows.over(data, indices, indptr, shape)
    short = sp.csr_matrix(shape, dtype=data.dtype)
    short.data, short.indices, short.indptr = data, indices, indptr.astype(np.int32)
    return short


def _bits(values: npt.NDArray[Any]) -> str:
    """An unsigned type of the same size, so that a loop is compiled for few types."""
    return f"u{values.dtype.itemsize}"


@compiled(parallel=True)
def _copy_rows(starts, ids, values, rows, ends, new_ids, new_values):  # type: ignore[no-untyped-def]
    for i in prange(rows.shape[0]):
        first, size = starts[rows[i]], ends[i + 1] - ends[i]
        new_ids[ends[i] : ends[i + 1]] = ids[first : first + size]
        new_values[ends[i] : ends[i + 1]] = values[first : first + size]


@compiled()
def _turn(starts, ids, values, free, rows, new_values):  # type: ignore[no-untyped-def]
    for row in range(starts.shape[0] - 1):
        for p in range(starts[row], starts[row + 1]):
            place = free[ids[p]]
            free[ids[p]] += 1
            rows[place] = row
            new_values[place] = values[p]


def by_column(
    matrix: sp.csr_matrix,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """(values, rows, where each column begins), column by column, rows in rising order."""
    if matrix.nnz < LONG:
        columns = sp.csr_matrix.tocsc(matrix)
        return columns.data, columns.indices, columns.indptr
    starts = np.zeros(matrix.shape[1] + 1, dtype=np.int64)
    for at in range(0, len(matrix.indices), BLOCK):
        ids = matrix.indices[at : at + BLOCK]
        starts[1:] += np.bincount(ids, minlength=matrix.shape[1])
    np.cumsum(starts, out=starts)
    rows = np.empty(len(matrix.indices), dtype=np.int32)
    values = np.empty_like(matrix.data)
    kind = _bits(values)
    new, old = values.view(kind), matrix.data.view(kind)
    _turn(matrix.indptr, matrix.indices, old, starts[:-1].copy(), rows, new)
    return values, rows, starts
