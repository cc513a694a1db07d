"""Weights are learnt from labels near the top of rankings, and decide which labels those are.

So they are learnt in rounds, each from the labels that the round before put near the top. As a rule
that settles: two rounds show nearly the same labels. Where it does not, weights swing. Wrong labels
that a part has raised to the top count against it, the next round trusts it too little, others come
up in their place, and these speak for it again: which of the two the last round says is chance.
There, the labels near the top of any round are weighed together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from dxml.joint._mixture import Mixture

__all__ = ["SHOWN", "Rounds", "weigh_in_rounds"]

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
"""Of pairs, in the order in which they are stored."""

SHOWN = 10  # labels of a point that are weighed: those near the top
ROUNDS = 3  # the labels near the top are those of the round before
SETTLED = 0.85  # share of the labels near the top that the last round was learnt from, at least
GATHERED = 20  # labels of a point near the top, a round, where rounds do not settle


class Rounds(NamedTuple):
    """What the last round gave.

    Attributes
    ----------
    mixture : Mixture
        Without a calibration.
    mixed : float32 array
        Its score of every pair.
    weighed : int array
        Places of the pairs that it was learnt from.
    settled : bool
        Whether the first `ROUNDS` rounds settled.
    """

    mixture: Mixture
    mixed: Floats
    weighed: Places
    settled: bool


def weigh_in_rounds(
    weigh: Callable[[Places], tuple[Mixture, Floats]],
    near_the_top: Callable[[Floats, int], Places],
    mixed: Floats,
    right: Mask,
    known: Mask,
) -> Rounds:
    """Learn weights from the pairs near the top, again and again.

    Parameters
    ----------
    weigh : function of the places of pairs
        A mixture that is learnt from them, and its scores of all pairs.
    near_the_top : function of scores of all pairs, and a number
        Places of the pairs among so many best of their point.
    mixed : float32 array
        Scores of all pairs to begin with.
    right, known : bool arrays, one value for each pair
        Whether it is a true one, and whether it may be learnt from.
    """

    def telling(shown: Places) -> Places:
        some = right[shown].any() and not right[shown].all()
        return shown if some else np.flatnonzero(known)  # the top has nothing to tell apart

    shown = near_the_top(mixed, SHOWN)
    for _ in range(ROUNDS):
        weighed = telling(shown)
        mixture, found = weigh(weighed)
        shown = near_the_top(found, SHOWN)
    if np.isin(shown, weighed).sum() >= SETTLED * len(shown):
        return Rounds(mixture, found, weighed, settled=True)
    shown = near_the_top(mixed, GATHERED)
    for _ in range(ROUNDS):
        weighed = telling(shown)
        mixture, found = weigh(weighed)
        shown = np.union1d(shown, near_the_top(found, GATHERED))
    return Rounds(mixture, found, weighed, settled=False)
