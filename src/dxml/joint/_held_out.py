"""Which points are held out, so that the parts can be weighed on points they have not seen.

By chance, or, where it is known which points belong together, as whole groups: texts of one source
are more alike than texts of two, and parts that were trusted for what they say of near-duplicates
would be trusted too much for another source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dxml._core.arrays import mapping, real, reals, whole
from dxml._core.random import spawn
from dxml.exceptions import DataFormatError, advise
from dxml.metrics import ThresholdCurve

__all__ = ["MOST_FOLDS", "Fold", "HeldOut", "hold_out", "hold_out_groups"]

MOST_HELD = 2_000  # held-out points; more do not change the choice
MOST_FOLDS = 5
LEAST_POINTS = 20  # with fewer, nothing is held out and the default weights hold

LEAST_GROUPS = 5  # groups that are held out, where there are as many

Mask = npt.NDArray[np.bool_]


class Fold(NamedTuple):
    """Points that a trial does not learn from.

    Attributes
    ----------
    held : bool array of shape (n_samples,)
    asked : bool array of shape (n_samples,)
        Those of them on which the parts are weighed.
    whole_groups : bool
        Whether no group has points on both sides.
    """

    held: Mask
    asked: Mask
    whole_groups: bool = False


@dataclass(frozen=True)
class HeldOut:
    """How well the parts together rank the points that were held out to weigh them.

    Attributes
    ----------
    points : int
    precision : dict of int to float
        P@k in per cent, for k of 1, 3 and 5, as far as there are labels.
    curve : ThresholdCurve or None
        What is given and right from each threshold of the probabilities on; None of models that
        were trained before it was kept.

    Notes
    -----
    The few weights of the mixture were learnt on the same points, and the model is then trained
    with them too: for points that are new to it the numbers are an estimate.
    """

    points: int
    precision: Mapping[int, float]
    curve: ThresholdCurve | None = None

    def __str__(self) -> str:
        scores = ", ".join(f"P@{k} {score:.1f}" for k, score in self.precision.items())
        return f"{scores} on {self.points:,} held-out points"

    def state(self) -> dict[str, Any]:
        """As JSON."""
        precision = {str(k): p for k, p in self.precision.items()}
        state: dict[str, Any] = {"points": self.points, "precision": precision}
        if self.curve is not None:
            state["curve"] = asdict(self.curve)
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any] | None) -> HeldOut | None:
        """The inverse of `state`; None where nothing was held out or kept."""
        if state is None:
            return None
        scores = mapping(state, "precision")
        curve = _curve(mapping(state, "curve")) if "curve" in state else None
        return cls(whole(state, "points"), {int(k): real(scores, k) for k in scores}, curve)


def _curve(state: Mapping[str, Any]) -> ThresholdCurve:
    given, right = (reals(state[name], name) for name in ("given", "right"))
    if len(given) != len(right) or len(given) < 2:
        raise ValueError("'given' and 'right' must be as long as each other")
    counts = [tuple(int(n) for n in each) for each in (given, right)]
    return ThresholdCurve(whole(state, "carried"), *counts)


def hold_out(
    n: int, fraction: float, random_state: int | None, most_folds: int = MOST_FOLDS
) -> list[Fold]:
    """Which of n points are held out, by chance, fold by fold.

    One fold where the fraction makes `MOST_HELD` points, more where it makes fewer, and none where
    there are too few points.
    """
    if n < LEAST_POINTS:
        return []
    size = min(MOST_HELD, max(1, int(n * fraction)))
    order = spawn(random_state, "validation")["validation"].permutation(n)
    starts = range(0, min(n, MOST_HELD, most_folds * size) - size + 1, size)
    held = [np.isin(np.arange(n), order[start : start + size]) for start in starts]
    return [Fold(each, each) for each in held]


def hold_out_groups(
    groups: npt.NDArray[np.int64],
    fraction: float,
    random_state: int | None,
    most_folds: int = MOST_FOLDS,
) -> list[Fold]:
    """Which points are held out, as whole groups, fold by fold.

    A fold has about the fraction of the points, or one group, if that has more. There are as many
    folds as make `MOST_HELD` points and `LEAST_GROUPS` groups, as far as there are groups. One with
    over half of the points is never held out: too little would be left to learn from.

    Parameters
    ----------
    groups : int array of shape (n_samples,)
        From 0; at least two of them.
    """
    n = len(groups)
    if n < LEAST_POINTS:
        return []
    rng = spawn(random_state, "validation")["validation"]
    sizes = np.bincount(groups)
    may_go = np.flatnonzero(2 * sizes <= n)
    if sizes[may_go].sum() < LEAST_POINTS:
        raise DataFormatError(
            f"{sizes.max():,} of {n:,} points are of one group, and {LEAST_POINTS} of others are "
            f"needed to hold out. Leave {advise('groups', '--group')} out."
        )
    size = min(MOST_HELD, max(1, int(n * fraction)))
    chosen: list[list[int]] = [[]]
    points = 0
    for group in rng.permutation(may_go):
        if sizes[chosen[-1]].sum() >= size:
            enough = points >= MOST_HELD and sum(map(len, chosen)) >= LEAST_GROUPS
            if enough or len(chosen) == most_folds:
                break
            chosen.append([])
        chosen[-1].append(int(group))
        points += int(sizes[group])
    most, folds = MOST_HELD // len(chosen), []
    for own in chosen:
        held = np.isin(groups, own)
        asked = np.zeros(n, dtype=bool)
        asked[rng.permutation(np.flatnonzero(held))[:most]] = True
        folds.append(Fold(held, asked, whole_groups=True))
    return folds
