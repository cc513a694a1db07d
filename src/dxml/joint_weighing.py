"""Held-out points → how far each part of a joint model can be trusted.

The vote is chosen first, by itself; then come mixtures of what the parts say (`mixture`), and with
them the quality that settings of a part are judged by: the mean of P@1, P@3 and P@5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._sparse import plain_csr
from dxml.joint_parts import Parts, vote_ranking
from dxml.linear import LinearHead
from dxml.metrics import precision_at_k
from dxml.mixture import Mixture, fit_mixture, opinions
from dxml.topk import TopK, topk_from_csr

__all__ = ["NEIGHBORS", "Near", "Weighing", "climb"]

NEIGHBORS = (10, 20, 50, 100)
POWERS = (2.0, 4.0, 8.0, 16.0, 32.0)
"""Numbers of voters, and powers of the cosine their votes weigh, that are tried."""

Near = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]
Found = TypeVar("Found")


class Weighing:
    """Mixtures of what the parts say of held-out points.

    Parameters
    ----------
    parts : Parts
        Fitted without these points; the vote's settings are chosen here, and set.
    X, Y : csr_matrix
        The points, scaled, and their labels; none: nothing can be chosen.
    near : (ids, cosines)
        Their neighbours.
    """

    def __init__(
        self, parts: Parts, X: sp.csr_matrix, Y: sp.csr_matrix, near: Near, device: str
    ) -> None:
        if X.shape[0]:
            parts.n_neighbors, parts.power = _choose_vote(parts, near, Y)
        self._parts, self._X, self._truth = parts, X, Y
        self._pairs = parts.candidates(*near)
        self._said = parts.scores(X, *near, self._pairs, device)

    def mixture(self, head: LinearHead | None = None) -> tuple[float, Mixture]:
        """The mixture of the parts, with this linear head if there is one, and its quality.

        Without any points that is 0.
        """
        said, pairs = self._said, self._pairs
        if head is not None:
            said = {**said, "linear": self._parts.linear_scores(head, self._X, pairs)}
        mixture = fit_mixture(said, pairs, self._truth)
        if not pairs.shape[0]:
            return 0.0, mixture
        mixed = plain_csr(mixture.mix(opinions(said)), pairs.indices, pairs.indptr, pairs.shape)
        ranking = topk_from_csr(mixed, _depth(self._truth), self._parts.place)
        return _mean_precision(ranking, self._truth), mixture


def climb(
    steps: Sequence[float],
    pair: tuple[int, int],
    worth: float,
    attempt: Callable[[float], tuple[float, Found]],
) -> tuple[float, Found, float]:
    """The best quality, what led to it, and its step.

    Two neighbouring steps are tried. Where one is better by `worth`, the search goes on beyond it,
    for as long as that much is gained.

    Parameters
    ----------
    pair : the places of the two steps, the lower first
    attempt : function from a step to its quality and what else it led to

    >>> climb([1, 2, 3, 4, 5], (1, 2), 0.5, lambda step: (-abs(step - 4), f"at {step}"))
    (0, 'at 4', 4)
    """
    low, high = ((*attempt(steps[place]), steps[place]) for place in pair)
    up = high[0] > low[0]
    best, beyond = (high, steps[pair[1] + 1 :]) if up else (low, steps[: pair[0]][::-1])
    gain = abs(high[0] - low[0])
    for step in beyond:
        if gain < worth:
            break
        found = (*attempt(step), step)
        gain = found[0] - best[0]
        best = found if gain > 0 else best
    return best


def _choose_vote(parts: Parts, near: Near, truth: sp.csr_matrix) -> tuple[int, float]:
    """Voters and power with the highest quality."""
    best, chosen = -1.0, (NEIGHBORS[0], POWERS[0])
    for size in sorted({min(size, near[0].shape[1]) for size in NEIGHBORS}):
        for power in POWERS:
            some = near[0][:, :size], near[1][:, :size]
            quality = _mean_precision(vote_ranking(parts, *some, power, _depth(truth)), truth)
            if quality > best:
                best, chosen = quality, (size, power)
    return chosen


def _depth(truth: sp.csr_matrix) -> int:
    return min(5, truth.shape[1])


def _mean_precision(ranking: TopK, truth: sp.csr_matrix) -> float:
    """The mean of P@1, P@3 and P@5, of a ranking of up to five places."""
    return float(precision_at_k(truth, ranking, ranking.k)[::2].mean())
