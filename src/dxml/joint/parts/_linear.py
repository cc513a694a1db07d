"""A linear one-vs-all head that learns to tell a point's labels from its hard negatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays, real
from dxml._core.packed import Packed
from dxml._core.precision import Precision, pack_sparse, unpack_sparse
from dxml._learners.linear_examples import label_signs
from dxml._learners.linear_head import LinearHead
from dxml._learners.linear_training import fit_linear
from dxml.joint._mixture import Opinion
from dxml.joint._points import Known, Near
from dxml.joint._sizes import LINEAR_PAIR_BYTES
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

__all__ = ["DEFAULT_C", "LinearPart"]

Floats = npt.NDArray[np.float32]
DEFAULT_C = 1.0
STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # values of C that may be tried
NEAREST = 50  # known points around a new one, from which its new labels are told
NEW_SHARE = 0.1
"""Share of new points among a label's, from which on its weights are trained on.

With less, points that come one by one make the others worse; with more, less is learnt from them:
benchmarks/results/teaching-choices.json."""
MERGED_POINTS = 500  # of a merged label, at most, from which it is trained on
TRAIN_ON_C = 0.25  # of C: training on stays near the weights there are
TRAIN_ON_ITER = 1


@dataclass(frozen=True, eq=False)
class LinearPart(Part):
    """wᵀx − 1 by `dxml._learners.linear_head`.

    Attributes
    ----------
    head : LinearHead
    C : float
        Weight of the loss.
    duals : float32 array or None
        The multipliers where training ended, from which a fit on the same data may go on.
    """

    name: ClassVar[str] = "linear"
    opinion: ClassVar[Opinion] = Opinion(default_weight=2.0)
    on_device: ClassVar[bool] = False
    ladder: ClassVar[tuple[Settings, ...]] = tuple({"C": C} for C in STRENGTHS)
    first_steps: ClassVar[tuple[int, int]] = (2, 3)

    head: LinearHead
    C: float = DEFAULT_C
    duals: Floats | None = field(default=None, repr=False)

    @classmethod
    def plan(
        cls, shape: Shape, options: Options, others: Mapping[str, Settings]
    ) -> Settings | None:
        if shape.every_label:
            wanted = not shape.dense or not ("kernel" in others or "wide" in others)
            memory = LINEAR_PAIR_BYTES * shape.n_samples * shape.n_labels
            if not wanted or memory > shape.memory:
                return None
        return {"C": options.C or DEFAULT_C}

    @classmethod
    def fit(cls, task: Task, settings: Settings, start: Part | None = None) -> Self:
        options, C, trial = task.options, settings["C"], task.rows is not None
        duals = start.duals if isinstance(start, LinearPart) else None
        half = trial or duals is not None  # the passes of a trial and of going on from it are all
        head, duals = fit_linear(
            task.data.X,
            task.data.signs,
            C=C,
            max_iter=-(-options.max_iter // 2) if half else options.max_iter,
            prune=options.prune,
            rows=task.rows,
            duals=duals,
            seed=options.seed("linear"),
            device=options.device,
            stage=f"linear head, C = {C:g}{task.note}" if trial else "linear head",
            progress=task.progress,
        )
        return cls(head, C, duals)

    @classmethod
    def fixed(cls, options: Options) -> Settings | None:
        return None if options.C is None else {"C": options.C}

    @classmethod
    def optional(cls, every_label: bool, others: Mapping[str, Part]) -> bool:
        """Beside a kernel or a wide layer over every label."""
        return every_label and ("kernel" in others or "wide" in others)

    @property
    def settings(self) -> Settings:
        return {"C": self.C}

    def scores(self, query: Query) -> Floats:
        if query.every_label:
            return self.head.all_scores(query.X).ravel()
        return self.head.scores(query.X, query.pairs)

    def add(self, lesson: Lesson) -> LinearPart:
        """A label is trained on if a tenth or more of its points are new.

        It learns from them and from the new points that have it on their shortlist. A new label
        also learns from the known points nearest to its own.
        """
        after = lesson.after
        return self._taught(_lesson_signs(lesson), after.points, after.n_labels, lesson.options)

    def hide(self, after: Known) -> LinearPart:
        return self

    def widen(self, after: Known) -> LinearPart:
        return LinearPart(self.head.widened(after.n_features), self.C)

    def unlabel(self, row: int, label: int, after: Known, options: Options) -> LinearPart:
        """The point becomes a negative of the label."""
        one = sp.csr_matrix(np.array([[-1]], np.int8))
        signs = _Signs(np.array([label]), np.array([row]), one)
        return self._taught(signs, after.points, after.n_labels, options)

    def regroup(self, change: Regrouping) -> LinearPart:
        """A merged label goes on from the mean of its labels' weights, and is trained on.

        It learns from its points and from those nearest to them that do not carry it.
        """
        weights = self.head.rows(change.main)
        if not change.merged:
            return LinearPart(LinearHead(weights), self.C)
        labels = np.array(sorted(change.merged), dtype=np.int64)
        means = [_mean_row(self.head, change, label) for label in labels]
        mean = sp.csr_matrix(sp.vstack(means, format="csr"), dtype=np.float32)
        head = LinearHead(weights).replaced(labels, mean, len(change.main))
        after, options = change.after, change.options
        signs = _merged_signs(labels, after, options)
        return LinearPart(head, self.C)._taught(signs, after.points, after.n_labels, options)

    def train_on(self, task: Task, planned: Settings | None) -> LinearPart:
        """All labels are trained on from their weights w₀, with a small C' so that they stay near.

        min_w ½ ‖w − w₀‖² + C' Σ loss
        """
        head, _ = fit_linear(
            task.data.X,
            task.data.signs,
            C=TRAIN_ON_C * self.C,
            max_iter=TRAIN_ON_ITER,
            prune=task.options.prune,
            start=self.head.weights,
            seed=task.options.seed("teaching"),
            progress=task.progress,
        )
        return LinearPart(head, self.C)

    def _taught(
        self, signs: _Signs, points: sp.csr_matrix, n_labels: int, options: Options
    ) -> LinearPart:
        """The labels that have signs trained on, the others as they are known."""
        known = self.head.rows(signs.labels)
        if not len(signs.labels):
            return LinearPart(self.head.replaced(signs.labels, known, n_labels), self.C)
        some, _ = fit_linear(
            points[signs.points],
            signs.values,
            C=self.C,
            max_iter=options.max_iter,
            prune=options.prune,
            start=known,
            seed=options.seed("teaching"),
        )
        packed = pack_sparse("linear", some.weights, options.precision)
        fresh = unpack_sparse("linear", packed)  # as it will be read from a saved model
        return LinearPart(self.head.replaced(signs.labels, fresh, n_labels), self.C)

    def state(self, precision: Precision) -> tuple[dict[str, Any], Named]:
        packed = self.head.packed
        if packed is not None and packed.precision == precision:
            return dict(self.settings), dict(packed.arrays)
        return dict(self.settings), pack_sparse("linear", self.head.weights, precision)

    @classmethod
    def restore(cls, config: Settings, arrays: Arrays, known: Known) -> Self:
        packed = arrays.packed_csr("linear", known.n_labels, known.n_features)
        return cls(LinearHead(Packed("linear", packed)), real(config, "C"))


class _Signs(NamedTuple):
    """What some labels learn from.

    Attributes
    ----------
    labels, points : int arrays, in rising order
        Columns and rows of the model.
    values : csr_matrix of shape (n_labels, n_points), int8
        As in `dxml._learners.linear_examples.label_signs`, for these labels and points alone.
    """

    labels: npt.NDArray[np.int64]
    points: npt.NDArray[np.int64]
    values: sp.csr_matrix


def _lesson_signs(lesson: Lesson) -> _Signs:
    """New points against their shortlists; new labels also against the known points nearby.

    Labels of which only a small share of the points is new are left out. With a few new points and
    few negatives beside them, training on makes them worse.
    """
    before, after, options = lesson.before, lesson.after, lesson.options
    n_known, n_new = before.n_rows, lesson.X.shape[0]
    labels, new = np.unique(lesson.Y.indices, return_counts=True)
    labels = labels[new >= NEW_SHARE * after.counts[labels]].astype(np.int64)
    ids, cosines = after.search(lesson.X, options.n_negatives + 1, options.device)
    own = ids == n_known + np.arange(n_new)[:, None]
    ids, cosines = np.where(own, np.int32(-1), ids), np.where(own, np.float32(0), cosines)
    shortlist = after.shortlist(Near(ids, cosines), options.n_negatives)
    carried = _columns(lesson.Y, labels)
    first = label_signs(carried, _columns(shortlist, labels))  # (n_labels, n_new)
    near = ids[:, :NEAREST]
    found = near >= 0
    points = np.union1d(near[found], n_known + np.arange(n_new)).astype(np.int64)
    shape = (len(labels), len(points))
    places = np.searchsorted(points, n_known + first.indices)
    signs = sp.csr_matrix((first.data, places, first.indptr), shape=shape)
    if len(labels) and labels[-1] >= before.n_labels:
        nearby = (np.ones(found.sum(), np.int32), np.searchsorted(points, near[found]))
        ends = np.concatenate([[0], np.cumsum(found.sum(axis=1))])
        around = sp.csr_matrix((*nearby, ends), shape=(n_new, len(points)))
        fresh = carried.T.tocsr().astype(np.int32)
        fresh.data *= np.repeat(labels >= before.n_labels, np.diff(fresh.indptr))
        others = (fresh @ around > 0).astype(np.int8)
        others = others - others.multiply(signs > 0)  # not where the label is carried
        signs = sp.csr_matrix((signs - others).sign(), dtype=np.int8)  # -2 where both say -1
    signs.eliminate_zeros()
    signs.sort_indices()
    return _Signs(labels, points, signs)


def _mean_row(head: LinearHead, change: Regrouping, label: int) -> sp.csr_matrix:
    """The mean of the weights of the labels that become one, by their points."""
    old = change.merged[label]
    counts = np.maximum(change.before.counts[old], 1).astype(np.float32)
    return sp.csr_matrix(counts / counts.sum()) @ head.rows(old)


def _merged_signs(labels: npt.NDArray[np.int64], after: Known, options: Options) -> _Signs:
    """Some points of each label against the known points near them that do not carry it."""
    carried = after.labels.tocsc()
    rows, columns, values = [], [], []
    for place, label in enumerate(labels):
        own = carried.indices[carried.indptr[label] : carried.indptr[label + 1]]
        some = own[:: -(-len(own) // MERGED_POINTS) or 1]
        near = after.search(after.points[some], NEAREST, options.device).ids if len(some) else own
        against = np.setdiff1d(near[near >= 0], own)
        for points, sign in ((some, 1), (against, -1)):
            rows.append(np.full(len(points), place))
            columns.append(points.astype(np.int64))
            values.append(np.full(len(points), sign, dtype=np.int8))
    points, places = np.unique(np.concatenate(columns), return_inverse=True)
    pairs = (np.concatenate(values), (np.concatenate(rows), places))
    signs = sp.csr_matrix(pairs, shape=(len(labels), len(points)), dtype=np.int8)
    signs.sort_indices()
    return _Signs(labels, points, signs)


def _columns(matrix: sp.csr_matrix, columns: npt.NDArray[np.int64]) -> sp.csr_matrix:
    """Some columns, in rising order, in time for the values alone."""
    shape = (matrix.shape[0], len(columns))
    if not len(columns):
        return sp.csr_matrix(shape, dtype=matrix.dtype)
    places = np.minimum(np.searchsorted(columns, matrix.indices), len(columns) - 1)
    kept = columns[places] == matrix.indices
    ends = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr]
    return sp.csr_matrix((matrix.data[kept], places[kept], ends), shape=shape)
