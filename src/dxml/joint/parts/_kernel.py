"""Kernel ridge regression over all labels: for small data, and where it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays, real, whole
from dxml._core.precision import Precision, pack, unpack
from dxml._core.random import spawn
from dxml._core.scaling import is_dense
from dxml._learners.kernel_choice import Fold, choose_kernel
from dxml._learners.kernel_ridge import (
    KERNELS,
    Kernel,
    KernelVote,
    extend_kernel,
    fit_kernel,
    rows_of_scores,
    second_kernel,
)
from dxml.joint._mixture import Opinion
from dxml.joint._points import Known
from dxml.joint._sizes import (
    CPU_KERNEL_POINTS,
    EVERY_LABEL_PAIRS,
    KERNEL_ALONE_POINTS,
    KERNEL_PAIRS,
    TREE_FEATURES,
    kernel_bytes,
)
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
    Trial,
)

__all__ = ["KernelPart", "read_kernel"]

Floats = npt.NDArray[np.float32]
VOTES: dict[Precision, Precision] = {"float32": "float32", "float16": "float16", "int8": "float16"}
"""Precision of the votes in a model of each precision: in 8 bits they lose a point of P@3."""
MOST_MOVED = 0.05  # sum of a label's rounding errors: what they move its scores by, at most
CHOICE_POINTS = {"cpu": 5_000, "cuda": 10_000}  # on which the kernel is chosen, at most
FEW_CHOICE_POINTS = 2_000  # the same, beside shortlists
SECOND_POINTS = 8_000  # up to which there may be a second regression, over the scores
SECOND_HELD = 1_000  # points held out to choose it by, at least: on fewer its gain is chance
NEAREST = 50  # known points around a new one, whose votes it may change
INVOLVED = 1000  # known points whose votes may change in one lesson
PROPOSED_FROM = 1 << 22  # scores that the labels of the highest are looked for in, at a time


@dataclass(frozen=True, eq=False)
class KernelPart(Part):
    """Scores of every label by `dxml._learners.kernel_ridge`."""

    name: ClassVar[str] = "kernel"
    opinion: ClassVar[Opinion] = Opinion(default_weight=8.0, is_share=True)

    vote: KernelVote

    @classmethod
    def plan(
        cls, shape: Shape, options: Options, others: Mapping[str, Settings]
    ) -> Settings | None:
        """For small data, and beside a shortlist for long texts on a CPU that are not much more.

        Those have no trees, and rank worse by a linear head alone. Where it is asked for: wherever
        memory allows.
        """
        n, pairs = shape.n_samples, shape.n_samples * shape.n_labels
        if options.kernel is not None:
            fits = kernel_bytes(n, shape.n_labels) <= shape.memory
            return {} if options.kernel and fits else None
        affordable = 8 * n * n <= shape.memory and (shape.device != "cpu" or n <= CPU_KERNEL_POINTS)
        long = shape.device == "cpu" and not shape.dense and shape.per_point > TREE_FEATURES
        beside = long and n < KERNEL_ALONE_POINTS and EVERY_LABEL_PAIRS < pairs <= KERNEL_PAIRS
        return {} if affordable and (shape.every_label or beside) else None

    @classmethod
    def outside(cls, shape: Shape, options: Options, settings: Settings) -> float:
        """The kernel and its factor, the votes, and what solving takes."""
        return float(kernel_bytes(shape.n_samples, shape.n_labels))

    @classmethod
    def fit(cls, task: Task, settings: Settings, start: Part | None = None) -> Self:
        import torch

        kernel = Kernel(**settings) if settings else KERNELS[0]
        with task.progress.stage(f"kernel votes{task.note}"):
            return cls(fit_kernel(*task.learnt, kernel, torch.device(task.options.device)))

    @classmethod
    def choose(cls, trials: Sequence[Trial], settings: Settings) -> tuple[Settings, Sequence[Part]]:
        """The kernel that ranks held-out points best by itself, on some of the other points.

        Beside shortlists, where there are many labels, on fewer, and without their relations.
        """
        import torch

        options, shortlists = trials[0].task.options, trials[0].near is not None
        device, most = torch.device(options.device), CHOICE_POINTS[options.device]
        most = FEW_CHOICE_POINTS if shortlists else most
        rng = spawn(options.random_state, "kernel")["kernel"]
        folds = []
        for trial in trials:
            X, Y = trial.task.learnt
            n = X.shape[0]
            rows = slice(n) if n <= most else np.sort(rng.permutation(n)[:most])
            folds.append(Fold(X[rows], Y[rows], trial.X, trial.Y))
        votes = []
        n, n_held = trials[0].task.data.X.shape[0], sum(trial.X.shape[0] for trial in trials)
        best = choose_kernel(
            folds,
            device,
            related=not shortlists,
            second=n <= SECOND_POINTS and n_held >= SECOND_HELD,
            progress=trials[0].task.progress,
        )
        for trial, found in zip(trials, best, strict=True):
            X, Y = trial.task.learnt
            whole = found.votes.shape[0] == X.shape[0]
            votes.append(found if whole else fit_kernel(X, Y, found.kernel, device))
        return asdict(votes[0].kernel), [cls(vote) for vote in votes]

    @property
    def settings(self) -> Settings:
        return asdict(self.vote.kernel)

    def scores(self, query: Query) -> Floats:
        if query.every_label:
            return self._every(query).ravel()
        every = query.computed.pop(self.name, None)
        every = self._every(query) if every is None else every
        rows = np.repeat(np.arange(len(every)), np.diff(query.pairs.indptr))
        return np.asarray(every[rows, query.pairs.indices])

    def propose(self, query: Query, size: int) -> npt.NDArray[np.int32]:
        """The labels of the highest scores, which are then known for all labels."""
        every = query.computed[self.name] = self._every(query)
        n, n_labels = every.shape
        if size >= n_labels:
            return np.tile(np.arange(n_labels, dtype=np.int32), (n, 1))
        best, step = np.empty((n, size), dtype=np.int32), max(1, PROPOSED_FROM // n_labels)
        for start in range(0, n, step):
            some = -every[start : start + step]
            best[start : start + step] = np.argpartition(some, size, axis=1)[:, :size]
        return best

    def _every(self, query: Query) -> Floats:
        """The scores of all labels, (n_samples, n_labels)."""
        if query.device == "cpu":
            return self.vote.steady_scores(query.X)
        import torch

        return self.vote.scores(query.X, torch.device(query.device))

    def add(self, lesson: Lesson) -> KernelPart:
        """Votes of the new points and of up to 1,000 known ones are solved for; others stay."""
        import torch

        options = lesson.options
        known = lesson.after.labels[: lesson.before.n_points]
        grown = extend_kernel(
            self.vote,
            known,
            lesson.X,
            lesson.Y,
            _involved(lesson),
            torch.device(options.device),
        )
        return KernelPart(replace(grown, votes=_rounded(grown.votes, options.precision)))

    def drop(self, kept: npt.NDArray[np.bool_], after: Known) -> KernelPart:
        return KernelPart(_only(self.vote, kept))

    def widen(self, after: Known) -> KernelPart:
        return KernelPart(replace(self.vote, points=_in_form(after.points)))

    def unlabel(self, row: int, label: int, after: Known, options: Options) -> KernelPart:
        """One step of coordinate descent on the point's vote for the label: k(x, x) is 1."""
        return KernelPart(_unlabelled(self.vote, row, label, options.precision))

    def regroup(self, change: Regrouping) -> KernelPart:
        """Votes for labels that become one are added up: the regression is linear in the labels.

        A point that carried several of them gets one step of coordinate descent, as in `unlabel`.
        """
        vote, labels = self.vote, change.before.labels
        votes = _merged_votes(vote, labels, change.main, change.merged)
        relations = vote.relations
        if relations is not None:
            related = change.main[change.main < len(relations)]
            relations = relations[np.ix_(related, related)] if len(related) else None
        kernel = vote.kernel if relations is not None else replace(vote.kernel, pull=0.0)
        votes = _rounded(np.ascontiguousarray(votes), change.options.precision)
        second = None if vote.second is None else _regrouped(vote.second, change)
        if second is None:
            kernel = replace(kernel, second=0.0)
        return KernelPart(
            replace(vote, votes=votes, kernel=kernel, relations=relations, second=second)
        )

    def train_on(self, task: Task, planned: Settings | None) -> KernelPart:
        """Solved for all points with the same kernel, if a model of so many would have one."""
        return self if planned is None else type(self).fit(task, self.settings)

    def state(self, precision: Precision) -> tuple[dict[str, Any], Named]:
        vote, config = self.vote, dict(self.settings)
        arrays = _packed("kernel.votes", vote.votes, precision)
        if vote.relations is not None:
            arrays |= pack("kernel.relations", vote.relations, VOTES[precision])
            config["n_related"] = len(vote.relations)  # labels learnt later are related to none
        if vote.second is not None:
            assert isinstance(vote.second.points, np.ndarray)
            config["second_points"], config["second_labels"] = vote.second.votes.shape
            arrays |= pack("kernel.second.rows", vote.second.points, VOTES[precision])
            arrays |= _packed("kernel.second.votes", vote.second.votes, precision)
        return config, arrays

    @classmethod
    def restore(cls, config: Settings, arrays: Arrays, known: Known) -> Self:
        kernel = read_kernel(config)
        votes = arrays.packed("kernel.votes", known.n_points, known.n_labels)
        relations = None
        if kernel.pull:
            n_related = whole(
                {"n_related": known.n_labels, **config}, "n_related", 1, known.n_labels
            )
            related = arrays.packed("kernel.relations", n_related, n_related)
            relations = unpack("kernel.relations", related)
        points, second = _in_form(known.points), None
        if kernel.second:
            n = whole(config, "second_points", 0, known.n_points)
            n_labels = whole(config, "second_labels", 1, known.n_labels)
            rows, own = (
                unpack(name, arrays.packed(name, n, n_labels))
                for name in ("kernel.second.rows", "kernel.second.votes")
            )
            second = KernelVote(rows, own, second_kernel(kernel.second))
        return cls(KernelVote(points, unpack("kernel.votes", votes), kernel, relations, second))


