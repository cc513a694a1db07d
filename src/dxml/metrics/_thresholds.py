"""Labels above a threshold: the best one, all of them as a curve, and how each label fares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dxml.metrics._judging import Labels, judge
from dxml.topk import TopK

__all__ = [
    "Chosen",
    "LabelScores",
    "ThresholdCurve",
    "at_threshold",
    "best_threshold",
    "label_scores",
    "threshold_curve",
]

STEPS = 101  # thresholds of a curve: 0, 0.01, … 1

Counts = npt.NDArray[np.int64]


class Chosen(NamedTuple):
    """A threshold, and precision, recall and F1 over all pairs of a point and a label there."""

    threshold: float
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class ThresholdCurve:
    """Pairs of a point and a label that are given from each threshold on: 0, 0.01, … 1.

    Attributes
    ----------
    carried : int
        Pairs that there are in truth.
    given : tuple of int
        Pairs of at least each threshold.
    right : tuple of int
        Those of them that are true.
    """

    carried: int
    given: tuple[int, ...]
    right: tuple[int, ...]

    def at(self, step: int) -> Chosen:
        """Precision, recall and F1 from a threshold on, which is the step's share of the last.

        >>> curve = ThresholdCurve(4, (6, 2, 0), (3, 2, 0))
        >>> curve.at(1)
        Chosen(threshold=0.5, precision=1.0, recall=0.5, f1=0.6666666666666666)
        """
        given, right = self.given[step], self.right[step]
        return Chosen(
            step / (len(self.given) - 1),
            right / given if given else 0.0,
            right / self.carried if self.carried else 0.0,
            2 * right / (given + self.carried) if given + self.carried else 0.0,
        )

    def best(self) -> Chosen:
        """Where F1 is highest; the lowest such threshold."""
        return max(map(self.at, range(len(self.given))), key=lambda chosen: chosen.f1)


class LabelScores(NamedTuple):
    """Of each label: the points that carry it, those that are given it, and those of both."""

    carried: Counts
    given: Counts
    right: Counts


def best_threshold(Y: Labels, ranking: TopK) -> Chosen:
    """The score from which on labels are best given: the one with the highest micro-averaged F1.

    Labels that are not in the ranking count as not given, so it should be deep.

    >>> import scipy.sparse as sp
    >>> scores = np.array([[0.9, 0.5], [0.8, 0.2]], dtype=np.float32)
    >>> ranking = TopK(np.array([[0, 1], [1, 2]], dtype=np.int32), scores)
    >>> best = best_threshold(sp.csr_matrix([[1, 0, 0], [0, 1, 1]], dtype=bool), ranking)
    >>> round(best.threshold, 2), best.precision, best.recall, round(best.f1, 2)
    (0.2, 0.75, 1.0, 0.86)
    """
    scores, right, n_true = _best_first(Y, ranking)
    if not len(scores) or not n_true:
        return Chosen(1.0, 0.0, 0.0, 0.0)
    given = np.arange(1, len(scores) + 1)
    f1 = 2 * right / (given + n_true)
    f1[:-1][scores[1:] == scores[:-1]] = -1  # equal scores are all given, or none
    best = int(np.argmax(f1))
    precision, recall = right[best] / given[best], right[best] / n_true
    return Chosen(float(scores[best]), float(precision), float(recall), float(f1[best]))


def threshold_curve(Y: Labels, ranking: TopK) -> ThresholdCurve:
    """What is given, and what of it is right, from each of 101 thresholds of probabilities on.

    Labels that are not in the ranking count as not given, so it should be deep.

    >>> import scipy.sparse as sp
    >>> scores = np.array([[0.9, 0.5], [0.8, 0.2]], dtype=np.float32)
    >>> ranking = TopK(np.array([[0, 1], [1, 2]], dtype=np.int32), scores)
    >>> curve = threshold_curve(sp.csr_matrix([[1, 0, 0], [0, 1, 1]], dtype=bool), ranking)
    >>> curve.carried, curve.given[::30], curve.right[::30]
    (3, (4, 3, 2, 1), (3, 2, 2, 1))
    """
    scores, right, n_true = _best_first(Y, ranking)
    steps = np.linspace(0, 1, STEPS).astype(scores.dtype)
    given = np.searchsorted(-scores, -steps, side="right")
    found = np.concatenate([[0], right])[given]
    return ThresholdCurve(n_true, tuple(given.tolist()), tuple(found.tolist()))


def _best_first(
    Y: Labels, ranking: TopK
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], int]:
    """The scores of all ranked pairs, highest first; how many are right so far; true pairs."""
    judged = judge(Y, ranking, ranking.k)
    ranked = judged.labels >= 0
    scores, hits = ranking.scores[ranked], judged.hits[ranked]
    order = np.argsort(-scores, kind="stable")
    return scores[order], np.cumsum(hits[order]), int(judged.truth.nnz)


def at_threshold(Y: Labels, ranking: TopK, threshold: float) -> Chosen:
    """Micro-averaged precision, recall and F1 where labels of at least this score are given.

    >>> import scipy.sparse as sp
    >>> scores = np.array([[0.9, 0.5], [0.8, 0.2]], dtype=np.float32)
    >>> ranking = TopK(np.array([[0, 1], [1, 2]], dtype=np.int32), scores)
    >>> found = at_threshold(sp.csr_matrix([[1, 0, 0], [0, 1, 1]], dtype=bool), ranking, 0.5)
    >>> round(found.precision, 2), round(found.recall, 2)
    (0.67, 0.67)
    """
    carried, given, right = (int(each.sum()) for each in label_scores(Y, ranking, threshold))
    shares = right / max(given, 1), right / max(carried, 1), 2 * right / max(given + carried, 1)
    return Chosen(threshold, *shares)


def label_scores(Y: Labels, ranking: TopK, threshold: float) -> LabelScores:
    """How each label fares where labels of at least this score are given."""
    kept = ranking.at_least(threshold)
    judged = judge(Y, kept, kept.k)
    n_labels = judged.n_labels
    named = judged.labels[judged.labels >= 0]
    return LabelScores(
        np.bincount(judged.truth.indices, minlength=n_labels),
        np.bincount(named, minlength=n_labels),
        np.bincount(judged.labels[judged.hits], minlength=n_labels),
    )
