"""Mixed scores of held-out points → lines from a score to a probability.

Where there are enough pairs a line is an isotonic regression over bins: pairs of similar score
share a bin, and a probability is interpolated between the bins' shares of right labels. Where there
are fewer it is a logistic function (Platt, 1999) whose slope and place are held near what the
mixture says by itself. The first ranks have lines of their own: of two pairs of the same score, the
one that its point ranks first is right more often. Where points are few these lines are held near
one another. The first rank's score is shifted before by how much of the point is known
(`dxml.joint._familiarity`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

__all__ = [
    "LEAST_RANKED",
    "NEVER",
    "RANKS",
    "calibrate",
    "lines_by_rank",
    "logistic_line",
    "most_likely",
]

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Line = tuple[Floats, Floats]
"""Knots, in rising order, and the share of right labels there."""
BINS = 20
BIN = 100  # pairs in one, at least
RANKS = (1, 2, 3, 5, 10)  # the last rank of each group that is calibrated by itself
LEAST_RANKED = 500  # held-out points from which on the lines of ranks are bins
SLOPE, PLACE = 4.0, 0.25  # how firmly a logistic line is held: one over the prior's variance
FALL, APART = 0.5, 4.0  # the same, of what places fall by log rank, and of what a group has beside
NEVER = np.float32(-1e30)  # mixed score of a label that is not to be predicted


def calibrate(mixed: Floats, right: npt.NDArray[np.bool_]) -> Line:
    """One line for pairs of all ranks."""
    return _bins(mixed, right) if len(mixed) >= BINS * BIN else _smooth([mixed], [right])[0]


def logistic_line(slope: float = 1.0, place: float = 0.0) -> Line:
    """The logistic function of slope · score + place; of a score that is a logit: 1 and 0."""
    knots = np.linspace(-8, 8, 41)
    ends = (knots - place) / slope
    return ends.astype(np.float32), (1 / (1 + np.exp(-knots))).astype(np.float32)


def lines_by_rank(
    pairs: sp.csr_matrix,
    mixed: Floats,
    right: npt.NDArray[np.bool_],
    known: npt.NDArray[np.bool_],
    shift: Floats | None = None,
) -> tuple[Line, ...]:
    """The line of each group of ranks, as far as there are pairs.

    `shift`, one number a point, is added to the score of its first pair, which stays the first.
    """
    rows = [
        _best_first(start, np.where(known[start:stop], mixed[start:stop], NEVER))
        for start, stop in zip(pairs.indptr[:-1], pairs.indptr[1:], strict=True)
    ]
    rows = [row for row in rows if len(row) and known[row[0]]]
    groups, first = [], 0
    for last in RANKS:
        own = [row[first:last] for row in rows]
        group = np.concatenate(own) if own else np.empty(0, dtype=np.int64)
        group = group[known[group]]
        if not len(group) or (len(rows) >= LEAST_RANKED > len(group)):
            break
        groups.append(group)
        first = last
    scores = [mixed[group] for group in groups]
    if scores and shift is not None:
        scores[0] = scores[0] + shift[np.searchsorted(pairs.indptr, groups[0], side="right") - 1]
    goals = [right[group] for group in groups]
    if len(rows) < LEAST_RANKED:
        starts = (0, *RANKS)[: len(groups)]
        later = [np.log((1 + start + stop) / 2) for start, stop in zip(starts, RANKS, strict=False)]
        return _smooth(scores, goals, later)
    return tuple(
        _bins(own, goal, min(BINS, len(own) // BIN))
        for own, goal in zip(scores, goals, strict=True)
    )


def _best_first(start: int, scores: Floats) -> npt.NDArray[np.int64]:
    """Places of the best scores of a row that begins at `start`, best first."""
    depth = min(RANKS[-1], len(scores))
    if not depth:
        return np.empty(0, dtype=np.int64)
    best = np.argpartition(-scores, depth - 1)[:depth]
    return start + best[np.argsort(-scores[best], kind="stable")]


def _smooth(
    mixed: Sequence[Floats], right: Sequence[npt.NDArray[np.bool_]], later: Sequence[float] = (0,)
) -> tuple[Line, ...]:
    """A logistic line for each group of pairs, of the highest likelihood times their prior.

    They have one slope, and places that fall with how much `later` a group is, but for what each
    has of its own: few pairs of a group are helped out by those of the others.
    """
    if not mixed:
        return ()
    group = np.repeat(np.arange(len(mixed)), [len(each) for each in mixed])
    z, goal = (np.concatenate(each).astype(np.float64) for each in (mixed, right))
    fall = np.array(later, dtype=np.float64)
    of_group = np.arange(len(mixed))[:, None] == group
    columns = np.concatenate([z[None], np.ones((1, len(z))), fall[None, group], of_group])
    held = np.array([SLOPE, PLACE, FALL, *[APART] * len(mixed)])
    found = most_likely(columns, goal, held, np.array([1.0, *[0.0] * (len(mixed) + 2)]))
    places = found[1] + found[2] * fall + found[3:]
    return tuple(logistic_line(max(float(found[0]), 0.05), float(place)) for place in places)


def most_likely(
    columns: Doubles, goal: npt.NDArray[Any], firmness: Doubles, prior: Doubles
) -> Doubles:
    """Weights of the columns by logistic regression, held near `prior`. By Newton's method.

    `firmness` is one over the prior's variance, of each weight.
    """
    found, held = prior, np.diag(firmness)
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(found @ columns, -30, 30)))
        slope = columns @ (p - goal) + held @ (found - prior)
        step = np.linalg.solve((columns * (p * (1 - p))) @ columns.T + held, slope)
        found = found - step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-6:
            break
    return found


def _bins(mixed: Floats, right: npt.NDArray[np.bool_], n_bins: int = BINS) -> tuple[Floats, Floats]:
    """Knots of the calibration: bins of scores, and shares of right pairs that never fall."""
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(mixed, kind="stable")
    bins = np.array_split(order, n_bins)
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
