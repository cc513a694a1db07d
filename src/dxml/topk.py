"""TopK: the one prediction type, and the one rule that breaks ties.

Labels are ranked by score, then by how often they occur in the training data, then by id.
Votes tie a lot, and the rule moves P@1 by a few tenths of a point, so it is fixed here and nowhere
else: every ranking in the package is made by a function of this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.compiled import compiled, prange, spare
from dxml._core.html import MOST_SHOWN, not_shown, table
from dxml._core.sparse import plain_csr

__all__ = ["TopK", "default_top", "moved", "tie_order", "topk_from_csr", "topk_from_dense"]

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
FEW_MOVED = 20  # labels that are moved one by one; for more, all are sorted again


def default_top(threshold: float | None) -> int:
    """Labels of a point where nobody says how many: 5, or 50 out of which a threshold chooses."""
    return 5 if threshold is None else 50


@dataclass(frozen=True)
class TopK:
    """The k best labels of each point, best first.

    Attributes
    ----------
    indices : int32 array of shape (n_samples, k)
        Label ids. A row with fewer than k labels ends in -1.
    scores : float32 array of shape (n_samples, k)
        Their scores, 0 where the index is -1. Larger is better; the scale is the method's own.
    names : array of shape (n_labels,), optional
        What the labels are called, where the model knows. A notebook shows them.
    """

    indices: Ids
    scores: Floats
    names: npt.NDArray[Any] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.indices.shape != self.scores.shape or self.indices.ndim != 2:
            raise ValueError(
                f"indices and scores must have one shape (n, k), "
                f"got {self.indices.shape} and {self.scores.shape}"
            )

    def __len__(self) -> int:
        return int(self.indices.shape[0])

    @property
    def k(self) -> int:
        """Columns: how many labels a row can hold."""
        return int(self.indices.shape[1])

    def head(self, k: int) -> TopK:
        """Only the k best of each row."""
        return replace(self, indices=self.indices[:, :k], scores=self.scores[:, :k])

    def at_least(self, threshold: float) -> TopK:
        """Without the labels whose score is lower."""
        kept = (self.scores >= threshold) & (self.indices >= 0)
        return replace(
            self,
            indices=np.where(kept, self.indices, np.int32(-1)),
            scores=np.where(kept, self.scores, np.float32(0)),
        )

    def row(self, i: int) -> list[tuple[int, float]]:
        """The labels of one point as (id, score), without the padding."""
        kept = self.indices[i] >= 0
        ids, scores = self.indices[i][kept].tolist(), self.scores[i][kept].tolist()
        return list(zip(ids, scores, strict=True))

    def rows(self) -> Iterator[list[tuple[int, float]]]:
        """`row` of every point."""
        return (self.row(i) for i in range(len(self)))

    def to_csr(self, n_labels: int) -> sp.csr_matrix:
        """The scores as a sparse (n_samples, n_labels) matrix; a score of 0 stays stored."""
        order = np.argsort(self.indices, axis=1)
        labels = np.take_along_axis(self.indices, order, axis=1)
        kept = labels >= 0
        indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1), dtype=np.int64)])
        indptr = indptr.astype(np.int32) if kept.size < 2**31 else indptr
        scores = np.take_along_axis(self.scores, order, axis=1)
        return plain_csr(scores[kept], labels[kept], indptr, (len(self), n_labels))

    @staticmethod
    def concatenate(parts: list[TopK]) -> TopK:
        """Rows of several TopK of the same k, one after the other."""
        return TopK(
            np.concatenate([part.indices for part in parts]),
            np.concatenate([part.scores for part in parts]),
            parts[0].names,
        )

    def _repr_html_(self) -> str:
        """The first points, a row each: labels, by name where known, with their scores."""
        shown = min(len(self), MOST_SHOWN)
        lines = [
            [i, *(f"{self._name(label)} {score:.3g}" for label, score in self.row(i))]
            for i in range(shown)
        ]
        places = [f"{place}." for place in range(1, self.k + 1)]
        return table(["point", *places], lines) + not_shown(len(self), "points")

    def _name(self, label: int) -> str:
        return str(label if self.names is None else self.names[label])


def tie_order(label_frequency: npt.NDArray[Any]) -> Ids:
    """The place of each label among equals: more frequent first, then lower id.

    >>> tie_order(np.array([1, 5, 5, 0])).tolist()
    [2, 0, 1, 3]
    """
    order = np.lexsort((np.arange(len(label_frequency)), -np.asarray(label_frequency)))
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place


def moved(place: Ids, frequency: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Ids:
    """`tie_order(frequency)` from the one before the frequency of some labels changed.

    Takes a few passes over the labels for each that changed, and sorts nothing.

    Parameters
    ----------
    place : int32 array
        As `tie_order` gave it; labels after its end are new.
    frequency : int array
        As it is now.
    labels : int array
        Those whose frequency changed, or that are new.

    >>> before = tie_order(np.array([1, 5, 5, 0]))
    >>> moved(before, np.array([5, 5, 5, 0, 7]), np.array([0, 4])).tolist()
    [1, 2, 3, 4, 0]
    """
    new = np.arange(len(place), len(frequency), dtype=np.int32)
    labels = np.union1d(labels, new)
    if len(labels) > FEW_MOVED:
        return tie_order(frequency)
    place = np.concatenate([place, new])
    others = place.copy()  # places as if the changed labels were not there
    for old in place[labels].tolist():
        others -= place > old
    stay = np.ones(len(frequency), dtype=bool)
    stay[labels] = False
    labels = labels[np.lexsort((labels, -frequency[labels]))]
    found = others.copy()
    for turn, label in enumerate(labels.tolist()):
        ahead = frequency > frequency[label]
        ahead[:label] |= frequency[:label] == frequency[label]
        first = int(np.count_nonzero(ahead & stay))
        found += others >= first
        place[label] = first + turn
    return np.where(stay, found, place).astype(np.int32)


@compiled(inline="always")
def _before(score_a, place_a, score_b, place_b):  # type: ignore[no-untyped-def]
    return score_a > score_b or (score_a == score_b and place_a < place_b)


@compiled()
def insert_best(ids, scores, filled, label, score, place):  # type: ignore[no-untyped-def]
    """Insertion step of a top-k selection; returns how many slots are filled now."""
    k = ids.shape[0]
    if filled == k:
        last = ids[k - 1]
        if not _before(score, place[label], scores[k - 1], place[last]):
            return filled
        slot = k - 1
    else:
        slot = filled
        filled += 1
    while slot > 0 and _before(score, place[label], scores[slot - 1], place[ids[slot - 1]]):
        ids[slot] = ids[slot - 1]
        scores[slot] = scores[slot - 1]
        slot -= 1
    ids[slot] = label
    scores[slot] = score
    return filled


@compiled(parallel=True)
def _select_csr(indptr, indices, data, place, ids, scores):  # type: ignore[no-untyped-def]
    for i in prange(indptr.shape[0] - 1):
        filled = 0
        for j in range(indptr[i], indptr[i + 1]):
            filled = insert_best(ids[i], scores[i], filled, indices[j], data[j], place)


@compiled(parallel=True)
def _select_dense(matrix, place, ids, scores):  # type: ignore[no-untyped-def]
    for i in prange(matrix.shape[0]):
        filled = 0
        for label in range(matrix.shape[1]):
            score = matrix[i, label]
            if score > -np.inf:
                filled = insert_best(ids[i], scores[i], filled, label, score, place)


def _empty(n: int, k: int) -> tuple[Ids, Floats]:
    return np.full((n, k), -1, dtype=np.int32), np.zeros((n, k), dtype=np.float32)


def topk_from_csr(scores: sp.csr_matrix, k: int, place: Ids) -> TopK:
    """The k best of each sparse row; what is not stored is no candidate.

    Parameters
    ----------
    scores : csr_matrix of shape (n_samples, n_labels)
    place : int32 array of shape (n_labels,)
        From `tie_order`.
    """
    ids, best = _empty(scores.shape[0], k)
    starts, labels, data = scores.indptr, scores.indices, scores.data.astype(np.float32, copy=False)
    if spare(len(ids)):
        for i, (start, stop) in enumerate(pairwise(starts.tolist())):
            best_first(labels[start:stop], data[start:stop], place, ids[i], best[i])
    else:
        _select_csr(starts, labels, data, place, ids, best)
    return TopK(ids, best)


def best_first(labels: Ids, scores: Floats, place: Ids, ids: Ids, best: Floats) -> None:
    """Fill a row of a ranking with the best of these labels, as `insert_best` one by one would."""
    order = np.lexsort((place[labels], -scores))[: len(ids)]
    ids[: len(order)], best[: len(order)] = labels[order], scores[order]


def topk_from_dense(scores: Floats, k: int, place: Ids) -> TopK:
    """The k best of each dense row of shape (n_samples, n_labels); -inf is no candidate."""
    ids, best = _empty(scores.shape[0], k)
    _select_dense(np.ascontiguousarray(scores, dtype=np.float32), place, ids, best)
    return TopK(ids, best)
