"""Labels above a threshold: the threshold with the best F1, and how each label fares there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dxml.metrics._judging import Labels, judge
from dxml.topk import TopK

__all__ = ["Chosen", "LabelScores", "at_threshold", "best_threshold", "label_scores"]

Counts = npt.NDArray[np.int64]


class Chosen(NamedTuple):
    """A threshold, and precision, recall and F1 over all pairs of a point and a label there."""

    threshold: float
    precision: float
    recall: float
    f1: float


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
    judged = judge(Y, ranking, ranking.k)
    ranked = judged.labels >= 0
    scores, hits = ranking.scores[ranked], judged.hits[ranked]
    n_true = int(judged.truth.nnz)
    if not len(scores) or not n_true:
        return Chosen(1.0, 0.0, 0.0, 0.0)
    order = np.argsort(-scores, kind="stable")
    scores, right = scores[order], np.cumsum(hits[order])
    given = np.arange(1, len(scores) + 1)
    f1 = 2 * right / (given + n_true)
    f1[:-1][scores[1:] == scores[:-1]] = -1  # equal scores are all given, or none
    best = int(np.argmax(f1))
    precision, recall = right[best] / given[best], right[best] / n_true
    return Chosen(float(scores[best]), float(precision), float(recall), float(f1[best]))


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
