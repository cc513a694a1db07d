"""A linear one-vs-all head that learns to tell a point's labels from its hard negatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays, real
from dxml._core.precision import Precision, pack_sparse, unpack_sparse
from dxml._core.sparse import stack_rows, widened
from dxml.joint.mixture import Opinion
from dxml.joint.parts.protocol import Lesson, Named, Options, Part, Query, Settings, Shape, Task
from dxml.joint.points import Known, Near
from dxml.joint.sizes import LINEAR_PAIR_BYTES
from dxml.learners.linear_head import LinearHead, fit_linear, label_signs

__all__ = ["DEFAULT_C", "LinearPart"]

Floats = npt.NDArray[np.float32]
DEFAULT_C = 1.0
STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # values of C that may be tried
NEAREST = 50  # known points around a new one, from which its new labels are told
NEW_SHARE = 0.1
"""Share of new points among a label's, from which on its weights are trained on.

With less, points that come one by one make the others worse; with more, less is learnt from them:
benchmarks/results/teaching-choices.json."""
TRAIN_ON_C = 0.25  # of C: training on stays near the weights there are
TRAIN_ON_ITER = 1


@dataclass(frozen=True, eq=False)
class LinearPart(Part):
    """wᵀx − 1 by `dxml.learners.linear_head`.

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
        head, duals = fit_linear(
            task.data.X,
            task.data.signs,
            C=C,
            max_iter=-(-options.max_iter // 2) if trial else options.max_iter,
            prune=options.prune,
            rows=task.rows,
            duals=start.duals if isinstance(start, LinearPart) else None,
            seed=options.seed("linear"),
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
        signs = _worth_it(_new_signs(lesson), lesson.after.labels, lesson.before.n_points)
        known = _with_rows(self.head.weights, lesson.after.n_labels)
        return self._taught(known, lesson.after.points, signs, lesson.options)

    def widen(self, after: Known) -> LinearPart:
        weights = widened(self.head.weights, after.points.shape[1])
        return LinearPart(LinearHead(weights), self.C)

    def unlabel(self, row: int, label: int, after: Known, options: Options) -> LinearPart:
        """The point becomes a negative of the label."""
        one = (np.array([-1], np.int8), (np.array([label]), np.array([row])))
        signs = sp.csr_matrix(one, shape=after.labels.shape[::-1])
        return self._taught(self.head.weights, after.points, signs, options)

    def train_on(self, task: Task, planned: Settings | None) -> LinearPart:
        """All labels go on from their weights w₀, by a loss so small that they stay near.

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
        self, known: sp.csr_matrix, X: sp.csr_matrix, signs: sp.csr_matrix, options: Options
    ) -> LinearPart:
        """The labels that have signs trained on, the others as they are known."""
        taught = np.diff(signs.indptr) > 0
        if not taught.any():
            return LinearPart(LinearHead(known), self.C)
        some, _ = fit_linear(
            X,
            signs[taught],
            C=self.C,
            max_iter=options.max_iter,
            prune=options.prune,
            start=known[taught],
            seed=options.seed("teaching"),
        )
        packed = pack_sparse("linear", some.weights, options.precision)
        fresh = unpack_sparse("linear", packed)  # as it will be read from a saved model
        places = np.empty(len(taught), dtype=np.int64)
        places[~taught] = np.arange((~taught).sum())
        places[taught] = (~taught).sum() + np.arange(taught.sum())
        return LinearPart(LinearHead(stack_rows(known[~taught], fresh)[places]), self.C)

    def state(self, precision: Precision) -> tuple[dict[str, Any], Named]:
        return dict(self.settings), pack_sparse("linear", self.head.weights, precision)

    @classmethod
    def restore(cls, config: Settings, arrays: Arrays, known: Known) -> Self:
        packed = arrays.packed_csr("linear", known.n_labels, known.points.shape[1])
        return cls(LinearHead(unpack_sparse("linear", packed)), real(config, "C"))


def _new_signs(lesson: Lesson) -> sp.csr_matrix:
    """New points against their shortlists; new labels also against the known points nearby."""
    before, after, options = lesson.before, lesson.after, lesson.options
    n, n_known, n_new = after.n_points, before.n_points, lesson.X.shape[0]
    ids, cosines = after.search(lesson.X, options.n_negatives + 1, options.device)
    own = ids == n_known + np.arange(n_new)[:, None]
    ids, cosines = np.where(own, np.int32(-1), ids), np.where(own, np.float32(0), cosines)
    shortlist = after.shortlist(Near(ids, cosines), options.n_negatives)
    first = label_signs(after.labels[n_known:], shortlist)  # (n_labels, n_new)
    signs = sp.csr_matrix(
        sp.hstack([sp.csr_matrix((first.shape[0], n_known)), first]), dtype=np.int8
    )
    if after.n_labels > before.n_labels:
        near = ids[:, :NEAREST]
        found = near >= 0
        rows = np.nonzero(found)[0]
        around = sp.csr_matrix((np.ones(len(rows), np.int32), (rows, near[found])), (n_new, n))
        fresh = after.labels[:, before.n_labels :].T.tocsr().astype(np.int32)  # (n_fresh, n)
        others = fresh[:, n_known:] @ around
        others = others - others.multiply(fresh > 0)  # not where the label is carried
        others.eliminate_zeros()
        others.data[:] = -1
        old = sp.csr_matrix((before.n_labels, n), dtype=np.int8)
        nearby = sp.csr_matrix(sp.vstack([old, others]), dtype=np.int8)
        signs = sp.csr_matrix((signs + nearby).sign(), dtype=np.int8)  # -2 where both say -1
    signs.sort_indices()
    return signs


def _worth_it(signs: sp.csr_matrix, labels: sp.csr_matrix, n_known: int) -> sp.csr_matrix:
    """Without the labels of which only a small share of the points is new.

    Trained on with a few new points, which have nothing to set against them, they would get worse.
    """
    all_points = np.bincount(labels.indices, minlength=labels.shape[1])
    new = np.bincount(labels[n_known:].indices, minlength=labels.shape[1])
    kept = (new > 0) & (new >= NEW_SHARE * all_points)
    signs = signs.copy()
    signs.data *= np.repeat(kept, np.diff(signs.indptr))
    signs.eliminate_zeros()
    return signs


def _with_rows(matrix: sp.csr_matrix, height: int) -> sp.csr_matrix:
    """With empty rows at the end."""
    more = np.full(height - matrix.shape[0], matrix.indptr[-1], dtype=matrix.indptr.dtype)
    indptr = np.concatenate([matrix.indptr, more])
    return sp.csr_matrix((matrix.data, matrix.indices, indptr), shape=(height, matrix.shape[1]))
