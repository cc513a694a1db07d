"""Data → the fitted parts of a joint model and how they are weighed.

The parts are fitted without the held-out points, weighed on those, and then fitted with all points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from dxml._core.random import spawn, spawn_seed
from dxml.joint.catching_up import warm_settings
from dxml.joint.mixture import Mixture
from dxml.joint.parts import FEW_POINTS, Parts, Plan, without_self
from dxml.joint.weighing import NEIGHBORS, HeldOut, Weighing, climb, default_mixture
from dxml.learners.kernel_ridge import KERNELS, Fold, choose_kernel, fit_kernel
from dxml.learners.linear_head import LinearHead, Task, all_tasks, fit_linear, label_tasks
from dxml.learners.wide_layer import WideHead, WideSettings, fit_wide
from dxml.neighbors.cosine import rare_features
from dxml.progress import Progress

__all__ = ["DEFAULT_C", "MOST_FOLDS", "Fitted", "Fitter", "hold_out"]

MOST_HELD = 2_000  # held-out points; more do not change the choice
MOST_FOLDS = 5
LEAST_POINTS = 20  # with fewer, nothing is held out and the defaults hold
SEARCHED = 4_000  # points with a feature, from which on it is too common to search by
KERNEL_CHOICE = {"cpu": 5_000, "cuda": 10_000}  # points on which the kernel is chosen, at most
DEFAULT_C = 1.0
STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # of the linear head's loss, C, to be tried
FIRST_TRIED = (2, 3)  # of those
CLIMBED = 0.01  # of mean precision, that another C must gain for a further one to be tried
EARNED = 0.003  # of mean precision, that a linear head must add to a kernel or wide layer

Ids = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


def hold_out(
    n: int, fraction: float, random_state: int | None, most_folds: int = MOST_FOLDS
) -> list[Mask]:
    """Which of n points are held out, by fold.

    One fold where the fraction makes `MOST_HELD` points, more where it makes fewer, and none where
    there are too few points.
    """
    if n < LEAST_POINTS:
        return []
    size = min(MOST_HELD, max(1, int(n * fraction)))
    order = spawn(random_state, "validation")["validation"].permutation(n)
    starts = range(0, min(n, MOST_HELD, most_folds * size) - size + 1, size)
    return [np.isin(np.arange(n), order[start : start + size]) for start in starts]


class Fitted(NamedTuple):
    """The parts of all points, how they are weighed, and the wide layer's loss by epoch.

    C is that of the linear head.
    """

    parts: Parts
    mixture: Mixture
    history: list[float]
    C: float = DEFAULT_C


@dataclass(frozen=True)
class Fitter:
    """How parts are fitted.

    Attributes
    ----------
    plan : Plan
    place : int32 array
        From `dxml.topk.tie_order`.
    dense : bool
        Whether features are standardised columns rather than rows of length 1.
    device : "cpu" or "cuda"

    The others are parameters of `dxml.joint.Joint`.
    """

    plan: Plan
    place: Ids
    dense: bool
    batch_size: int | None
    n_candidates: int | None
    n_negatives: int
    C: float | None
    passes: int
    prune: float
    random_state: int | None
    device: str

    def fit(
        self, X: sp.csr_matrix, Y: sp.csr_matrix, folds: Sequence[Mask], progress: Progress
    ) -> Fitted:
        """Fit the plan's parts to scaled rows, and weigh them on those that a fold holds out."""
        every = self.plan.every_label
        fit_parts = self._fit_every_label if every else self._fit_shortlisted
        return fit_parts(X, Y, folds, progress)

    def fit_wide(
        self,
        X: sp.csr_matrix,
        Y: sp.csr_matrix,
        progress: Progress,
        note: str = "",
        start: WideHead | None = None,
    ) -> tuple[WideHead | None, list[float]]:
        """The wide layer, where the plan has one, and its loss by epoch; `start`: to go on from."""
        if not self.plan.width:
            return None, []
        batch = self.batch_size or (256 if X.shape[0] < FEW_POINTS or self.dense else 2048)
        settings = WideSettings(
            width=self.plan.width,
            learners=self.plan.learners,
            epochs=self.plan.epochs,
            batch_size=batch,
            learning_rate=5e-3 if batch < 2048 else 3e-3,
            feature_dropout=0.0 if self.dense else 0.3,
            spread=0.3 if self.dense else 0.1,
        )
        return fit_wide(
            X,
            Y,
            settings if start is None else warm_settings(settings),
            seed=spawn_seed(self.random_state, "wide"),
            device=torch.device(self.device),
            start=start,
            stage=f"wide layer{note}",
            progress=progress,
        )

    def _empty_parts(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> Parts:
        common = min(0.1, SEARCHED / max(X.shape[0], 1))
        return Parts(
            self.plan,
            X,
            Y,
            self.place,
            rare_features(X, common),
            n_candidates=self.n_candidates or (200 if self.plan.width else 100),
        )

    def _fit_shortlisted(
        self, X: sp.csr_matrix, Y: sp.csr_matrix, folds: Sequence[Mask], progress: Progress
    ) -> Fitted:
        """Neighbours → shortlists → heads that tell the labels on a shortlist apart."""
        parts = self._empty_parts(X, Y)
        with progress.stage("neighbours"):
            wanted = max(parts.n_candidates, self.n_negatives) + 1
            near = without_self(*parts.search(X, wanted, self.device))
        task = label_tasks(Y, parts.shortlist(*near, self.n_negatives))
        mixture, C = None, self.C
        if folds:
            held_out = []
            for held in folds:
                wide, _ = self.fit_wide(X[~held], Y[~held], progress, " (validation)")
                seen = near[0][held, : parts.n_candidates], near[1][held, : parts.n_candidates]
                trial = replace(parts, wide=wide)
                held_out.append(HeldOut(trial, X[held], Y[held], seen, Y[~held]))
            mixture, C = self._choose_head(held_out, task, X, folds, progress)
            parts.n_neighbors, parts.power = held_out[0].parts.n_neighbors, held_out[0].parts.power
        parts.linear = self._fit_linear(X, task, C or DEFAULT_C, progress)
        parts.wide, history = self.fit_wide(X, Y, progress)
        return self._fitted(parts, mixture, history, C)

    def _fit_linear(
        self,
        X: sp.csr_matrix,
        task: Task,
        C: float,
        progress: Progress,
        rows: Mask | None = None,
    ) -> LinearHead:
        return fit_linear(
            X,
            task,
            C=C,
            passes=self.passes if rows is None else -(-self.passes // 2),
            prune=self.prune,
            rows=rows,
            seed=spawn_seed(self.random_state, "linear"),
            stage="linear head" if rows is None else f"linear head, C = {C:g} (validation)",
            progress=progress,
        )

    def _choose_head(
        self,
        held_out: Sequence[HeldOut],
        task: Task | None,
        X: sp.csr_matrix,
        folds: Sequence[Mask],
        progress: Progress,
    ) -> tuple[Mixture, float | None]:
        """The mixture with the linear heads of the C that ranks held-out points best, and that C.

        None, and the mixture without one, where the other parts of every label do as well alone, or
        where there is no task.
        """
        weighing = Weighing(held_out, self.device)
        if task is None:
            return weighing.mixture()[1], None

        @cache
        def attempt(C: float) -> tuple[float, Mixture]:
            heads = []
            for held in folds:  # a fold must not go on from where another's held-out points led
                own = task if len(folds) == 1 else Task(task.points, np.zeros_like(task.duals))
                heads.append(self._fit_linear(X, own, C, progress, ~held))
            return weighing.mixture(heads)

        if self.C is not None:
            return attempt(self.C)[1], self.C
        if not self.plan.every_label or not (self.plan.kernel or self.plan.width):
            _, mixture, C = climb(STRENGTHS, FIRST_TRIED, CLIMBED, attempt)
            return mixture, C
        alone, without = weighing.mixture()
        if attempt(STRENGTHS[FIRST_TRIED[0]])[0] < alone + EARNED:
            return without, None
        _, mixture, C = climb(STRENGTHS, FIRST_TRIED, CLIMBED, attempt)
        return mixture, C

    def _fit_every_label(
        self, X: sp.csr_matrix, Y: sp.csr_matrix, folds: Sequence[Mask], progress: Progress
    ) -> Fitted:
        """All parts over all labels, and the vote in the wide layer's space."""
        parts, mixture, kernel = self._empty_parts(X, Y), None, KERNELS[0]
        task, C = all_tasks(Y) if self.plan.linear else None, self.C
        if folds:
            held_out = self._held_out(X, Y, folds, progress)
            mixture, C = self._choose_head(held_out, task, X, folds, progress)
            task = None if C is None else task
            trial = held_out[0].parts
            parts.n_neighbors, parts.power = trial.n_neighbors, trial.power
            kernel = trial.kernel.kernel if trial.kernel else kernel
        parts.wide, history = self.fit_wide(X, Y, progress)
        if self.plan.kernel:
            with progress.stage("kernel votes"):
                parts.kernel = fit_kernel(X, Y, kernel, torch.device(self.device))
        if task is None:
            parts.plan = replace(self.plan, linear=False)
        else:
            parts.linear = self._fit_linear(X, task, C or DEFAULT_C, progress)
        return self._fitted(parts, mixture, history, C)

    def _held_out(
        self, X: sp.csr_matrix, Y: sp.csr_matrix, folds: Sequence[Mask], progress: Progress
    ) -> list[HeldOut]:
        """Kernel and wide layer of each fold, and the neighbours of its held-out points."""
        trials = [self._empty_parts(X[~held], Y[~held]) for held in folds]
        for trial in trials:
            trial.wide, _ = self.fit_wide(trial.points, trial.labels, progress, " (validation)")
        if self.plan.kernel:
            self._choose_kernel(trials, [(X[held], Y[held]) for held in folds], progress)
        return [
            HeldOut(
                trial,
                X[held],
                Y[held],
                trial.search(X[held], max(NEIGHBORS), self.device),
                trial.labels,
            )
            for trial, held in zip(trials, folds, strict=True)
        ]

    def _fitted(
        self, parts: Parts, mixture: Mixture | None, history: list[float], C: float | None
    ) -> Fitted:
        """With default weights where no points were held out."""
        if mixture is None:
            mixture = default_mixture(parts, self.device)
        return Fitted(parts, mixture, history, C or DEFAULT_C)

    def _choose_kernel(
        self,
        trials: Sequence[Parts],
        held: Sequence[tuple[sp.csr_matrix, sp.csr_matrix]],
        progress: Progress,
    ) -> None:
        """Give each fold's trial its votes, with the kernel that held-out points like best."""
        place, most = torch.device(self.device), KERNEL_CHOICE[self.device]
        rng = spawn(self.random_state, "kernel")["kernel"]
        chosen_on = []
        for trial in trials:
            n = trial.points.shape[0]
            chosen_on.append(slice(n) if n <= most else np.sort(rng.permutation(n)[:most]))
        folds = [
            Fold(trial.points[rows], trial.labels[rows], *points)
            for trial, rows, points in zip(trials, chosen_on, held, strict=True)
        ]
        for trial, found in zip(
            trials, choose_kernel(folds, place, progress=progress), strict=True
        ):
            whole = found.votes.shape[0] == trial.points.shape[0]
            trial.kernel = (
                found if whole else fit_kernel(trial.points, trial.labels, found.kernel, place)
            )
