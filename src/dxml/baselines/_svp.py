"""Embeddings that keep the inner products of neighbours: singular value projection.

P. Jain, R. Meka, I. Dhillon: Guaranteed Rank Minimization via Singular Value Projection. NIPS 2010,
for positive semidefinite matrices that are known on a sparse set Ω of entries:

    min_M ‖P_Ω(G) − P_Ω(M)‖²  over positive semidefinite M of rank r:   M ← P_r(M + η P_Ω(G − M))

M = Z Zᵀ is never formed. The r leading eigenvectors are updated in each step by subspace
iteration, which needs only products with the sparse residual and with Z.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.compiled import compiled, prange
from dxml._core.sparse import sparse_product
from dxml._core.threads import n_threads

__all__ = ["label_neighbours", "parts", "singular_value_projection"]

STEP_SIZE = 1.5  # η after the first step; the gradient's Lipschitz constant is 1, so below 2
EXTRA_VECTORS = 10  # eigenvectors computed in addition to the r that are kept

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]


@compiled(parallel=True)
def _nearest_labels(indptr, labels, data, starts, rows, values, n_chunks, near, cosines):  # type: ignore[no-untyped-def]
    """The k largest entries of each row of Y Yᵀ; ties go to the rows that follow, cyclically."""
    n, k = near.shape
    for chunk in prange(n_chunks):
        total = np.zeros(n, dtype=np.float32)
        touched = np.empty(n, dtype=np.int32)
        for i in range(chunk * n // n_chunks, (chunk + 1) * n // n_chunks):
            count = 0
            for j in range(indptr[i], indptr[i + 1]):
                for p in range(starts[labels[j]], starts[labels[j] + 1]):
                    row = rows[p]
                    if total[row] == 0:
                        touched[count] = row
                        count += 1
                    total[row] += data[j] * values[p]
            bar = np.float32(0)
            if count > k:
                bar = np.partition(total[touched[:count]], count - k)[count - k]
            filled = 0
            for a in range(count):
                if total[touched[a]] > bar:
                    near[i, filled] = touched[a]
                    cosines[i, filled] = total[touched[a]]
                    filled += 1
            step = 0
            while filled < min(count, k):
                row = (i + step) % n
                step += 1
                if total[row] == bar:
                    near[i, filled] = row
                    cosines[i, filled] = bar
                    filled += 1
            for a in range(count):
                total[touched[a]] = 0


def parts(matrix: sp.csr_matrix | sp.csc_matrix) -> tuple[Array, Array, Array]:
    """The arrays of a sparse matrix, as arguments of a numba function."""
    return np.asarray(matrix.indptr), np.asarray(matrix.indices), np.asarray(matrix.data)


def label_neighbours(Y: sp.csr_matrix, n_neighbors: int) -> sp.csr_matrix:
    """P_Ω(Y Yᵀ) for label vectors of length 1: a symmetric sparse (n, n) matrix of cosines.

    Parameters
    ----------
    Y : bool csr_matrix of shape (n, n_labels)
    n_neighbors : int
        Each row keeps this many of its largest cosines above 0, itself among them; a pair is in Ω
        where either row keeps it. Among equal cosines the rows that follow are taken, cyclically,
        so that points with low numbers are not neighbours of all others.
    """
    n = Y.shape[0]
    lengths = np.sqrt(np.maximum(np.diff(Y.indptr), 1)).astype(np.float32)
    data = np.repeat(1 / lengths, np.diff(Y.indptr))
    units = sp.csr_matrix((data, Y.indices, Y.indptr), shape=Y.shape)
    columns = units.tocsc()
    near = np.full((n, min(n_neighbors, n)), -1, dtype=np.int32)
    cosines = np.zeros(near.shape, dtype=np.float32)
    n_chunks = min(n, n_threads())
    _nearest_labels(*parts(units), *parts(columns), n_chunks, near, cosines)
    kept = near >= 0
    rows = np.repeat(np.arange(n, dtype=np.int32), kept.sum(axis=1))
    graph = sp.csr_matrix((cosines[kept], (rows, near[kept])), shape=(n, n))
    return sp.csr_matrix(graph.maximum(graph.T))


@compiled(parallel=True, fastmath=True)
def _residual(indptr, indices, data, Z, out):  # type: ignore[no-untyped-def]
    for i in prange(indptr.shape[0] - 1):
        for p in range(indptr[i], indptr[i + 1]):
            product = np.float32(0)
            for c in range(Z.shape[1]):
                product += Z[i, c] * Z[indices[p], c]
            out[p] = data[p] - product


def singular_value_projection(
    graph: sp.csr_matrix, dim: int, steps: int, rng: np.random.Generator
) -> tuple[Floats, list[float]]:
    """Z of shape (n, dim) with Z Zᵀ ≈ `graph` wherever `graph` stores a value.

    Parameters
    ----------
    graph : float32 symmetric csr_matrix of shape (n, n)
    steps : int
        Gradient steps. The first, from M = 0 with η = 1, is the leading eigenvectors of `graph`.

    Returns
    -------
    Z : float32 array of shape (n, dim)
    errors : list of float
        ‖P_Ω(graph − Z Zᵀ)‖ / ‖graph‖ after each step.
    """
    n = graph.shape[0]
    dim = min(dim, n)
    basis = _orthonormal(rng.standard_normal((n, min(n, dim + EXTRA_VECTORS)), dtype=np.float32))
    Z = np.zeros((n, dim), dtype=np.float32)
    residual, errors = graph.copy(), []
    scale = max(float(np.linalg.norm(graph.data)), 1e-30)
    for step in range(steps):
        eta = np.float32(STEP_SIZE if step else 1)
        for _ in range(1 if step else 4):
            basis = _orthonormal(_moved(Z, residual, eta, basis))
        image = _moved(Z, residual, eta, basis)  # (n, dim + EXTRA_VECTORS)
        inner = (basis.T @ image).astype(np.float64)
        values, vectors = np.linalg.eigh((inner + inner.T) / 2)
        basis = basis @ vectors[:, ::-1].astype(np.float32)
        roots = np.sqrt(np.maximum(values[::-1][:dim], 0)).astype(np.float32)
        Z = np.ascontiguousarray(basis[:, :dim] * roots)
        _residual(graph.indptr, graph.indices, graph.data, Z, residual.data)
        errors.append(float(np.linalg.norm(residual.data)) / scale)
    return Z, errors


def _moved(Z: Floats, residual: sp.csr_matrix, eta: np.float32, basis: Floats) -> Floats:
    """(Z Zᵀ + η R) B, the gradient step applied to a basis."""
    return Z @ (Z.T @ basis) + eta * sparse_product(residual, np.ascontiguousarray(basis))


def _orthonormal(columns: Floats) -> Floats:
    return np.asarray(np.linalg.qr(columns)[0], dtype=np.float32)
