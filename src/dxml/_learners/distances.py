"""Squared Euclidean distances between rows, sparse or dense, on a CPU or a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.compiled import compiled, prange, spare
from dxml._core.scaling import is_dense
from dxml._core.sparse import ranges
from dxml._learners.steady_product import steady_product

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = [
    "BLOCK",
    "Distances",
    "Rows",
    "SteadyDistances",
    "blocks",
    "compact",
    "full_precision",
    "in_form",
]

Floats: TypeAlias = npt.NDArray[np.float32]
Rows: TypeAlias = sp.csr_matrix | Floats
Products: TypeAlias = Callable[[Rows], "Tensor"]

SAME_POINT = 1e-6  # squared distance, as a share of the squared lengths, that is only rounding
BLOCK = 2**24  # numbers in a block of distances


class Distances:
    """Squared distances to fixed points, on one device."""

    def __init__(self, points: Rows, device: torch.device) -> None:
        import torch

        self._sparse, self._device = sp.issparse(points), device
        self._squares = torch.from_numpy(_squares(points)).to(device)
        self._products: Products
        if not self._sparse:
            self._products = _dense_products(points, device)
        elif device.type == "cpu":
            self._products = _inverted_products(points)
        else:
            self._products = _bagged_products(points, device)

    def squared(self, X: Rows) -> Tensor:
        """(n_samples, n_points); what may be rounding alone is 0."""
        import torch

        X = in_form(X, self._sparse)
        squares = torch.from_numpy(_squares(X)).to(self._device)
        out = torch.empty((X.shape[0], len(self._squares)), device=self._device)
        for part, rows in blocks(X, BLOCK // max(out.shape[1], X.shape[1] // 8, 1)):
            lengths = squares[part, None] + self._squares
            block = torch.sub(lengths, self._products(rows), alpha=2, out=out[part])
            block.masked_fill_(block < SAME_POINT * lengths, 0)
        return out


class SteadyDistances:
    """`Distances` on a CPU, without torch: those of a row do not depend on the rows beside it."""

    def __init__(self, points: Rows) -> None:
        self._sparse, self._squares = sp.issparse(points), _squares(points)
        self._points: sp.csc_matrix | Floats
        if isinstance(points, np.ndarray):
            self._points = np.ascontiguousarray(points.T, np.float32)
        else:
            self._points = points.tocsc()

    def squared(self, X: Rows) -> Floats:
        """(n_samples, n_points); what may be rounding alone is 0."""
        X = in_form(X, self._sparse)
        out, squares = self._products(X), _squares(X)
        change = _to_squares.__wrapped__ if spare(len(out)) else _to_squares
        change(out, squares, self._squares)
        return out

    def _products(self, X: Rows) -> Floats:
        columns = self._points
        if isinstance(X, np.ndarray) or isinstance(columns, np.ndarray):
            return steady_product(X, columns)
        products = np.empty((X.shape[0], len(self._squares)), dtype=np.float32)
        if not spare(len(products)):
            arrays = (columns.indptr, columns.indices, columns.data)
            _invert(X.indptr, X.indices, X.data, *arrays, products)
            return products
        for i, (first, last) in enumerate(pairwise(X.indptr.tolist())):
            starts, ends = (columns.indptr[X.indices[first:last] + step] for step in (0, 1))
            places = ranges(starts, ends)
            own = np.repeat(X.data[first:last].astype(np.float64), ends - starts)
            own *= columns.data[places]
            products[i] = np.bincount(columns.indices[places], own, len(self._squares))
        return products


@compiled(parallel=True)
def _to_squares(products, squares, others):  # type: ignore[no-untyped-def]
    """Squared distances in place of products; numpy does the same to the bit, row by row."""
    for i in prange(products.shape[0]):
        lengths = squares[i] + others
        own = lengths - np.float32(2) * products[i]
        products[i] = np.where(own < np.float32(SAME_POINT) * lengths, np.float32(0), own)


def _dense_products(points: Floats, device: torch.device) -> Products:
    import torch

    weights = torch.from_numpy(np.ascontiguousarray(points)).to(device)
    return lambda X: torch.from_numpy(np.ascontiguousarray(X)).to(device) @ weights.T


def _inverted_products(points: sp.csr_matrix) -> Products:
    """For a CPU: a row meets only the points that share a feature with it."""
    import torch

    columns = points.tocsc()

    def products(X: sp.csr_matrix) -> Tensor:
        out = np.empty((X.shape[0], points.shape[0]), dtype=np.float32)
        _invert(X.indptr, X.indices, X.data, columns.indptr, columns.indices, columns.data, out)
        return torch.from_numpy(out)

    return products


@compiled(parallel=True)
def _invert(indptr, indices, data, starts, points, values, out):  # type: ignore[no-untyped-def]
    for i in prange(indptr.shape[0] - 1):
        total = np.zeros(out.shape[1])
        for j in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[j])
            feature = indices[j]
            for p in range(starts[feature], starts[feature + 1]):
                total[points[p]] += value * values[p]
        out[i] = total


def _bagged_products(points: sp.csr_matrix, device: torch.device) -> Products:
    """For a GPU: each point is a weighted sum of columns of the dense block of rows."""
    import torch

    features, starts, values = (
        torch.from_numpy(array).to(device) for array in (points.indices, points.indptr, points.data)
    )

    def products(X: sp.csr_matrix) -> Tensor:
        by_feature = torch.from_numpy(X.toarray()).to(device).T.contiguous()
        return torch.nn.functional.embedding_bag(
            features,
            by_feature,
            starts,
            mode="sum",
            per_sample_weights=values,
            include_last_offset=True,
        ).T

    return products


def blocks(X: Rows, size: int) -> Iterator[tuple[slice, Rows]]:
    """X in blocks of about `size` rows, with the places they come from."""
    n, size = X.shape[0], max(size, 1)
    for start in range(0, n, size):
        part = slice(start, min(start + size, n))
        yield part, X if n <= size else X[part]


def _squares(X: Rows) -> Floats:
    """The squared length of each row."""
    if isinstance(X, np.ndarray):
        return np.square(X, dtype=np.float64).sum(axis=1).astype(np.float32)
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.bincount(row, np.square(X.data, dtype=np.float64), X.shape[0]).astype(np.float32)


def compact(X: Rows) -> Rows:
    """CSR, or an array if over half full."""
    return in_form(X, not is_dense(X))


def in_form(X: Rows, sparse: bool) -> Rows:
    if isinstance(X, np.ndarray):
        return sp.csr_matrix(X) if sparse else X
    return X if sparse else X.toarray()


@contextmanager
def full_precision() -> Iterator[None]:
    """Inside, a GPU multiplies float32 as float32: distances are differences of near numbers."""
    import torch

    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    matmul.allow_tf32 = False
    try:
        yield
    finally:
        matmul.allow_tf32 = before
