"""The log-frequency of a label: a prior, the same for every point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

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

__all__ = ["Frequency"]

Floats = npt.NDArray[np.float32]
LEAST_SPREAD = 3.0
"""Log-frequencies are divided by at least this much before they are weighed.

A held-out point is missing from the counts of its own labels. Among labels of equal frequency that
makes the right ones look rarer, and a large weight would be learnt from it.
"""


@dataclass(frozen=True, eq=False)
class Frequency(Part):
    """log((1 + c) / (1 + n)) of a label that c of n points carry.

    Attributes
    ----------
    counts : int array of shape (n_labels,)
        Points that carry each label.
    n_points : int
    """

    name: ClassVar[str] = "frequency"
    opinion: ClassVar[Opinion] = Opinion(default_weight=0.0, least_spread=LEAST_SPREAD)
    explains: ClassVar[bool] = False
    on_device: ClassVar[bool] = False

    counts: npt.NDArray[np.int64]
    n_points: int

    @classmethod
    def of(cls, known: Known) -> Self:
        """That of known points."""
        return cls(known.counts, known.n_points)

    @classmethod
    def plan(
        cls, shape: Shape, options: Options, others: Mapping[str, Settings]
    ) -> Settings | None:
        return {}

    @classmethod
    def fit(cls, task: Task, settings: Settings, start: Part | None = None) -> Self:
        labels = task.learnt[1]
        return cls(np.bincount(labels.indices, minlength=labels.shape[1]), labels.shape[0])

    def scores(self, query: Query) -> Floats:
        counts = self.counts[query.pairs.indices]
        return np.log((1 + counts) / (1 + self.n_points)).astype(np.float32)

    def add(self, lesson: Lesson) -> Frequency:
        return Frequency.of(lesson.after)

    def drop(self, kept: npt.NDArray[np.bool_], after: Known) -> Frequency:
        return Frequency.of(after)

    def hide(self, after: Known) -> Frequency:
        return Frequency.of(after)

    def unlabel(self, row: int, label: int, after: Known, options: Options) -> Frequency:
        return Frequency.of(after)

    def regroup(self, change: Regrouping) -> Frequency:
        return Frequency.of(change.after)

    def state(self, precision: Precision) -> tuple[dict[str, Any], Named]:
        return {}, {}

    @classmethod
    def restore(cls, config: Settings, arrays: Arrays, known: Known) -> Self:
        return cls.of(known)
