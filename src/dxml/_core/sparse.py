"""Sparse matrices without ceremony."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import scipy.sparse as sp

__all__ = ["plain_csr"]

_EMPTY = sp.csr_matrix((0, 0))


def plain_csr(
    data: npt.NDArray[Any], indices: npt.NDArray[Any], indptr: npt.NDArray[Any], shape: Any
) -> sp.csr_matrix:
    """A sparse matrix over these very arrays: nothing is checked, copied or read.

    The constructor's checks take longer than ranking a point; a copy of an empty matrix has none.
    """
    matrix = object.__new__(sp.csr_matrix)
    matrix.__dict__.update(_EMPTY.__dict__)
    matrix._shape = tuple(shape)
    matrix.indptr, matrix.indices, matrix.data = indptr, indices, data
    return matrix
