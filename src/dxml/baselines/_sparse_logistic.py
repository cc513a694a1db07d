"""ℓ1-regularised logistic regression, which has few non-zero weights, for the splits of a tree.

    min_w  ‖w‖₁ + Σᵢ costᵢ log(1 + exp(-sideᵢ w·xᵢ))

by G.-X. Yuan, C.-H. Ho, C.-J. Lin: An Improved GLMNET for L1-regularized Logistic Regression. JMLR
13, 2012: Newton steps, each found by coordinate descent on the quadratic model of the loss. Columns
whose weight is zero and would stay zero are skipped. liblinear has the same solver. This one is
called from compiled code for tens of thousands of small nodes, without copying X for each.
"""

from __future__ import annotations

import numpy as np

from dxml._core.compiled import compiled
from dxml._core.random_numba import next_bits

__all__ = ["columns_of", "sparse_logistic"]


@compiled(nogil=True)
def columns_of(points, indptr, features, values, slot):  # type: ignore[no-untyped-def]
    """The rows `points` of a CSR matrix by columns, only those that occur, and a last one of 1s.

    `slot` is a work array of -1, one per feature. Returns feature ids, column pointers, rows and
    values.
    """
    n = points.shape[0]
    nnz = 0
    for i in range(n):
        nnz += indptr[points[i] + 1] - indptr[points[i]]
    found = np.empty(min(nnz, slot.shape[0]), dtype=np.int32)
    count = np.zeros(found.shape[0], dtype=np.int64)
    n_found = 0
    for i in range(n):
        for p in range(indptr[points[i]], indptr[points[i] + 1]):
            j = features[p]
            if slot[j] < 0:
                slot[j] = n_found
                found[n_found] = j
                n_found += 1
            count[slot[j]] += 1
    starts = np.zeros(n_found + 2, dtype=np.int64)
    for j in range(n_found):
        starts[j + 1] = starts[j] + count[j]
    starts[n_found + 1] = nnz + n
    rows = np.empty(nnz + n, dtype=np.int32)
    cells = np.ones(nnz + n, dtype=np.float32)
    filled = starts[: n_found + 1].copy()
    for i in range(n):
        for p in range(indptr[points[i]], indptr[points[i] + 1]):
            at = filled[slot[features[p]]]
            rows[at] = i
            cells[at] = values[p]
            filled[slot[features[p]]] += 1
        rows[nnz + i] = i
    for j in found[:n_found]:
        slot[j] = -1
    return found[:n_found], starts, rows, cells


@compiled(nogil=True)
def _violation(gradient, weight):  # type: ignore[no-untyped-def]
    """Violation of the optimality condition of one weight: the smallest subgradient magnitude."""
    if weight > 0:
        return abs(gradient + 1)
    if weight < 0:
        return abs(gradient - 1)
    return max(abs(gradient) - 1, 0.0)


@compiled(nogil=True)
def _newton_direction(  # type: ignore[no-untyped-def]
    starts, rows, cells, curve, gradient, hessian, w, active, goal, state
):
    """Coordinate descent on the quadratic model; returns w + d, X d and the passes it took."""
    target = w.copy()
    along = np.zeros(curve.shape[0])
    n_active = active.shape[0]
    widest = np.inf  # largest violation of the last pass
    passes = 0
    while passes < 200:
        passes += 1
        worst, total = 0.0, 0.0
        s = 0
        while s < n_active:
            other = s + int(next_bits(state) % np.uint64(n_active - s))
            active[s], active[other] = active[other], active[s]
            j = active[s]
            slope = gradient[j] + 1e-12 * (target[j] - w[j])
            for p in range(starts[j], starts[j + 1]):
                slope += cells[p] * curve[rows[p]] * along[rows[p]]
            violation = _violation(slope, target[j])
            if target[j] == 0 and abs(slope) < 1 - widest / curve.shape[0]:
                n_active -= 1
                active[s], active[n_active] = active[n_active], active[s]
                continue
            worst, total = max(worst, violation), total + violation
            if slope + 1 < hessian[j] * target[j]:
                step = -(slope + 1) / hessian[j]
            elif slope - 1 > hessian[j] * target[j]:
                step = -(slope - 1) / hessian[j]
            else:
                step = -target[j]
            step = min(max(step, -10.0), 10.0)
            if step != 0:
                target[j] += step
                for p in range(starts[j], starts[j + 1]):
                    along[rows[p]] += cells[p] * step
            s += 1
        widest = worst
        if total <= goal:
            if n_active == active.shape[0]:
                break
            n_active, widest = active.shape[0], np.inf
    return target, along, passes


