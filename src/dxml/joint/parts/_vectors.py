"""The cosine of a text's vector with the mean of a label's texts: words never seen count too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.holes import NO_HOLES, Holes
from dxml._core.precision import Precision
from dxml._deep.texts import Texts
from dxml._deep.vectors import TextVectors, VectorRows
from dxml.exceptions import DataFormatError
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

__all__ = ["VectorsPart"]

Floats = npt.NDArray[np.float32]
Halves = npt.NDArray[np.float16]


@dataclass(frozen=True, eq=False)
class VectorsPart(Part):
    """Cosines with the labels' mean vectors, by `dxml._deep.vectors`.

    Attributes
    ----------
    how : TextVectors
    read : tuple of float16 arrays of shape (n, size)
        The vectors of the known texts, those of each lesson by themselves.
    labels : csr_matrix of shape (n_rows, n_labels), bool
    holes : Holes
        Rows that are not counted.
    """

    name: ClassVar[str] = "vectors"
    opinion: ClassVar[Opinion] = Opinion(default_weight=2.0)

    how: TextVectors
    read: tuple[Halves, ...] = field(repr=False)
    labels: sp.csr_matrix = field(repr=False)
    holes: Holes = NO_HOLES

    @classmethod
    def plan(
        cls, shape: Shape, options: Options, others: Mapping[str, Settings]
    ) -> Settings | None:
        return {} if options.has_vectors else None

    @classmethod
    def fit(cls, task: Task, settings: Settings, start: Part | None = None) -> Self:
        vectors = _vectors_of(task.texts)
        return cls(vectors.how, (vectors.rows,), task.learnt[1])

    @cached_property
    def points(self) -> Halves:
        """The vectors of all rows, holes among them."""
        return self.read[0] if len(self.read) == 1 else np.concatenate(self.read)

    @cached_property
    def sums(self) -> Floats:
        """The sum of the vectors of each label's texts, (n_labels, size)."""
        kept = self.holes.kept(self.labels.shape[0])
        carried = sp.csr_matrix(self.labels[kept].T, dtype=np.float32)
        return np.asarray(carried @ self.points[kept].astype(np.float32))

    @cached_property
    def _lengths(self) -> Floats:
        return np.maximum(np.linalg.norm(self.sums, axis=1), 1e-12)

    def scores(self, query: Query) -> Floats:
        rows, lengths = _vectors_of(query.texts).rows.astype(np.float32), self._lengths
        if query.every_label:
            return (rows @ self.sums.T / lengths).ravel()
        found = np.empty(query.pairs.nnz, dtype=np.float32)
        for row, (first, last) in zip(rows, pairwise(query.pairs.indptr.tolist()), strict=True):
            labels = query.pairs.indices[first:last]
            found[first:last] = self.sums[labels] @ row / lengths[labels]
        return found

    def add(self, lesson: Lesson) -> VectorsPart:
        """The texts count at once."""
        rows, after = _vectors_of(lesson.texts).rows, lesson.after
        sums = np.pad(self.sums, ((0, after.n_labels - len(self.sums)), (0, 0)))
        _count(sums, lesson.Y, rows, 1)
        return self._counted(sums, read=(*self.read, rows), labels=after.labels)

    def drop(self, kept: npt.NDArray[np.bool_], after: Known) -> VectorsPart:
        return VectorsPart(self.how, (self.points[kept],), after.labels)

    def hide(self, after: Known) -> VectorsPart:
        gone = np.setdiff1d(after.holes.places, self.holes.places)
        sums = self.sums.copy()
        _count(sums, self.labels[gone], self.points[gone], -1)
        return self._counted(sums, holes=after.holes)

    def unlabel(self, row: int, label: int, after: Known, options: Options) -> VectorsPart:
        sums = self.sums.copy()
        sums[label] -= self.points[row].astype(np.float32)
        return self._counted(sums, labels=after.labels)

    def regroup(self, change: Regrouping) -> VectorsPart:
        """A label that several became has the texts of all."""
        return VectorsPart(self.how, self.read, change.after.labels, change.after.holes)

    def _counted(self, sums: Floats, **changes: Any) -> VectorsPart:
        """With changes, and the sums they lead to, which need not be added up anew then."""
        changed = replace(self, **changes)
        changed.__dict__["sums"] = sums
        return changed

    def state(self, precision: Precision) -> tuple[dict[str, Any], Named]:
        config, arrays = self.how.state(self.name)
        return config, {**arrays, f"{self.name}.points": self.points}

    @classmethod
    def restore(cls, config: Settings, arrays: Arrays, known: Known) -> Self:
        how = TextVectors.restore(config, arrays, cls.name)
        points = arrays.halves(f"{cls.name}.points", known.n_points, how.source.size)
        return cls(how, (points,), known.labels)


def _vectors_of(texts: Texts | None) -> VectorRows:
    if texts is None or texts.vectors is None:
        raise DataFormatError("this model reads texts beside features. Give texts=….")
    return texts.vectors


def _count(sums: Floats, labels: sp.csr_matrix, rows: Halves, times: float) -> None:
    """Add rows to the sums of the labels that they carry, in place."""
    carriers = np.repeat(np.arange(labels.shape[0]), np.diff(labels.indptr))
    np.add.at(sums, labels.indices, times * rows[carriers].astype(np.float32))
