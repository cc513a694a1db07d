"""Products of dense matrices in which a row has the same numbers alone and among others.

A library adds the products of few rows in another order than those of many, or of as many with more
threads, so that the last bits of a point's scores would depend on the points it is asked with. Here
every sum is added in order, one product after the other, whatever the rows and the threads. That
takes up to twice as long as a library's product of many rows, and, where it is compiled, as long as
that of one.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dxml._core.compiled import compiled, prange, spare

__all__ = ["is_spare", "steady_product"]

Floats: TypeAlias = npt.NDArray[np.float32]

ROWS = 16  # of the result, that a thread computes together
TERMS = 64  # products of a sum that are added before the next of their rows
SPARE = 1 << 26  # products that numpy forms, at most, where numba is not imported yet


def steady_product(rows: Floats, columns: Floats) -> Floats:
    """rows @ columns, (n, m), in float32."""
    rows, columns = (np.ascontiguousarray(each, dtype=np.float32) for each in (rows, columns))
    product = _by_numpy if is_spare(len(rows), columns.size) else _compiled
    return product(rows, columns)


def is_spare(rows: int, size: int) -> bool:
    """Whether numpy should multiply so many rows with a matrix of this size."""
    return spare(rows) and rows * size <= SPARE


def _compiled(rows: Floats, columns: Floats) -> Floats:
    out = np.zeros((len(rows), columns.shape[1]), dtype=np.float32)
    _add_products(rows, columns, out)
    return out


def _by_numpy(rows: Floats, columns: Floats) -> Floats:
    out = np.zeros((len(rows), columns.shape[1]), dtype=np.float32)
    for start in range(0, rows.shape[1], TERMS):
        some = columns[start : start + TERMS]
        for i in range(len(rows)):
            terms = rows[i, start : start + TERMS, None] * some
            terms[0] += out[i]
            out[i] = np.add.accumulate(terms, axis=0)[-1]  # `sum` would add in pairs
    return out


@compiled(parallel=True)
def _add_products(rows, columns, out):  # type: ignore[no-untyped-def]
    n, n_terms = rows.shape
    n_columns = columns.shape[1]
    for block in prange((n + ROWS - 1) // ROWS):
        for start in range(0, n_terms, TERMS):
            stop = min(start + TERMS, n_terms)
            for i in range(block * ROWS, min((block + 1) * ROWS, n)):
                own = out[i]
                at = start
                while at + 4 <= stop:  # four at a time: a sum is read and written once for them
                    a, b, c, d = rows[i, at], rows[i, at + 1], rows[i, at + 2], rows[i, at + 3]
                    first, second = columns[at], columns[at + 1]
                    third, fourth = columns[at + 2], columns[at + 3]
                    for j in range(n_columns):
                        total = own[j] + a * first[j]
                        total = total + b * second[j]
                        total = total + c * third[j]
                        own[j] = total + d * fourth[j]
                    at += 4
                while at < stop:
                    a, first = rows[i, at], columns[at]
                    for j in range(n_columns):
                        own[j] += a * first[j]
                    at += 1
