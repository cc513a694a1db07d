"""Many squared-hinge support vector machines at once, by coordinate descent on the dual.

C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. Keerthi, S. Sundararajan: A Dual Coordinate Descent Method
for Large-scale Linear SVM. ICML 2008. For each label, with signs t_i and a bias as one more feature
of value 1,

    min_α ½ αᵀ Q α − Σ_i α_i,  α ≥ 0,  Q_ij = t_i t_j (xᵢᵀ xⱼ + 1) + [i = j] / (2C),

and w = Σ_i α_i t_i xᵢ. liblinear solves the same problem, but takes its random order from one
generator per process, so training in several threads is not reproducible. Here each label has a
generator of its own.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

__all__ = ["train_labels"]

Floats = npt.NDArray[np.float32]


def train_labels(
    X: sp.csr_matrix,
    columns: sp.csc_matrix,
    labels: npt.NDArray[np.int64],
    C: float,
    *,
    tolerance: float = 0.1,
    passes: int = 100,
    seed: int = 0,
) -> Floats:
    """Weights of shape (len(labels), n_features + 1), the bias last.

    Parameters
    ----------
    X : csr_matrix of shape (n_samples, n_features), float32
    columns : csc_matrix of shape (n_samples, n_labels)
        Which points carry a label.
    tolerance : float
        Stop when the projected gradients of a pass differ by no more.
    passes : int
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
        np.float32(tolerance),
        passes,
        np.uint64(seed),
        weights,
    )
    return weights


@numba.njit(cache=True, inline="always")
def _next(state):  # type: ignore[no-untyped-def]
    """One step of xorshift64*."""
    state ^= state >> np.uint64(12)
    state ^= state << np.uint64(25)
    state ^= state >> np.uint64(27)
    return state


@numba.njit(cache=True)
def _shuffle(active, size, state):  # type: ignore[no-untyped-def]
    for i in range(size - 1, 0, -1):
        state = _next(state)
        j = np.int64((state * np.uint64(2685821657736338717) >> np.uint64(33)) % np.uint64(i + 1))
        active[i], active[j] = active[j], active[i]
    return state


@numba.njit(cache=True, parallel=True)
def _train(  # type: ignore[no-untyped-def]
    indptr, indices, data, squares, starts, points, labels, ridge, tolerance, passes, seed, weights
):
    n = indptr.shape[0] - 1
    for a in numba.prange(labels.shape[0]):
        label = labels[a]
        sign = np.full(n, -1, np.int8)
        for p in range(starts[label], starts[label + 1]):
            sign[points[p]] = 1
        state = (seed + np.uint64(label + 1)) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
        _descend(indptr, indices, data, squares, sign, ridge, tolerance, passes, state, weights[a])


@numba.njit(cache=True, fastmath=True)
def _descend(  # type: ignore[no-untyped-def]
    indptr, indices, data, squares, sign, ridge, tolerance, passes, state, w
):
    n = sign.shape[0]
    bias = w.shape[0] - 1
    alpha = np.zeros(n, np.float32)
    active = np.arange(n)
    size = n
    highest = np.float32(np.inf)  # points with larger gradients are shrunk (skipped)
    for _ in range(passes):
        state = _shuffle(active, size, state)
        largest, smallest = np.float32(-np.inf), np.float32(np.inf)
        s = 0
        while s < size:
            i = active[s]
            margin = w[bias]
            for j in range(indptr[i], indptr[i + 1]):
                margin += w[indices[j]] * data[j]
            gradient = sign[i] * margin - 1 + ridge * alpha[i]
            projected = gradient
            if alpha[i] == 0:
                if gradient > highest:
                    size -= 1
                    active[s], active[size] = active[size], active[s]
                    continue
                projected = min(gradient, np.float32(0))
            largest, smallest = max(largest, projected), min(smallest, projected)
            if abs(projected) > 1e-6:
                before = alpha[i]
                alpha[i] = max(before - gradient / (squares[i] + ridge), np.float32(0))
                step = sign[i] * (alpha[i] - before)
                w[bias] += step
                for j in range(indptr[i], indptr[i + 1]):
                    w[indices[j]] += step * data[j]
            s += 1
        if largest - smallest <= tolerance:
            if size == n:
                break
            size = n  # one more pass over all points, shrunk ones included
            highest = np.float32(np.inf)
        else:
            highest = largest if largest > 0 else np.float32(np.inf)
