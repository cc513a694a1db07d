"""Scores of (point, label) pairs by several parts → one calibrated probability.

Each part scores a pair in its own way: a margin, a share of votes, a logit. A logistic regression
over these scores is fitted on the pairs near the top of held-out points' rankings
(`dxml.joint._rounds`). Its output is then calibrated (`dxml.joint._calibration`), the first label's
also by how much of its point is known (`dxml.joint._familiarity`); where there are few held-out
points, by scores of regressions that did not see the point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._neighbors.voting import vote_pairs
from dxml.joint._calibration import (
    LEAST_RANKED,
    NEVER,
    RANKS,
    calibrate,
    lines_by_rank,
    logistic_line,
)
from dxml.joint._familiarity import Counts, Familiarity, learn_familiarity
from dxml.joint._regression import regress, regress_few
from dxml.joint._rounds import SHOWN, weigh_in_rounds
from dxml.topk import TopK

__all__ = ["NEVER", "Mixture", "Opinion", "default_mixture", "expected_number", "fit_mixture"]

Floats = npt.NDArray[np.float32]
Said = Mapping[str, Floats]
"""By the name of the part: one score for each pair, or a row of them."""
LEAST_POSITIVE = 20  # right pairs that a fit needs
LEAST_INTERACTIONS = 100  # right pairs a weight, from which on weights depend on the frequency
FREQUENCY = "frequency"  # the part whose scores are log frequencies of labels
FLOOR = 0.005  # of a share, before its log-odds are taken
FOLDS = 5  # regressions that score few held-out points, each the points that it did not see


@dataclass(frozen=True)
class Opinion:
    """How the scores of a part enter a mixture.

    Attributes
    ----------
    default_weight : float
        Where there are too few held-out points to fit any.
    is_share : bool
        Whether the scores are shares from 0 to 1; their log-odds are then weighed too.
    n_scores : int
        Scores of a pair. The first one has the default weight.
    least_spread : float
        The scores are divided by their standard deviation before they are weighed, and by at least
        this.
    """

    default_weight: float
    is_share: bool = False
    n_scores: int = 1
    least_spread: float = 0.0

    @property
    def size(self) -> int:
        """Numbers of a pair that are weighed."""
        return self.n_scores + self.is_share


@dataclass(frozen=True)
class Mixture:
    """Weights of the parts, and the calibration from a mixed score to a probability.

    Attributes
    ----------
    weights : dict of float32 arrays
        By the name of the part: of its scores, and of its log-odds if that is a share.
    bias : float
    knots, shares : float32 arrays
        Mixed scores in rising order, and the share of right labels there.
    by_rank : tuple of (knots, shares)
        The same for labels of each group of `RANKS`; empty where nothing was held out.
    familiarity : Familiarity or None
        What known features of a point add to the score by which the first label's probability is
        found. None where points do not differ in their number.
    interactions : dict of float32 arrays
        What a label's weights have more than `weights`, for each unit of its log frequency; empty
        where there are too few points.
    span : (float, float)
        Log frequencies between which these were learnt. Beyond, weights change no more.
    settled : bool
        Whether the weights were nearly the same from round to round (`dxml.joint._rounds`). It is
        not stored.
    """

    weights: Mapping[str, Floats]
    bias: float
    knots: Floats
    shares: Floats
    by_rank: tuple[tuple[Floats, Floats], ...] = ()
    familiarity: Familiarity | None = None
    interactions: Mapping[str, Floats] = field(default_factory=dict)
    span: tuple[float, float] = (0.0, 0.0)
    settled: bool = True

    def mix(self, said: Said) -> Floats:
        """One score a pair, by which labels are ranked."""
        columns = _columns(said, _sizes(self.weights))
        mixed = _weighed(columns, _in_order(self.weights), self.bias)
        if self.interactions:
            frequency = np.clip(said[FREQUENCY], *self.span)
            mixed += frequency * _weighed(columns, _in_order(self.interactions), 0.0)
        return mixed

    def terms(self, said: Said) -> dict[str, Floats]:
        """What each part adds to the mixed scores."""
        found = {}
        for name, weights in self.weights.items():
            columns = _columns(said, {name: len(weights)})
            found[name] = (columns * weights).sum(axis=1)
            if self.interactions:
                frequency = np.clip(said[FREQUENCY], *self.span)
                found[name] += frequency * (columns * self.interactions[name]).sum(axis=1)
        return found

    def probability(self, mixed: Floats) -> Floats:
        """Calibrated probabilities; a higher score never has a lower one."""
        return np.interp(mixed, self.knots, self.shares).astype(np.float32)

    def ranked(self, mixed: Floats, n_features: Counts | None = None) -> Floats:
        """Calibrated probabilities of rankings, (n, k), best first; they never rise in a row.

        Among the first ranks they fall, if only by a millionth, so that the label that is ranked
        first is the most probable one. `n_features` are the known features of each point; where
        they are not given, it is a usual one.
        """
        found = self.probability(mixed)
        start = 0
        for stop, (knots, shares) in zip(RANKS, self.by_rank, strict=False):
            group = slice(start, min(stop, mixed.shape[1]))
            own = mixed[:, group]
            if not start and self.familiarity is not None and n_features is not None:
                own = own + self.familiarity.shift(n_features)[:, None]
            found[:, group] = np.interp(own, knots, shares)
            start = stop
        ranks = np.minimum(np.arange(mixed.shape[1]), RANKS[-1])
        return np.minimum.accumulate(found, axis=1) * (1 - 1e-6 * ranks).astype(np.float32)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a saved model holds of it."""
        return {
            **{f"mixture.weights.{name}": weights for name, weights in self.weights.items()},
            **{
                f"mixture.interactions.{name}": interactions
                for name, interactions in self.interactions.items()
            },
            **({"mixture.span": np.array(self.span)} if self.interactions else {}),
            "mixture.bias": np.array([self.bias]),
            "mixture.knots": self.knots,
            "mixture.shares": self.shares,
            **{
                f"mixture.{name}.{group}": values
                for group, line in enumerate(self.by_rank)
                for name, values in zip(("knots", "shares"), line, strict=True)
            },
            **({} if self.familiarity is None else self.familiarity.arrays()),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, opinions: Mapping[str, Opinion]) -> Mixture:
        """The inverse of `arrays`, for parts with these opinions."""
        knots = arrays.floats("mixture.knots", None)
        by_rank = []
        for group in range(len(RANKS)):
            if f"mixture.knots.{group}" in arrays:
                own = arrays.floats(f"mixture.knots.{group}", None)
                shares = arrays.floats(f"mixture.shares.{group}", len(own), least=0, most=1)
                by_rank.append((own, shares))

        def by_part(kind: str) -> dict[str, Floats]:
            return {
                name: arrays.floats(f"mixture.{kind}.{name}", opinion.size)
                for name, opinion in opinions.items()
            }

        learnt = "mixture.span" in arrays
        low, high = arrays.numbers("mixture.span", 2) if learnt else (0.0, 0.0)
        return cls(
            by_part("weights"),
            arrays.numbers("mixture.bias", 1)[0],
            knots,
            arrays.floats("mixture.shares", len(knots), least=0, most=1),
            tuple(by_rank),
            Familiarity.from_arrays(arrays),
            by_part("interactions") if learnt else {},
            (low, high),
        )


