"""Calibrations that calibration.py has beside that of Joint.

Each is a function of probabilities and which of them were right, and gives a function from
probabilities to better ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def logits(p: Floats) -> Floats:
    p = np.clip(p.astype(np.float64), 1e-12, 1 - 1e-12)
    return np.log(p / (1 - p))


def temperature(p: Floats, right: npt.NDArray[np.bool_]) -> Callable[[Floats], Floats]:
    """Guo et al., 2017: the logits divided by the number of the highest likelihood."""
    from scipy.optimize import minimize_scalar

    z = logits(p)

    def loss(log_t: float) -> float:
        scaled = z / np.exp(log_t)
        return float(np.mean(np.logaddexp(0, scaled) - right * scaled))

    t = float(np.exp(minimize_scalar(loss, bounds=(-4, 4), method="bounded").x))
    return lambda q: 1 / (1 + np.exp(-logits(q) / t))


def isotonic(p: Floats, right: npt.NDArray[np.bool_]) -> Callable[[Floats], Floats]:
    """Zadrozny and Elkan, 2002."""
    from sklearn.isotonic import IsotonicRegression

    line = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(logits(p), right)
    return lambda q: line.predict(logits(q))


def venn_abers(p: Floats, right: npt.NDArray[np.bool_]) -> Callable[[Floats], Floats]:
    """Vovk and Petej, 2014: isotonic regression with the point itself, once wrong and once right.

    Both are found at a hundred scores, between which the others are interpolated.
    """
    from sklearn.isotonic import IsotonicRegression

    z = logits(p)
    grid = np.unique(np.quantile(z, np.linspace(0, 1, 100)))

    def beside(each: float, label: bool) -> float:
        line = IsotonicRegression().fit(np.append(z, each), np.append(right, label))
        return float(line.predict([each])[0])

    pairs = [(beside(each, False), beside(each, True)) for each in grid]
    found = [high / (1 - low + high) for low, high in pairs]
    return lambda q: np.interp(logits(q), grid, found)


OTHERS = {"temperature": temperature, "isotonic": isotonic, "Venn–Abers": venn_abers}
