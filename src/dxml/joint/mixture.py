"""Several opinions on (point, label) pairs → one calibrated probability.

Each part of a model scores a pair in its own way: a margin, a share of votes, a logit. A logistic
regression over them, fitted on the pairs near the top of held-out points' rankings, weighs them
against one another, with the label's frequency among them for what all parts get wrong; what it
gives is then calibrated, where there are enough pairs: those of like score are put into bins, and a
pair's probability is read off the line through the bins' shares of right labels.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml.neighbors.voting import vote_pairs
from dxml.topk import TopK

__all__ = ["NEVER", "Mixture", "expected_number", "fit_mixture", "opinions"]

Floats = npt.NDArray[np.float32]
SHARES = ("vote", "kernel")  # parts that score from 0 to 1
DEFAULTS = {"linear": 2.0, "vote": 3.0, "kernel": 8.0, "wide": 0.5, "frequency": 0.0}
"""Weights where there are too few held-out points to fit any."""
LEAST_POSITIVE = 20  # right pairs that a fit needs
SHOWN = 10  # labels of a point that are weighed: those near the top
ROUNDS = 3  # the labels near the top are those of the round before
BINS = 20  # of the calibration
BIN = 100  # pairs in one, at least; with fewer, what the regression says is taken as it is
FLOOR = 0.005  # of a share, before its log-odds are taken
NEVER = np.float32(-1e30)  # mixed score of a label that is not to be predicted
EQUAL = np.float32(3)
"""Spread that log-frequencies, the first opinion, are given at least: of labels that are about
equally frequent, the right ones always seem to be rarer, by the points held out."""


def opinions(parts: dict[str, Floats]) -> Floats:
    """One column for a part that scores freely; a share also gets a column of its log-odds.

    Parameters
    ----------
    parts : dict of float32 arrays of shape (n_pairs,)
        In the order of their names.
    """
    columns = []
    for name in sorted(parts):
        score = parts[name]
        columns.append(score)
        if name in SHARES:
            share = np.clip(score, FLOOR, 1 - FLOOR)
            columns.append(np.log(share / (1 - share)))
    return np.stack(columns, axis=1).astype(np.float32, copy=False)


@dataclass(frozen=True)
class Mixture:
    """Weights of the opinions, and the line from a mixed score to a probability.

    Attributes
    ----------
    weights : float32 array of shape (n_opinions,)
    bias : float
    knots, shares : float32 arrays
        Mixed scores in rising order, and the share of right labels there.
    """

    weights: Floats
    bias: float
    knots: Floats
    shares: Floats

    def mix(self, opinions: Floats) -> Floats:
        """One score a pair, by which labels are ranked."""
        return _weighed(opinions, self.weights, self.bias)

    def probability(self, mixed: Floats) -> Floats:
        """Calibrated probabilities; a higher score never has a lower one."""
        return np.interp(mixed, self.knots, self.shares).astype(np.float32)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a saved model holds of it."""
        return {
            "mixture.weights": self.weights,
            "mixture.bias": np.array([self.bias]),
            "mixture.knots": self.knots,
            "mixture.shares": self.shares,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Mixture:
        """The inverse of `arrays`."""
        [bias] = arrays.numbers("mixture.bias", 1)
        knots = arrays.floats("mixture.knots", None)
        if not len(knots) or (knots[1:] < knots[:-1]).any():
            raise ValueError("'mixture.knots' must rise, and must not be empty")
        shares = arrays.floats("mixture.shares", len(knots), least=0, most=1)
        return cls(arrays.floats("mixture.weights", None), bias, knots, shares)


def fit_mixture(
    parts: dict[str, Floats],
    pairs: sp.csr_matrix,
    truth: sp.csr_matrix,
    known: npt.NDArray[np.bool_] | None = None,
) -> Mixture:
    """Weigh the parts on held-out points.

    Parameters
    ----------
    parts : dict of float32 arrays, one value for each stored pair of `pairs`
    pairs : csr_matrix of shape (n_held, n_labels)
        The candidate labels of each held-out point.
    truth : csr_matrix of the same shape, bool
    known : bool array, one value for each stored pair, optional
        Pairs to learn from, all by default. A label that only held-out points carry is not known:
        that the parts say nothing of it would be held against them.
    """
    matrix = opinions(parts)
    right = _is_right(pairs, truth)
    known = np.ones(len(right), dtype=bool) if known is None else known
    if right[known].sum() < LEAST_POSITIVE or right[known].all():
        return _default(parts)

    def near_the_top(mixed: Floats, size: int) -> npt.NDArray[np.int64]:
        shown = _shown(pairs, mixed, size)
        return shown[known[shown]]

    shown = near_the_top(_default(parts).mix(matrix), SHOWN)
    for _ in range(ROUNDS):
        if right[shown].all() or not right[shown].any():  # the top has nothing to tell apart
            shown = np.flatnonzero(known)
        weights, bias = _regress(matrix[shown], right[shown])
        mixed = _weighed(matrix, weights, bias)
        shown = near_the_top(mixed, SHOWN)
    # Calibrated are as many, or twice as many as a point has: the lowest must be mostly wrong.
    shown = near_the_top(mixed, max(SHOWN, 2 * truth.nnz // truth.shape[0]))
    knots, shares = _logistic() if len(shown) < BINS * BIN else _bins(mixed[shown], right[shown])
    return Mixture(weights, bias, knots, shares)


def expected_number(ranking: TopK) -> npt.NDArray[np.int64]:
    """How many labels each point should get, from the calibrated probabilities of its ranking.

    The number with the highest expected F1: of the m first labels, Σ p right ones are expected,
    out of m named and Σ of all p true. At least one.

    >>> scores = np.array([[0.9, 0.8, 0.1], [0.3, 0.1, 0.1]], dtype=np.float32)
    >>> expected_number(TopK(np.array([[4, 2, 7], [1, 2, 3]], dtype=np.int32), scores)).tolist()
    [2, 1]
    """
    p = np.where(ranking.indices >= 0, ranking.scores, 0)
    right = np.cumsum(p, axis=1)
    named = np.arange(1, p.shape[1] + 1)
    return np.asarray(np.argmax(2 * right / (named + right[:, -1:]), axis=1) + 1)


def _weighed(opinions: Floats, weights: Floats, bias: float) -> Floats:
    with np.errstate(invalid="ignore"):  # a product of few columns may look at what lies after them
        mixed: Floats = opinions @ weights + np.float32(bias)
    return mixed


def _regress(matrix: Floats, right: npt.NDArray[np.bool_]) -> tuple[Floats, float]:
    from scipy.linalg import LinAlgWarning
    from sklearn.linear_model import LogisticRegression

    spread = matrix.std(axis=0, dtype=np.float64).astype(np.float32)
    spread[spread < 1e-6] = 1  # all of one opinion
    spread[0] = max(spread[0], EQUAL)
    regression = LogisticRegression(C=1.0, solver="newton-cholesky", max_iter=300)
    with warnings.catch_warnings():  # where opinions are nearly one, it goes over to lbfgs
        warnings.simplefilter("ignore", LinAlgWarning)
        fitted = regression.fit((matrix / spread).astype(np.float64), right)
    return (fitted.coef_[0] / spread).astype(np.float32), float(fitted.intercept_[0])


def _default(parts: dict[str, Floats]) -> Mixture:
    weights = []
    for name in sorted(parts):
        weights += [DEFAULTS[name], 0.0] if name in SHARES else [DEFAULTS[name]]
    return Mixture(np.asarray(weights, dtype=np.float32), -1.0, *_logistic())


def _is_right(pairs: sp.csr_matrix, truth: sp.csr_matrix) -> npt.NDArray[np.bool_]:
    """Whether each stored pair is a true one."""
    own = np.arange(truth.shape[0], dtype=np.int32)[:, None]  # each point is its own one voter
    ones = np.ones(own.shape, dtype=np.float32)
    return vote_pairs(own, ones, truth, pairs) > 0


def _shown(pairs: sp.csr_matrix, mixed: Floats, size: int) -> npt.NDArray[np.int64]:
    """Places of the pairs among the `size` best of their point."""
    n, n_labels = pairs.shape
    if pairs.nnz == n * n_labels and n:
        best = np.argpartition(-mixed.reshape(n, n_labels), min(size, n_labels - 1), axis=1)
        return (np.arange(n)[:, None] * n_labels + best[:, :size]).ravel()
    rows = [
        start + np.argpartition(-mixed[start:stop], min(size, stop - start - 1))[:size]
        for start, stop in zip(pairs.indptr[:-1], pairs.indptr[1:], strict=True)
        if stop > start
    ]
    return np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)


def _logistic() -> tuple[Floats, Floats]:
    """The line of a mixed score that is a logit."""
    knots = np.linspace(-6, 6, 25, dtype=np.float32)
    return knots, (1 / (1 + np.exp(-knots))).astype(np.float32)


def _bins(mixed: Floats, right: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The line through the shares of right pairs, which never falls."""
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(mixed, kind="stable")
    bins = np.array_split(order, BINS)
    knots = np.array([mixed[part].mean() for part in bins])
    shares = isotonic_regression(
        np.array([right[part].mean() for part in bins]),
        sample_weight=np.array([len(part) for part in bins], dtype=np.float64),
    )
    ends = (2 * mixed[order[0]] - knots[0] - 1, 2 * mixed[order[-1]] - knots[-1] + 1)
    last = shares[-1] + (1 - shares[-1]) / 2
    knots = np.concatenate([[ends[0]], knots, [ends[1]]])
    shares = np.concatenate([[shares[0] / 2], shares, [last]])
    return knots.astype(np.float32), shares.astype(np.float32)
