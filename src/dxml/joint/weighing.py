"""Held-out points → how far each part of a joint model can be trusted.

The vote is chosen first, by itself; then come mixtures of what the parts say (`mixture`), and with
them the quality that settings of a part are judged by: the mean of P@1, P@3 and P@5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.sparse import plain_csr
from dxml.joint.mixture import NEVER, Mixture, fit_mixture, opinions
from dxml.joint.parts import Parts, is_carried, log_frequency, vote_ranking
from dxml.learners.linear_head import LinearHead
from dxml.metrics import precision_at_k
from dxml.topk import TopK, topk_from_csr

__all__ = ["NEIGHBORS", "HeldOut", "Near", "Weighing", "climb", "default_mixture"]

NEIGHBORS = (10, 20, 50, 100)
POWERS = (2.0, 4.0, 8.0, 16.0, 32.0)
"""Numbers of voters, and powers of the cosine their votes weigh, that are tried."""

Near = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]
Found = TypeVar("Found")


class HeldOut(NamedTuple):
    """Points held out, and parts that were fitted without them.

    Attributes
    ----------
    parts : Parts
    X, Y : csr_matrix
        The points, scaled, and their labels.
    near : (ids, cosines)
        Their neighbours.
    fitted : csr_matrix
        The labels of the points that the parts were fitted on.
    """

    parts: Parts
    X: sp.csr_matrix
    Y: sp.csr_matrix
    near: Near
    fitted: sp.csr_matrix


class Weighing:
    """Mixtures of what the parts say of held-out points.

    Parameters
    ----------
    folds : sequence of HeldOut
        The vote's settings are chosen here, and set in their parts.
    """

    def __init__(self, folds: Sequence[HeldOut], device: str) -> None:
        _choose_vote(folds)
        self._folds, self._said, known = folds, [], []
        self._pairs = [fold.parts.candidates(*fold.near) for fold in folds]
        for fold, pairs in zip(folds, self._pairs, strict=True):
            said = fold.parts.scores(fold.X, *fold.near, pairs, device)
            self._said.append({**said, "frequency": log_frequency(fold.fitted)[pairs.indices]})
            known.append(is_carried(fold.fitted)[pairs.indices])
        self._known = np.concatenate(known)
        self._all_pairs = _stacked(self._pairs)
        self._truth = _stacked([fold.Y for fold in folds])

    def mixture(self, heads: Sequence[LinearHead] | None = None) -> tuple[float, Mixture]:
        """The mixture of the parts, with the folds' linear heads if there are any; its quality."""
        said = self._said
        if heads is not None:
            several = zip(self._folds, self._said, self._pairs, heads, strict=True)
            said = [
                {**others, "linear": fold.parts.linear_scores(head, fold.X, pairs)}
                for fold, others, pairs, head in several
            ]
        parts = {name: np.concatenate([each[name] for each in said]) for name in said[0]}
        mixture = fit_mixture(parts, self._all_pairs, self._truth, self._known)
        pairs = self._all_pairs
        mixed = mixture.mix(opinions(parts))
        mixed[~self._known] = NEVER
        scored = plain_csr(mixed, pairs.indices, pairs.indptr, pairs.shape)
        ranking = topk_from_csr(scored, _depth(self._truth), self._folds[0].parts.place)
        return _mean_precision(ranking, self._truth), mixture


def default_mixture(parts: Parts, device: str) -> Mixture:
    """Where there are too few points to hold any out."""
    ids, cosines = parts.search(parts.points[:1], 1, device)
    none = ids[:0], cosines[:0]
    pairs = parts.candidates(*none)
    said = parts.scores(parts.points[:0], *none, pairs, device)
    return fit_mixture(said, pairs, parts.labels[:0])


def _stacked(matrices: Sequence[sp.csr_matrix]) -> sp.csr_matrix:
    return matrices[0] if len(matrices) == 1 else sp.vstack(matrices, format="csr")


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


def _choose_vote(folds: Sequence[HeldOut]) -> None:
    """Set the voters and the power with the highest quality."""
    best = -1.0
    width = folds[0].near[0].shape[1]
    for size in sorted({min(size, width) for size in NEIGHBORS}):
        for power in POWERS:
            reached = fmean(_vote_quality(fold, size, power) for fold in folds)
            if reached > best:
                best, chosen = reached, (size, power)
    for fold in folds:
        fold.parts.n_neighbors, fold.parts.power = chosen


def _vote_quality(fold: HeldOut, size: int, power: float) -> float:
    ids, cosines = fold.near
    some = ids[:, :size], cosines[:, :size]
    return _mean_precision(vote_ranking(fold.parts, *some, power, _depth(fold.Y)), fold.Y)


def _depth(truth: sp.csr_matrix) -> int:
    return min(5, truth.shape[1])


def _mean_precision(ranking: TopK, truth: sp.csr_matrix) -> float:
    """The mean of P@1, P@3 and P@5, of a ranking of up to five places."""
    return float(precision_at_k(truth, ranking, ranking.k)[::2].mean())
