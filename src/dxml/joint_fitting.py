"""Data → the fitted parts of a joint model and how they are weighed.

The parts are fitted without the held-out points, weighed on those, and then fitted with all points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from dxml._progress import Progress
from dxml._random import spawn, spawn_seed
from dxml.catching_up import warm_settings
from dxml.joint_parts import FEW_POINTS, Parts, Plan, without_self
from dxml.joint_weighing import NEIGHBORS, Weighing, climb
from dxml.kernel import KERNELS, KernelVote, choose_kernel, fit_kernel
from dxml.linear import LinearHead, Task, all_tasks, fit_linear, label_tasks
from dxml.mixture import Mixture
from dxml.neighbours import rare_features
from dxml.wide import WideHead, WideSettings, fit_wide

__all__ = ["DEFAULT_C", "Fitted", "Fitter", "hold_out"]

MOST_HELD = 2_000  # held-out points; more do not change the choice
LEAST_POINTS = 20  # with fewer, nothing is held out and the defaults hold
SEARCHED = 4_000  # points with a feature, from which on it is too common to search by
KERNEL_CHOICE = {"cpu": 5_000, "cuda": 10_000}  # points on which the kernel is chosen, at most
DEFAULT_C = 1.0
STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # of the linear head's loss, C, to be tried
FIRST_TRIED = (2, 3)  # of those
CLIMBED = 0.01  # of mean precision, that another C must gain for a further one to be tried
EARNED = 0.003  # of mean precision, that a linear head must add to a kernel or wide layer

Ids = npt.NDArray[np.int32]


def hold_out(n: int, fraction: float, random_state: int | None) -> npt.NDArray[np.bool_]:
    """Which of n points are held out."""
    held = np.zeros(n, dtype=bool)
    if n >= LEAST_POINTS:
        size = min(MOST_HELD, max(1, int(n * fraction)))
        held[spawn(random_state, "validation")["validation"].permutation(n)[:size]] = True
    return held


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
        self, X: sp.csr_matrix, Y: sp.csr_matrix, held: npt.NDArray[np.bool_], progress: Progress
    ) -> Fitted:
        """Fit the plan's parts to scaled rows, and weigh them on the held-out ones."""
        every = self.plan.every_label
        fit_parts = self._fit_every_label if every else self._fit_shortlisted
        return fit_parts(X, Y, held, progress)

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
        self, X: sp.csr_matrix, Y: sp.csr_matrix, held: npt.NDArray[np.bool_], progress: Progress
    ) -> Fitted:
        """Neighbours → shortlists → heads that tell the labels on a shortlist apart."""
        parts = self._empty_parts(X, Y)
        with progress.stage("neighbours"):
            wanted = max(parts.n_candidates, self.n_negatives) + 1
            near = without_self(*parts.search(X, wanted, self.device))
        task = label_tasks(Y, parts.shortlist(*near, self.n_negatives))
        mixture, C = None, self.C
        if held.any():
            parts.wide, _ = self.fit_wide(X[~held], Y[~held], progress, " (validation)")
            seen = near[0][held, : parts.n_candidates], near[1][held, : parts.n_candidates]
            weighing = Weighing(parts, X[held], Y[held], seen, self.device)
            mixture, C = self._choose_head(weighing, task, X, held, progress)
        parts.linear = self._fit_linear(X, task, C or DEFAULT_C, progress)
        parts.wide, history = self.fit_wide(X, Y, progress)
        return self._fitted(parts, mixture, history, C)

    def _fit_linear(
        self,
        X: sp.csr_matrix,
        task: Task,
        C: float,
        progress: Progress,
        rows: npt.NDArray[np.bool_] | None = None,
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
        weighing: Weighing,
        task: Task,
        X: sp.csr_matrix,
        held: npt.NDArray[np.bool_],
        progress: Progress,
    ) -> tuple[Mixture, float | None]:
        """The mixture with the linear head of the C that ranks held-out points best, and that C.

        None, and the mixture without one, where the other parts of every label do as well alone.
        """

        @cache
        def attempt(C: float) -> tuple[float, Mixture]:
            return weighing.mixture(self._fit_linear(X, task, C, progress, ~held))

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
        self, X: sp.csr_matrix, Y: sp.csr_matrix, held: npt.NDArray[np.bool_], progress: Progress
    ) -> Fitted:
        """All parts over all labels, and the vote in the wide layer's space."""
        parts, mixture, kernel = self._empty_parts(X, Y), None, KERNELS[0]
        task, C = all_tasks(Y) if self.plan.linear else None, self.C
        if held.any():
            trial = self._empty_parts(X[~held], Y[~held])
            trial.wide, _ = self.fit_wide(X[~held], Y[~held], progress, " (validation)")
            if self.plan.kernel:
                trial.kernel = self._choose_kernel(trial, X[held], Y[held], progress)
                kernel = trial.kernel.kernel
            near = trial.search(X[held], max(NEIGHBORS), self.device)
            weighing = Weighing(trial, X[held], Y[held], near, self.device)
            if task is None:
                _, mixture = weighing.mixture()
            else:
                mixture, C = self._choose_head(weighing, task, X, held, progress)
                task = None if C is None else task
            parts.n_neighbors, parts.power = trial.n_neighbors, trial.power
        parts.wide, history = self.fit_wide(X, Y, progress)
        if self.plan.kernel:
            with progress.stage("kernel votes"):
                parts.kernel = fit_kernel(X, Y, kernel, torch.device(self.device))
        if task is None:
            parts.plan = replace(self.plan, linear=False)
        else:
            parts.linear = self._fit_linear(X, task, C or DEFAULT_C, progress)
        return self._fitted(parts, mixture, history, C)

    def _fitted(
        self, parts: Parts, mixture: Mixture | None, history: list[float], C: float | None
    ) -> Fitted:
        """With default weights where no points were held out."""
        if mixture is None:
            ids, cosines = parts.search(parts.points[:1], 1, self.device)
            nothing = parts.points[:0], parts.labels[:0], (ids[:0], cosines[:0])
            _, mixture = Weighing(parts, *nothing, self.device).mixture()
        return Fitted(parts, mixture, history, C or DEFAULT_C)

    def _choose_kernel(
        self, trial: Parts, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress
    ) -> KernelVote:
        """The votes of the trial's points, with the kernel that held-out points like best."""
        points, labels, place = trial.points, trial.labels, torch.device(self.device)
        most = KERNEL_CHOICE[self.device]
        if points.shape[0] <= most:
            return choose_kernel(points, labels, X, Y, place, progress=progress)
        rng = spawn(self.random_state, "kernel")["kernel"]
        rows = np.sort(rng.permutation(points.shape[0])[:most])
        few = choose_kernel(points[rows], labels[rows], X, Y, place, progress=progress)
        return fit_kernel(points, labels, few.kernel, place)
