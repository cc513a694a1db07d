"""Data → the fitted parts of a joint model and how they are weighed.

The parts are fitted without the held-out points, weighed on those, and then fitted with all points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from dxml._progress import Progress
from dxml._random import spawn, spawn_seed
from dxml.catching_up import warm_settings
from dxml.joint_parts import Parts, Plan, vote_ranking, without_self
from dxml.kernel import KERNELS, KernelVote, choose_kernel, fit_kernel
from dxml.linear import fit_linear, label_tasks
from dxml.metrics import precision_at_k
from dxml.mixture import Mixture, fit_mixture
from dxml.neighbours import rare_features
from dxml.wide import WideHead, WideSettings, fit_wide

__all__ = ["Fitted", "Fitter", "hold_out"]

NEIGHBORS = (10, 20, 50, 100)
POWERS = (2.0, 4.0, 8.0, 16.0, 32.0)
"""Numbers of voters, and powers of the cosine their votes weigh, tried on held-out points."""
MOST_HELD = 2_000  # held-out points; more do not change the choice
LEAST_POINTS = 20  # with fewer, nothing is held out and the defaults hold
SEARCHED = 4_000  # points with a feature, from which on it is too common to search by
FEW_POINTS = 20_000  # below which a wide layer takes small steps; so it does for dense features
KERNEL_CHOICE = 5_000  # points on which a CPU chooses the kernel

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Near = tuple[Ids, Floats]


def hold_out(n: int, fraction: float, random_state: int | None) -> npt.NDArray[np.bool_]:
    """Which of n points are held out."""
    held = np.zeros(n, dtype=bool)
    if n >= LEAST_POINTS:
        size = min(MOST_HELD, max(1, int(n * fraction)))
        held[spawn(random_state, "validation")["validation"].permutation(n)[:size]] = True
    return held


class Fitted(NamedTuple):
    """The parts of all points, how they are weighed, and the wide layer's loss by epoch."""

    parts: Parts
    mixture: Mixture
    history: list[float]


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
    C: float
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
        settings: dict[str, Any] = {
            "C": self.C,
            "passes": self.passes,
            "prune": self.prune,
            "seed": spawn_seed(self.random_state, "linear"),
            "progress": progress,
        }
        mixture = None
        if held.any():
            trial = "linear head (validation)"
            parts.linear = fit_linear(X, task, rows=~held, stage=trial, **settings)
            parts.wide, _ = self.fit_wide(X[~held], Y[~held], progress, " (validation)")
            seen = near[0][held, : parts.n_candidates], near[1][held, : parts.n_candidates]
            mixture = self._weigh(parts, X[held], Y[held], seen)
        parts.linear = fit_linear(X, task, **settings)
        parts.wide, history = self.fit_wide(X, Y, progress)
        mixture = mixture or self._weigh(parts, X[:0], Y[:0], _nobody(near))
        return Fitted(parts, mixture, history)

    def _fit_every_label(
        self, X: sp.csr_matrix, Y: sp.csr_matrix, held: npt.NDArray[np.bool_], progress: Progress
    ) -> Fitted:
        """A kernel vote and a wide layer over all labels, and the vote in that layer's space."""
        parts, mixture, kernel = self._empty_parts(X, Y), None, KERNELS[0]
        if held.any():
            trial = self._empty_parts(X[~held], Y[~held])
            trial.wide, _ = self.fit_wide(X[~held], Y[~held], progress, " (validation)")
            if self.plan.kernel:
                trial.kernel = self._choose_kernel(trial, X[held], Y[held], progress)
                kernel = trial.kernel.kernel
            near = trial.search(X[held], max(NEIGHBORS), self.device)
            mixture = self._weigh(trial, X[held], Y[held], near)
            parts.n_neighbors, parts.power = trial.n_neighbors, trial.power
        parts.wide, history = self.fit_wide(X, Y, progress)
        if self.plan.kernel:
            with progress.stage("kernel votes"):
                parts.kernel = fit_kernel(X, Y, kernel, torch.device(self.device))
        if mixture is None:
            near = parts.search(X[:1], 1, self.device)
            mixture = self._weigh(parts, X[:0], Y[:0], _nobody(near))
        return Fitted(parts, mixture, history)

    def _choose_kernel(
        self, trial: Parts, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress
    ) -> KernelVote:
        """The votes of the trial's points, with the kernel that held-out points like best."""
        points, labels, place = trial.points, trial.labels, torch.device(self.device)
        if self.device != "cpu" or points.shape[0] <= KERNEL_CHOICE:
            return choose_kernel(points, labels, X, Y, place, progress=progress)
        rng = spawn(self.random_state, "kernel")["kernel"]
        rows = np.sort(rng.permutation(points.shape[0])[:KERNEL_CHOICE])
        few = choose_kernel(points[rows], labels[rows], X, Y, place, progress=progress)
        return fit_kernel(points, labels, few.kernel, place)

    def _weigh(self, parts: Parts, X: sp.csr_matrix, Y: sp.csr_matrix, near: Near) -> Mixture:
        """Choose the voters and their weights, then the mixture, on held-out points."""
        if X.shape[0]:
            parts.n_neighbors, parts.power = _choose_vote(parts, near, Y)
        pairs = parts.candidates(*near)
        return fit_mixture(parts.scores(X, *near, pairs, self.device), pairs, Y)


def _nobody(near: Near) -> Near:
    return near[0][:0], near[1][:0]


def _choose_vote(parts: Parts, near: Near, truth: sp.csr_matrix) -> tuple[int, float]:
    """Voters and power with the highest mean of P@1, P@3 and P@5 on held-out points."""
    depth = min(5, truth.shape[1])
    places = [i for i in (0, 2, 4) if i < depth]
    best, chosen = -1.0, (NEIGHBORS[0], POWERS[0])
    for size in sorted({min(size, near[0].shape[1]) for size in NEIGHBORS}):
        for power in POWERS:
            ranking = vote_ranking(parts, near[0][:, :size], near[1][:, :size], power, depth)
            quality = float(precision_at_k(truth, ranking, depth)[places].mean())
            if quality > best:
                best, chosen = quality, (size, power)
    return chosen