def default_mixture(opinions: Mapping[str, Opinion]) -> Mixture:
    """Where there are too few points to hold any out."""
    weights = {
        name: np.array([opinion.default_weight, *[0.0] * (opinion.size - 1)], dtype=np.float32)
        for name, opinion in opinions.items()
    }
    return Mixture(weights, -1.0, *logistic_line())


def fit_mixture(
    said: Said,
    opinions: Mapping[str, Opinion],
    pairs: sp.csr_matrix,
    truth: sp.csr_matrix,
    known: npt.NDArray[np.bool_] | None = None,
    *,
    n_features: Counts | None = None,
    by_frequency: bool = False,
) -> Mixture:
    """Weigh the parts on held-out points.

    Parameters
    ----------
    said : dict of float32 arrays, one value for each stored pair of `pairs`
    opinions : dict of Opinion
        Of the same names.
    pairs : csr_matrix of shape (n_held, n_labels)
        The candidate labels of each held-out point.
    truth : csr_matrix of the same shape, bool
    known : bool array, one value for each stored pair, optional
        Pairs to learn from, all by default. A label that only held-out points carry is not known:
        that the parts say nothing of it would be held against them.
    n_features : int array of shape (n_held,), optional
        Known features of each point, where these differ in how much of them is known.
    by_frequency : bool
        Whether weights may depend on the log frequency of a label, which the part `FREQUENCY` says.
    """
    sizes = {name: opinions[name].size for name in said}
    matrix = _columns(said, sizes)
    right = _is_right(pairs, truth)
    known = np.ones(len(right), dtype=bool) if known is None else known
    default = default_mixture({name: opinions[name] for name in said})
    if not known.any():
        return default
    least = np.concatenate(
        [[opinions[name].least_spread] + [0.0] * (sizes[name] - 1) for name in sorted(said)]
    )

    def near_the_top(mixed: Floats, size: int) -> npt.NDArray[np.int64]:
        shown = _shown(pairs, mixed, size)
        return shown[known[shown]]

    few = truth.shape[0] < LEAST_RANKED
    may_fall = np.concatenate([[name == FREQUENCY] * sizes[name] for name in sorted(said)])
    weigh = partial(regress_few, may_fall=may_fall) if few else regress
    mixture, mixed, settled = default, default.mix(said), True

    def weighed(shown: npt.NDArray[np.int64]) -> tuple[Mixture, Floats]:
        enough = right[shown].sum() >= LEAST_INTERACTIONS * matrix.shape[1] and not few
        if by_frequency and enough:
            found = _regress_interactions(said, sizes, matrix, shown, right[shown], least)
        else:
            weights, bias = weigh(matrix[shown], right[shown], least)
            found = replace(default, weights=_by_name(weights, sizes), bias=bias)
        return found, found.mix(said)

    if right[known].sum() >= LEAST_POSITIVE and not right[known].all():
        mixture, mixed, seen, settled = weigh_in_rounds(weighed, near_the_top, mixed, right, known)
        if few:
            mixed = _out_of_fold(weigh, matrix, right, pairs, seen, least, mixed)
    # Calibrated are as many, or twice as many as a point has: the lowest must be mostly wrong.
    shown = near_the_top(mixed, max(SHOWN, 2 * truth.nnz // truth.shape[0]))
    knots, shares = calibrate(mixed[shown], right[shown])
    familiarity = shift = None
    if n_features is not None:
        first = _shown(pairs, np.where(known, mixed, NEVER), 1)
        first = first[known[first]]
        own = n_features[np.searchsorted(pairs.indptr, first, side="right") - 1]
        familiarity = learn_familiarity(own, mixed[first], right[first])
        shift = None if familiarity is None else familiarity.shift(n_features)
    lines = lines_by_rank(pairs, mixed, right, known, shift)
    found = replace(mixture, knots=knots, shares=shares, by_rank=lines, settled=settled)
    return replace(found, familiarity=familiarity)


def _out_of_fold(
    weigh: Callable[..., tuple[Floats, float]],
    matrix: Floats,
    right: npt.NDArray[np.bool_],
    pairs: sp.csr_matrix,
    seen: npt.NDArray[np.int64],
    least: npt.NDArray[np.float64],
    mixed: Floats,
) -> Floats:
    """Mixed scores of each point by the regression over the pairs of the other folds' points."""
    found, fold = mixed.copy(), np.repeat(np.arange(pairs.shape[0]), np.diff(pairs.indptr)) % FOLDS
    for each in range(FOLDS):
        others = seen[fold[seen] != each]
        if right[others].any() and not right[others].all():
            weights, bias = weigh(matrix[others], right[others], least)
            own = fold == each
            found[own] = _weighed(matrix[own], weights, bias)
    return found


def _sizes(by_name: Mapping[str, Floats]) -> dict[str, int]:
    return {name: len(weights) for name, weights in by_name.items()}


def _columns(said: Said, sizes: Mapping[str, int]) -> Floats:
    """A column for each score, in the order of the names; a share also gets one of its log-odds."""
    columns: list[Floats] = []
    for name in sorted(sizes):
        scores = said[name]
        columns += [scores] if scores.ndim == 1 else list(scores.T)
        if scores.ndim == 1 and sizes[name] == 2:
            share = np.clip(scores, FLOOR, 1 - FLOOR)
            columns.append(np.log(share / (1 - share)))
    return np.stack(columns, axis=1).astype(np.float32, copy=False)


def _by_name(weights: Floats, sizes: Mapping[str, int]) -> dict[str, Floats]:
    """Weights of the columns that `_columns` makes, by the name of the part."""
    ends = np.cumsum([sizes[name] for name in sorted(sizes)])
    return dict(zip(sorted(sizes), np.split(weights, ends[:-1]), strict=True))


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


def _in_order(by_name: Mapping[str, Floats]) -> Floats:
    """For the columns that `_columns` makes."""
    return np.concatenate([by_name[name] for name in sorted(by_name)])


def _weighed(columns: Floats, weights: Floats, bias: float) -> Floats:
    """The weighed sum of each row, always in the order of the columns.

    A matrix product adds in another order where a row is among the last ones, and a point would not
    have the same scores alone and in a batch.
    """
    mixed = np.full(len(columns), bias, dtype=np.float32)
    for column, weight in zip(columns.T, weights, strict=True):
        mixed += column * weight
    return mixed


def _regress_interactions(
    said: Said,
    sizes: Mapping[str, int],
    matrix: Floats,
    shown: npt.NDArray[np.int64],
    right: npt.NDArray[np.bool_],
    least_spread: npt.NDArray[np.float64],
) -> Mixture:
    """Weights that depend on the log frequency of a label, from the pairs that are shown.

    The frequency itself has one weight. As its spread counts for at least as much as where it is
    weighed, labels of nearly one frequency are not told apart by its products either.
    """
    frequency, columns = said[FREQUENCY][shown], matrix[shown]
    middle = float(frequency.mean(dtype=np.float64))
    others = np.concatenate([[name != FREQUENCY] * sizes[name] for name in sorted(sizes)])
    products = columns * np.outer(frequency - np.float32(middle), others).astype(np.float32)
    usual = np.sqrt(np.square(columns, dtype=np.float64).mean(axis=0))
    least = np.concatenate([least_spread, usual * least_spread.max()])
    both, bias = regress(np.concatenate([columns, products], axis=1), right, least)
    weights, interactions = np.split(both, 2)
    return Mixture(
        _by_name(weights - np.float32(middle) * interactions, sizes),
        bias,
        *logistic_line(),
        interactions=_by_name(interactions, sizes),
        span=(float(frequency.min()), float(frequency.max())),
    )


def _is_right(pairs: sp.csr_matrix, truth: sp.csr_matrix) -> npt.NDArray[np.bool_]:
    """Whether each stored pair is a true one."""
    own = np.arange(truth.shape[0], dtype=np.int32)[:, None]  # each point is its own one voter
    ones = np.ones(own.shape, dtype=np.float32)
    return vote_pairs(own, ones, truth, pairs) > 0


def _shown(pairs: sp.csr_matrix, mixed: Floats, size: int) -> npt.NDArray[np.int64]:
    """Places of the pairs among the `size` best of their point."""
    starts, lengths = pairs.indptr[:-1, None], np.diff(pairs.indptr)[:, None]
    longest = int(lengths.max(initial=0))
    if not longest:
        return np.empty(0, dtype=np.int64)
    scores = np.full((len(lengths), longest), -np.inf, dtype=np.float32)
    scores[np.arange(longest) < lengths] = mixed
    best = np.argpartition(-scores, min(size, longest - 1), axis=1)[:, :size]
    places: npt.NDArray[np.int64] = (starts + best)[best < lengths]
    return places
