"""Precision and recall of frequent and rare labels: head, torso and tail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dxml.metrics._judging import Labels, Ranking, judge

__all__ = ["BANDS", "LabelGroup", "judge_groups", "label_bands"]

BANDS = ("head", "torso", "tail")


def label_bands(frequency: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
    """0, 1 or 2 for each label: head, torso and tail hold a third of all occurrences each.

    Labels are sorted by decreasing frequency. One that crosses a border belongs to the more
    frequent band. Labels without training points are tail.

    >>> label_bands(np.array([1, 6, 3, 2, 0])).tolist()
    [2, 0, 1, 2, 2]
    """
    order = np.argsort(-frequency, kind="stable")
    before = np.cumsum(frequency[order]) - frequency[order]
    bands = np.empty(len(frequency), dtype=np.int8)
    third = frequency.sum() / 3
    bands[order] = (before >= third).astype(np.int8) + (before >= 2 * third)
    bands[frequency == 0] = 2
    return bands


@dataclass(frozen=True)
class LabelGroup:
    """The counts of a group of labels.

    Attributes
    ----------
    labels : int
        Number of labels in the group.
    occurrences : int
        How often they occur in the truth.
    points : int
        Points that carry at least one of them.
    predicted, right : tuple of int
        Predictions of these labels, and correct ones, among the first 1, 2, …, k of all points.
    """

    labels: int
    occurrences: int
    points: int
    predicted: tuple[int, ...]
    right: tuple[int, ...]

    def recall(self, k: int) -> float:
        """Occurrences that are found in the first k places, in per cent; 0 where there are none."""
        return 100 * self.right[k - 1] / max(self.occurrences, 1)

    def precision(self, k: int) -> float:
        """Predictions in the first k places that are right, in per cent; 0 where there are none."""
        return 100 * self.right[k - 1] / max(self.predicted[k - 1], 1)


def judge_groups(
    Y: Labels, ranking: Ranking, k: int, group: npt.NDArray[np.integer], n_groups: int
) -> list[LabelGroup]:
    """Count predictions and hits of each group; `group` has the group number of each label.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> Y = sp.csr_matrix([[1, 0, 1], [0, 1, 0]], dtype=bool)
    >>> head, tail = judge_groups(Y, np.array([[0, 1], [0, 1]]), 2, np.array([0, 1, 1]), 2)
    >>> head.precision(1), tail.recall(2)
    (50.0, 50.0)
    """
    judged = judge(Y, ranking, k)
    counts = list(judged.label_counts())
    present, n_points = judged.label_frequency, judged.truth.shape[0]

    def total(of_label: npt.NDArray[np.int64], number: int) -> int:
        return int(of_label[group == number].sum())

    rows = np.repeat(np.arange(n_points), judged.n_true)
    of_entry = group[judged.truth.indices]
    return [
        LabelGroup(
            int((group == number).sum()),
            total(present, number),
            len(np.unique(rows[of_entry == number])),
            tuple(total(predicted, number) for _, predicted in counts),
            tuple(total(right, number) for right, _ in counts),
        )
        for number in range(n_groups)
    ]
