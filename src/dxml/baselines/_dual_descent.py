"""Many squared-hinge support vector machines at once, each with a bias of its own.

A label learns from all points (`dxml._learners.dual_descent`), and its bias is the weight of one
more feature of value 1. Gradients are computed in float64.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.compiled import compiled, prange
from dxml._core.random_numba import seeded
from dxml._learners.dual_descent import descend

__all__ = ["train_labels"]

Floats = npt.NDArray[np.float32]


def train_labels(
    X: sp.csr_matrix,
    columns: sp.csc_matrix,
    labels: npt.NDArray[np.int64],
    C: float,
    *,
    tol: float = 0.1,
    max_iter: int = 100,
    seed: int = 0,
) -> Floats:
    """Weights of shape (len(labels), n_features + 1), the bias last.

    Parameters
    ----------
    X : csr_matrix of shape (n_samples, n_features), float32
    columns : csc_matrix of shape (n_samples, n_labels)
        Which points carry a label.
    tol : float
        Stop when the projected gradients of a pass differ by no more.
    max_iter : int
        Stop after this many passes over the points at the latest.
    """
    squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float32).ravel() + 1
    weights = np.zeros((len(labels), X.shape[1] + 1), dtype=np.float32)
    _train(
        X.indptr,
        X.indices,
        X.data,
        squares,
        columns.indptr,
        columns.indices,
        labels,
        np.float32(0.5 / C),
        np.float32(tol),
        max_iter,
        np.uint64(seed),
        weights,
    )
    return weights


@compiled(parallel=True)
def _train(  # type: ignore[no-untyped-def]
    indptr, indices, data, squares, starts, points, labels, ridge, tol, max_iter, seed, weights
):
    n = indptr.shape[0] - 1
    for a in prange(labels.shape[0]):
        label = labels[a]
        signs = np.full(n, -1, np.int8)
        for p in range(starts[label], starts[label + 1]):
            signs[points[p]] = 1
        active, duals = np.arange(n), np.zeros(n, np.float32)
        bias, state = weights.shape[1] - 1, seeded(seed, label)
        descend(
            *(indptr, indices, data, squares, None, signs, duals, active, n),
            *(bias, np.float64(1), ridge, tol, max_iter, state, weights[a]),
        )