@compiled(nogil=True)
def _log_loss(margin, along, length, side, cost):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(margin.shape[0]):
        z = -side[i] * (margin[i] + length * along[i])
        total += cost[i] * (max(z, 0.0) + np.log1p(np.exp(-abs(z))))
    return total


@compiled(nogil=True)
def _gradients(  # type: ignore[no-untyped-def]
    starts, rows, cells, side, cost, w, margin, curve, gradient, hessian, slack
):
    """Derivatives of the loss at w; returns the columns that may move, and their violations.

    A column at zero whose gradient is within 1 - `slack` stays there. The violations are the
    largest one and their sum.
    """
    slope = np.empty(side.shape[0])
    for i in range(side.shape[0]):
        miss = 1 / (1 + np.exp(side[i] * margin[i]))
        slope[i], curve[i] = -cost[i] * side[i] * miss, cost[i] * miss * (1 - miss)
    active = np.empty(w.shape[0], dtype=np.int64)
    worst, total, n_active = 0.0, 0.0, 0
    for j in range(w.shape[0]):
        g, h = 0.0, 1e-12
        for p in range(starts[j], starts[j + 1]):
            g += cells[p] * slope[rows[p]]
            h += cells[p] * cells[p] * curve[rows[p]]
        gradient[j], hessian[j] = g, h
        if w[j] == 0 and abs(g) < 1 - slack:
            continue
        violation = _violation(g, w[j])
        worst, total = max(worst, violation), total + violation
        active[n_active] = j
        n_active += 1
    return active[:n_active], worst, total


@compiled(nogil=True)
def sparse_logistic(starts, rows, cells, side, cost, tolerance, newton_steps, state):  # type: ignore[no-untyped-def]
    """w that minimises ‖w‖₁ + Σᵢ costᵢ log(1 + exp(-sideᵢ w·xᵢ)); X is given by columns."""
    n, n_columns = side.shape[0], starts.shape[0] - 1
    w, gradient, hessian = np.zeros(n_columns), np.zeros(n_columns), np.zeros(n_columns)
    margin, curve = np.zeros(n), np.zeros(n)
    first, worst, closeness = -1.0, np.inf, 1.0
    loss = _log_loss(margin, margin, 0.0, side, cost)
    for _ in range(newton_steps):
        active, worst, total = _gradients(
            *(starts, rows, cells, side, cost, w, margin, curve, gradient, hessian, worst / n)
        )
        if first < 0:
            first = total
        if total <= tolerance * first:
            break
        target, along, passes = _newton_direction(
            *(starts, rows, cells, curve, gradient, hessian, w, active, closeness * first, state)
        )
        if passes == 1:
            closeness *= 0.25
        d = target - w
        norm = np.abs(w).sum()
        expected = (gradient * d).sum() + np.abs(target).sum() - norm
        length = 2.0
        new = norm + loss + 1
        while length > 1e-6 and new - norm - loss > 0.01 * length * expected:
            length /= 2
            new_loss = _log_loss(margin, along, length, side, cost)
            new = np.abs(w + length * d).sum() + new_loss
        if length <= 1e-6:
            break
        w += length * d
        margin += length * along
        loss = new_loss
    return w
