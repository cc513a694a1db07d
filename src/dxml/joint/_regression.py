"""Scores of pairs, and which pairs are right → the weights of the scores.

Both regressions are logistic, with a penalty on the weights of scores of unit spread. That for few
held-out points has no weight below 0. Points that are held out are missing from what the others
learn from, so the more of them carry a label, the less often the others do: few points would teach
that a label which the parts think likely is not.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

__all__ = ["regress", "regress_few"]

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


def regress(
    matrix: Floats, right: npt.NDArray[np.bool_], least_spread: Doubles
) -> tuple[Floats, float]:
    """Weights of the columns, and the bias.

    Parameters
    ----------
    matrix : float32 array of shape (n_pairs, n_scores)
    right : bool array of shape (n_pairs,)
    least_spread : array of shape (n_scores,)
        What a column is divided by at least, where its standard deviation is less.
    """
    from scipy.linalg import LinAlgWarning
    from sklearn.linear_model import LogisticRegression

    spread = _spread(matrix, least_spread)
    regression = LogisticRegression(C=1.0, solver="newton-cholesky", max_iter=300)
    with warnings.catch_warnings():  # where opinions are nearly one, it goes over to lbfgs
        warnings.simplefilter("ignore", LinAlgWarning)
        fitted = regression.fit((matrix / spread).astype(np.float64), right)
    return (fitted.coef_[0] / spread).astype(np.float32), float(fitted.intercept_[0])


def regress_few(
    matrix: Floats,
    right: npt.NDArray[np.bool_],
    least_spread: Doubles,
    may_fall: npt.NDArray[np.bool_],
) -> tuple[Floats, float]:
    """As `regress`; no weight is below 0 but those of columns that `may_fall`."""
    from scipy.optimize import minimize

    spread = _spread(matrix, least_spread)
    columns = (matrix / spread).astype(np.float64)
    goal = right.astype(np.float64)

    def loss(found: Doubles) -> tuple[float, Doubles]:
        weights, bias = found[:-1], found[-1]
        z = columns @ weights + bias
        error = 1 / (1 + np.exp(-np.clip(z, -500, 500))) - goal
        total = np.logaddexp(0, z).sum() - goal @ z + weights @ weights / 2
        return float(total), np.append(columns.T @ error + weights, error.sum())

    bounds = [(None if falls else 0.0, None) for falls in (*may_fall, True)]
    found = minimize(loss, np.zeros(len(bounds)), jac=True, method="L-BFGS-B", bounds=bounds).x
    return (found[:-1] / spread).astype(np.float32), float(found[-1])


def _spread(matrix: Floats, least: Doubles) -> Floats:
    spread = matrix.std(axis=0, dtype=np.float64).astype(np.float32)
    spread[spread < 1e-6] = 1  # all of one opinion
    return np.maximum(spread, least.astype(np.float32))