def read_kernel(config: Settings) -> Kernel:
    """The kernel of a part's settings."""
    if config["kind"] not in ("gauss", "laplace"):
        raise ValueError(f"there is no kernel {config['kind']!r:.40}")
    numbers = {name: real(config, name) for name in ("gamma", "ridge", "pull")}
    return Kernel(config["kind"], **numbers, second=real({"second": 0.0, **config}, "second"))


def _in_form(points: sp.csr_matrix) -> sp.csr_matrix | Floats:
    """Dense points as an array."""
    return points.toarray() if is_dense(points) else points


def _only(vote: KernelVote, kept: npt.NDArray[np.bool_]) -> KernelVote:
    """Without the points that are not kept; the second regression has the first of them, if any.

    The sum of a label's votes stays. Votes for it and against it nearly cancel out, so that without
    a vote for it alone its scores would fall at every point there is.
    """
    second, kernel = vote.second, vote.kernel
    if second is not None:
        own = kept[: len(second.votes)]
        second = _only(second, own) if own.any() else None
    if second is None:
        kernel = replace(kernel, second=0.0)
    votes = vote.votes[kept]
    votes = votes + vote.votes[~kept].sum(axis=0) / np.float32(max(len(votes), 1))
    if _are_rounded(vote.votes):
        votes = _rounded(votes, "float16")
    return replace(vote, points=vote.points[kept], votes=votes, kernel=kernel, second=second)


