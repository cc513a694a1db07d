"""Coordinate descent on the dual of one squared-hinge support vector machine.

C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. Keerthi, S. Sundararajan: A Dual Coordinate Descent Method
for Large-scale Linear SVM. ICML 2008. With signs t_i over a label's points,

    min_α ½ αᵀ Q α − Σ_i α_i,  α ≥ 0,  Q_ij = t_i t_j xᵢᵀ xⱼ + [i = j] / (2C),

and w = Σ_i α_i t_i xᵢ. A bias is either learnt, as the weight of one more feature of value 1, or
fixed at `OFFSET`. liblinear solves the same, but draws its random order from one generator for the
whole process, so that training in several threads does not repeat; here a label has its own.
"""

from __future__ import annotations

import numpy as np

from dxml._core.compiled import compiled
from dxml._core.random_numba import shuffle
from dxml._core.sparse import stored

__all__ = ["OFFSET", "descend"]

OFFSET = np.float32(-1)
ENDLESS = np.float32(1e30)  # what infinity would be, if fastmath knew it


@compiled(fastmath=True)
def descend(  # type: ignore[no-untyped-def]
    starts, features, data, squares, points, signs, duals, active, size, bias, margin, ridge, tol,
    max_iter, state, w
):  # fmt: skip
    """Train one label; `duals` and `w` change where they lie.

    Parameters
    ----------
    starts, features, data : the CSR rows of the points
    squares : float32, ‖xᵢ‖², and 1 more where a bias is learnt
    points, signs, duals : point, t and α at each place; without points, places are points
    active, size : the places to train on are active[:size]
    bias : where in `w` the learnt bias is; below 0: `OFFSET` is the bias
    margin : 1, in the precision that gradients are computed in
    ridge : float32, 1 / (2C)
    tol : float32
        Stop when the projected gradients of a pass differ by no more.
    max_iter : int
        Stop after this many passes at the latest.
    state : of an xorshift64* generator
    """
    n = size
    highest = ENDLESS  # gradients above it are shrunk away
    for _ in range(max_iter):
        state = shuffle(active, size, state)
        largest, smallest = -ENDLESS, ENDLESS
        s = 0
        while s < size:
            place = active[s]
            if points is None:  # decided when compiled
                i = place
            else:
                i = points[place]
            sign = np.float32(signs[place])
            score = w[bias] if bias >= 0 else OFFSET
            for j in stored(starts, i):
                score += w[features[j]] * data[j]
            before = duals[place]
            gradient = sign * score - margin + ridge * before
            projected = gradient
            if before == 0:
                if gradient > highest:
                    size -= 1
                    active[s], active[size] = active[size], active[s]
                    continue
                projected = min(gradient, np.float32(0))
            largest, smallest = max(largest, projected), min(smallest, projected)
            if abs(projected) > np.float32(1e-6):
                duals[place] = max(before - gradient / (squares[i] + ridge), np.float32(0))
                step = sign * (duals[place] - before)
                if bias >= 0:
                    w[bias] += step
                for j in stored(starts, i):
                    w[features[j]] += step * data[j]
            s += 1
        if largest - smallest <= tol:
            if size == n:
                break
            size = n  # look at the shrunk points once more
            highest = ENDLESS
        else:
            highest = largest if largest > 0 else ENDLESS
