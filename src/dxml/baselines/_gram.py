"""Ridge regression of many targets at once, with an intercept that is not penalised.

    min_{W, b} ‖X W + 1 bᵀ − T‖² + α ‖W‖²   ⇔   (Cᵀ C + α I) W = Cᵀ T,  C = X − 1 μᵀ,

needs only products of the Gram matrix Cᵀ C with blocks of columns. `Gram` stores that matrix where
there are few features. With few points it solves for them instead, since W = Cᵀ (C Cᵀ + α I)⁻¹ T.
With many of both it multiplies by X and Xᵀ, without centring them, in conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from dxml._core.sparse import sparse_product
from dxml._core.stages import Newest, checksum, remembered
from dxml._core.threads import blas_threads, n_threads
from dxml.baselines._linear import LinearMap

__all__ = ["MAX_DIRECT", "Gram", "conjugate_gradient", "occurring", "ridge"]

MAX_DIRECT = 6000  # features, points or labels up to which a square matrix is stored: 288 MB
ROWS_AT_A_TIME = 4096  # of a sum over rows; fixed, so that it does not depend on the threads
POINTS_AT_A_TIME = 256  # whose features are dense at once

Doubles = npt.NDArray[np.float64]
_T = TypeVar("_T")


class Gram:
    """Cᵀ C of centred features C = X − 1 μᵀ, as an operator.

    Parameters
    ----------
    X : float32 csr_matrix of shape (n_samples, n_features)
    direct : int
        Features up to which Cᵀ C is stored, and points up to which C Cᵀ is.

    Attributes
    ----------
    mean : float64 array of shape (n_features,)
        μ.
    checksum : str
        Of X, where what training gives is stored.
    dense : float64 array of shape (n_features, n_features), or None with many features
    """

    def __init__(self, X: sp.csr_matrix, direct: int = MAX_DIRECT) -> None:
        self.X = X
        self.n_samples, self.n_features = X.shape
        self.transposed = X.T.tocsr()
        self.mean = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel() / max(X.shape[0], 1)
        self.dense: Doubles | None = None
        self.few_points = self.n_samples <= direct
        self._factors: dict[float, Any] = {}
        self.checksum = checksum({"X": X})
        if self.n_features <= direct:
            self.dense = remembered("gram", {"X": self.checksum}, self._products)["dense"]

    def _products(self) -> dict[str, Doubles]:
        """Cᵀ C."""
        dense = (self.transposed @ self.X).toarray().astype(np.float64)
        dense -= self.n_samples * np.outer(self.mean, self.mean)
        return {"dense": dense}

    def __matmul__(self, S: Doubles) -> Doubles:
        """Cᵀ C S for S of shape (n_features, m)."""
        if self.dense is not None:
            return self.dense @ S
        return self.correlate(self.project(S))

    def project(self, S: Doubles) -> Doubles:
        """C S, of shape (n_samples, m); its columns sum to 0."""
        outputs = sparse_product(self.X, np.ascontiguousarray(S, dtype=np.float32))
        shift = self.mean @ S
        return _minus(outputs, lambda rows: shift)

    def correlate(self, T: Doubles | sp.csr_matrix) -> Doubles:
        """Cᵀ T, of shape (n_features, m), for dense or sparse T of shape (n_samples, m)."""
        if sp.issparse(T):
            totals = np.asarray(T.sum(axis=0, dtype=np.float64)).ravel()
            product = (self.transposed @ T.astype(np.float32)).toarray()
        else:
            totals = np.sum(by_rows(len(T), lambda rows: T[rows].sum(axis=0)), axis=0)
            product = sparse_product(self.transposed, np.ascontiguousarray(T, dtype=np.float32))
        return _minus(product, lambda rows: np.outer(self.mean[rows], totals))

    def solve(self, B: Doubles, alpha: float) -> Doubles:
        """(Cᵀ C + α I)⁻¹ B for B of shape (n_features, m)."""
        if self.dense is None:
            return conjugate_gradient(self, B, np.ones(B.shape[1]), alpha, np.zeros_like(B), 200)
        return self._solved(self.dense, B, alpha)

    def regress(
        self,
        T: Doubles | sp.csr_matrix,
        alpha: float,
        tolerance: float = 1e-5,
        stored: bool = False,
    ) -> Doubles:
        """(Cᵀ C + α I)⁻¹ Cᵀ T for targets T of shape (n_samples, m).

        Parameters
        ----------
        tolerance : float
            Of conjugate gradients, where they are needed.
        stored : bool
            Whether their state is stored in between.
        """
        if self.dense is None and self.few_points:
            dense: Any = T.toarray() if sp.issparse(T) else T  # type: ignore[union-attr]
            targets = np.asarray(dense, dtype=np.float64)
            return self.correlate(self._solved(self._between_points, targets, alpha))
        right = self.correlate(T)
        if self.dense is not None:
            return self.solve(right, alpha)
        ones, start = np.ones(right.shape[1]), np.zeros_like(right)
        newest = None
        if stored:
            inputs = {"X": self.checksum, "right": right, "alpha": alpha, "tolerance": tolerance}
            newest = Newest("regression", {**inputs, "threads": blas_threads()})
        return conjugate_gradient(self, right, ones, alpha, start, 200, tolerance, newest)

    def _solved(self, square: Doubles | Callable[[], Doubles], B: Doubles, alpha: float) -> Doubles:
        """(square + α I)⁻¹ B; the factors of the last α are kept."""
        if alpha not in self._factors:
            shifted = square() if callable(square) else square.copy()
            shifted[np.diag_indices(len(shifted))] += alpha
            self._factors = {alpha: scipy.linalg.cho_factor(shifted, overwrite_a=True)}
        solution: Doubles = scipy.linalg.cho_solve(self._factors[alpha], B)
        return solution

    def _between_points(self) -> Doubles:
        """C Cᵀ, of shape (n_samples, n_samples)."""
        _, X = occurring(self.X)
        products = np.empty((self.n_samples, self.n_samples))
        for first in range(0, self.n_samples, POINTS_AT_A_TIME):
            some = slice(first, first + POINTS_AT_A_TIME)
            products[:, some] = sparse_product(X, np.ascontiguousarray(X[some].toarray().T))
        means = products.mean(axis=0)
        products -= means
        products -= (means - means.mean())[:, None]
        return products


def occurring(X: sp.csr_matrix) -> tuple[npt.NDArray[np.int32], sp.csr_matrix]:
    """The features that X has, and X with these columns alone."""
    found, columns = np.unique(X.indices, return_inverse=True)
    shape = (X.shape[0], len(found))
    return found, sp.csr_matrix((X.data, columns.astype(np.int32), X.indptr), shape=shape)


def by_rows(n: int, work: Callable[[slice], _T]) -> list[_T]:
    """What `work` gives for each run of rows of n, in their order, over all cores."""
    runs = [slice(at, min(at + ROWS_AT_A_TIME, n)) for at in range(0, max(n, 1), ROWS_AT_A_TIME)]
    if len(runs) == 1:
        return [work(runs[0])]
    with ThreadPoolExecutor(n_threads()) as pool:
        return list(pool.map(work, runs))


def _minus(product: npt.NDArray[np.float32], less: Callable[[slice], Doubles]) -> Doubles:
    """``product - less``, which is given for rows, in double precision."""
    result = np.empty(product.shape)

    def subtract(rows: slice) -> None:
        np.subtract(product[rows], less(rows), out=result[rows])

    by_rows(len(product), subtract)
    return result


def _column_products(A: Doubles, B: Doubles) -> Doubles:
    """The inner product of each column of A with that of B."""
    sums = by_rows(len(A), lambda rows: np.einsum("ij,ij->j", A[rows], B[rows]))
    return np.asarray(np.sum(sums, axis=0), dtype=np.float64)


def conjugate_gradient(
    gram: Gram,
    B: Doubles,
    curvature: Doubles,
    alpha: float,
    start: Doubles,
    steps: int,
    tolerance: float = 1e-5,
    newest: Newest | None = None,
) -> Doubles:
    """Solve (cᵢ G + α I) sᵢ = bᵢ for every column i at once.

    Parameters
    ----------
    gram : Gram
        G, of shape (n_features, n_features).
    B, start : float64 arrays of shape (n_features, m)
    curvature : float64 array of shape (m,)
        cᵢ, not negative.
    steps : int
        Products with G at most.
    tolerance : float
        Stop when every residual is this small beside its bᵢ.
    newest : Newest, optional
        Where the state is stored, and taken up.
    """
    enough = tolerance**2 * _column_products(B, B)
    if newest is not None and newest.found is not None:
        found, first = newest.found, int(newest.found["steps"][0])
        solution, residual, direction, square = (
            found[name] for name in ("solution", "residual", "direction", "square")
        )
    else:
        first, solution = 0, start.copy()
        residual = B - (gram @ solution) * curvature - alpha * solution
        direction = residual.copy()
        square = _column_products(residual, residual)
    for number in range(first, steps):
        if (square <= enough).all():
            break
        image = gram @ direction

        def bend(rows: slice, image: Doubles = image) -> Doubles:
            image[rows] *= curvature
            image[rows] += alpha * direction[rows]
            return np.asarray(np.einsum("ij,ij->j", direction[rows], image[rows]))

        bends = np.sum(by_rows(len(B), bend), axis=0)
        step = np.where(square > enough, square / np.maximum(bends, 1e-300), 0)

        def move(rows: slice, image: Doubles = image, step: Doubles = step) -> Doubles:
            solution[rows] += step * direction[rows]
            residual[rows] -= step * image[rows]
            return np.asarray(np.einsum("ij,ij->j", residual[rows], residual[rows]))

        before, square = square, np.sum(by_rows(len(B), move), axis=0)
        ratio = square / np.maximum(before, 1e-300)

        def turn(rows: slice, ratio: Doubles = ratio) -> None:
            direction[rows] *= ratio
            direction[rows] += residual[rows]

        by_rows(len(B), turn)
        if newest is not None:
            state = {"solution": solution, "residual": residual, "direction": direction}
            newest.keep({**state, "square": square, "steps": np.array([number + 1])})
    return solution


def ridge(gram: Gram, T: Doubles | sp.csr_matrix, alpha: float) -> LinearMap:
    """Ridge regression of the targets T, of shape (n_samples, m), on the features of `gram`."""
    weights = gram.regress(T, alpha, stored=True)
    mean = np.asarray(T.sum(axis=0, dtype=np.float64)).ravel() / max(gram.n_samples, 1)
    bias = mean - gram.mean @ weights
    return LinearMap(weights.astype(np.float32), bias.astype(np.float32))