def _unlabelled(vote: KernelVote, row: int, label: int, precision: Precision) -> KernelVote:
    """With one step less of the point's vote for the label, also in the second regression.

    A point's leave-one-out scores do not depend on its own labels, their residuals do.
    """
    votes, second = np.array(vote.votes), vote.second
    votes[row, label] -= 1 / (1 + vote.kernel.ridge)
    votes[[row]] = _rounded(votes[[row]], precision)
    if second is not None and row < len(second.votes) and label < second.votes.shape[1]:
        second = _unlabelled(second, row, label, precision)
    return replace(vote, votes=votes, second=second)


def _merged_votes(
    vote: KernelVote,
    labels: sp.csr_matrix,
    main: npt.NDArray[np.int64],
    merged: Mapping[int, npt.NDArray[np.int64]],
) -> Floats:
    votes = vote.votes[:, main]
    for new, old in merged.items():
        votes[:, new] = vote.votes[:, old].sum(axis=1)
        again = np.maximum(np.asarray(labels[:, old].sum(axis=1)).ravel() - 1.0, 0)
        votes[:, new] -= again / (1 + vote.kernel.ridge)
    return votes


def _regrouped(second: KernelVote, change: Regrouping) -> KernelVote | None:
    """The second regression over the labels that it had; squares of a row's numbers are scores.

    None where none of its labels is left.
    """
    n, n_labels = second.votes.shape
    main = change.main[change.main < n_labels]
    if not len(main):
        return None
    merged = {new: old[old < n_labels] for new, old in change.merged.items() if new < len(main)}
    votes = _merged_votes(second, change.before.labels[:n], main, merged)
    shares = np.square(second.points)
    sums = shares[:, main]
    for new, old in merged.items():
        sums[:, new] = shares[:, old].sum(axis=1)
    precision = change.options.precision
    rows = unpack("rows", pack("rows", rows_of_scores(sums), VOTES[precision]))
    votes = _rounded(np.ascontiguousarray(votes), precision)
    return replace(second, points=rows, votes=votes)


def _packed(name: str, votes: Floats, precision: Precision) -> Named:
    """Votes as they are saved: in 32 bits where rounding errors would add up.

    Points that are the same and carry other labels have large votes that cancel out; those of one
    sign are all rounded the same way.
    """
    packed = pack(name, votes, VOTES[precision])
    moved = (unpack(name, packed) - votes).sum(axis=0, dtype=np.float64)
    return packed if np.abs(moved).max(initial=0) <= MOST_MOVED else {name: votes}


def _rounded(votes: Floats, precision: Precision) -> Floats:
    """As they will be read from a saved model."""
    return unpack("votes", _packed("votes", votes, precision))


def _are_rounded(votes: Floats) -> bool:
    """Whether votes are as a folder of 16 bits has them, which keeps some in 32."""
    if np.array_equal(votes, pack("votes", votes, "float16")["votes"]):
        return True
    return _packed("votes", votes, "float16")["votes"] is votes


def _involved(lesson: Lesson) -> npt.NDArray[np.int64]:
    """Known points whose votes the new ones may change: their nearest ones, then random ones."""
    before, options = lesson.before, lesson.options
    ids = before.search(lesson.X, NEAREST, options.device).ids
    found = np.bincount(ids[ids >= 0], minlength=before.n_points)
    near = np.argsort(-found, kind="stable")[: min(INVOLVED // 2, int((found > 0).sum()))]
    others = np.random.default_rng(options.seed("teaching")).permutation(before.n_points)
    others = others[~np.isin(others, near)][: INVOLVED - len(near)]
    return np.sort(np.concatenate([near, others]))
