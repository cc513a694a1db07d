"""How often a label occurs: the same for every point, it corrects what all others get wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.precision import Precision
from dxml.joint._mixture import Opinion
from dxml.joint._points import Known
from dxml.joint.parts.protocol import (
    Lesson,
    Named,
    Options,
    Part,
    Query,
    Regrouping,
    Settings,
    Shape,
    Task,
)

__all__ = ["Frequency", "log_frequency"]

Floats = npt.NDArray[np.float32]
LEAST_SPREAD = 3.0
"""Log-frequencies are divided by at least this much before they are weighed.

A held-out point is missing from the counts of its own labels. Among labels of equal frequency that
makes the right ones look rarer, and a large weight would be learnt from it.
"""


def log_frequency(labels: sp.csr_matrix) -> Floats:
    """The logarithm of the share of points that carry each label, as if one more did."""
    return _log_share(np.bincount(labels.indices, minlength=labels.shape[1]), labels.shape[0])


def _log_share(counts: npt.NDArray[np.int64], n_points: int) -> Floats:
    return np.log((1 + counts) / (1 + n_points)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Frequency(Part):
    """Scores a pair by the log-frequency of its label."""

    name: ClassVar[str] = "frequency"
    opinion: ClassVar[Opinion] = Opinion(default_weight=0.0, least_spread=LEAST_SPREAD)
    explains: ClassVar[bool] = False
    on_device: ClassVar[bool] = False

    by_label: Floats

    @classmethod
    def plan(
        cls, shape: Shape, options: Options, others: Mapping[str, Settings]
    ) -> Settings | None:
        return {}

    @classmethod
    def fit(cls, task: Task, settings: Settings, start: Part | None = None) -> Self:
        return cls(log_frequency(task.learnt[1]))

    def scores(self, query: Query) -> Floats:
        return self.by_label[query.pairs.indices]

    def add(self, lesson: Lesson) -> Frequency:
        return Frequency(_log_share(lesson.after.counts, lesson.after.n_points))

    def drop(self, kept: npt.NDArray[np.bool_], after: Known) -> Frequency:
        return Frequency(log_frequency(after.labels))

    def unlabel(self, row: int, label: int, after: Known, options: Options) -> Frequency:
        return Frequency(log_frequency(after.labels))

    def regroup(self, change: Regrouping) -> Frequency:
        return Frequency(log_frequency(change.after.labels))

    def state(self, precision: Precision) -> tuple[dict[str, Any], Named]:
        return {}, {}

    @classmethod
    def restore(cls, config: Settings, arrays: Arrays, known: Known) -> Self:
        return cls(log_frequency(known.labels))
