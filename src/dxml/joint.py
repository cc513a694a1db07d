"""Joint: a head and a vote over the same points, weighed against each other on held-out points.

The method to use by default. Its parts (`joint_parts`) are fitted twice: without a tenth of the
points, to learn how far each part can be trusted (`mixture`), and with all of them.
Scores are calibrated probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from dxml._device import resolve_device
from dxml._params import Range
from dxml._progress import Progress
from dxml._random import spawn, spawn_seed
from dxml._sparse import plain_csr
from dxml.base import Classifier
from dxml.exceptions import ParameterError
from dxml.joint_parts import Parts, Plan, make_plan, vote_ranking, without_self
from dxml.kernel import KERNELS, Kernel, choose_kernel, fit_kernel
from dxml.linear import fit_linear, label_tasks
from dxml.metrics import precision_at_k
from dxml.mixture import Mixture, expected_number, fit_mixture, opinions
from dxml.neighbours import rare_features
from dxml.precision import Precision
from dxml.scaling import FeatureScaler, Scaling, fit_scaler
from dxml.topk import TopK, topk_from_csr
from dxml.wide import WideHead, WideSettings, fit_wide

__all__ = ["Joint"]

NEIGHBORS = (10, 20, 50, 100)
POWERS = (2.0, 4.0, 8.0, 16.0, 32.0)
"""Numbers of voters, and powers of the cosine their votes weigh, tried on held-out points."""
MOST_HELD = 2_000  # held-out points; more do not change the choice
LEAST_POINTS = 20  # with fewer, nothing is held out and the defaults hold
SEARCHED = 4_000  # points with a feature, from which on it is too common to search by
PAIRS = 1 << 22  # pairs scored at a time
KERNEL_CHOICE = 5_000  # points on which a CPU chooses the kernel

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Near = tuple[Ids, Floats]


class Joint(Classifier):
    """Head, kernel or linear classifier, and the vote of the nearest points, in one probability.

    What the parts are depends on the shape of the data and on the device; see `plan_`.

    Attributes
    ----------
    plan_ : Plan
        The parts in use.
    parts_ : Parts
    mixture_ : Mixture
        How the parts are weighed, and the way from a score to a probability.

    Examples
    --------
    >>> from dxml.data import make_planted
    >>> data = make_planted(300, 200, 10, random_state=0)
    >>> model = Joint().fit(data.X, data.Y)
    >>> model.predict_topk(data.X[:2], k=3).indices.shape
    (2, 3)
    """

    method: ClassVar[str] = "joint"
    summary: ClassVar[str] = "head, kernel and nearest points, trained together; calibrated"

    def __init__(
        self,
        *,
        width: Annotated[
            int | None, Range(0), "of the wide layer; 0: none; None: by the data and the device"
        ] = None,
        epochs: Annotated[int, Range(1), "passes of the wide layer over the points"] = 25,
        candidates: Annotated[
            Literal["auto", "all", "nearest"],
            "labels scored: all, or those of the nearest points; auto by the size of the data",
        ] = "auto",
        n_candidates: Annotated[
            int, Range(1), "nearest points whose labels are candidates, and labels scored"
        ] = 100,
        n_negatives: Annotated[
            int, Range(1), "labels near a point that its own are learnt to be told from"
        ] = 200,
        C: Annotated[
            float, Range(0, open_low=True), "weight of the linear head's loss beside ‖w‖²/2"
        ] = 1.0,
        passes: Annotated[int, Range(1), "of the linear head over a label's points"] = 3,
        prune: Annotated[float, Range(0), "linear weights smaller than this are dropped"] = 0.03,
        precision: Annotated[Precision, "of the numbers in the model"] = "float16",
        memory_gb: Annotated[
            float, Range(0, open_low=True), "that training may take beside the data"
        ] = 8.0,
        validation_fraction: Annotated[
            float, Range(0.01, 0.5), "share of the points held out to weigh the parts, up to 2,000"
        ] = 0.2,
        scaling: Annotated[
            Scaling, "of features: rows to length 1, columns standardised, auto by density"
        ] = "auto",
        random_state: Annotated[int | None, Range(0), "seed; None: differs every time"] = 0,
        device: Annotated[
            Literal["auto", "cpu", "cuda"], "where to train and predict; auto: a GPU if present"
        ] = "auto",
    ) -> None:
        self.width = width
        self.epochs = epochs
        self.candidates = candidates
        self.n_candidates = n_candidates
        self.n_negatives = n_negatives
        self.C = C
        self.passes = passes
        self.prune = prune
        self.precision = precision
        self.memory_gb = memory_gb
        self.validation_fraction = validation_fraction
        self.scaling = scaling
        self.random_state = random_state
        self.device = device

    def _fit(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
        self.scaler_ = _row_of_length_one(fit_scaler(X, self.scaling))
        X = self.scaler_.transform(X)
        device = resolve_device(self.device)
        self.plan_ = make_plan(
            X,
            self.n_labels_,
            device=device,
            memory=self.memory_gb * 1e9,
            candidates=self.candidates,
            width=self.width,
            epochs=self.epochs,
        )
        held = self._hold_out(X.shape[0])
        fit_parts = self._fit_every_label if self.plan_.every_label else self._fit_shortlisted
        parts, self.mixture_ = fit_parts(X, Y, held, device, progress)
        self._take(parts.arrays(self.precision))

    def _hold_out(self, n: int) -> npt.NDArray[np.bool_]:
        held = np.zeros(n, dtype=bool)
        if n >= LEAST_POINTS:
            size = min(MOST_HELD, max(1, int(n * self.validation_fraction)))
            held[spawn(self.random_state, "validation")["validation"].permutation(n)[:size]] = True
        return held

    def _empty_parts(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> Parts:
        common = min(0.1, SEARCHED / max(X.shape[0], 1))
        return Parts(
            self.plan_,
            X,
            Y,
            self._tie_place,
            rare_features(X, common),
            n_candidates=self.n_candidates,
        )

    def _fit_shortlisted(
        self,
        X: sp.csr_matrix,
        Y: sp.csr_matrix,
        held: npt.NDArray[np.bool_],
        device: str,
        progress: Progress,
    ) -> tuple[Parts, Mixture]:
        """Neighbours → shortlists → heads that tell the labels on a shortlist apart."""
        parts = self._empty_parts(X, Y)
        with progress.stage("neighbours"):
            wanted = max(self.n_candidates, self.n_negatives) + 1
            near = without_self(*parts.search(X, wanted, device))
        task = label_tasks(Y, parts.shortlist(*near, self.n_negatives))
        seed = spawn_seed(self.random_state, "linear")
        settings: dict[str, Any] = {
            "C": self.C,
            "passes": self.passes,
            "prune": self.prune,
            "seed": seed,
            "progress": progress,
        }
        mixture = None
        if held.any():
            parts.linear = fit_linear(
                X, task, rows=~held, stage="linear head (validation)", **settings
            )
            parts.wide = self._fit_wide(X[~held], Y[~held], device, " (validation)", progress)
            seen = near[0][held, : self.n_candidates], near[1][held, : self.n_candidates]
            mixture = self._weigh(parts, X[held], Y[held], seen, device)
        parts.linear = fit_linear(X, task, **settings)
        parts.wide = self._fit_wide(X, Y, device, "", progress)
        return parts, mixture or self._weigh(parts, X[:0], Y[:0], _nobody(near), device)

    def _fit_every_label(
        self,
        X: sp.csr_matrix,
        Y: sp.csr_matrix,
        held: npt.NDArray[np.bool_],
        device: str,
        progress: Progress,
    ) -> tuple[Parts, Mixture]:
        """A kernel vote and a wide layer over all labels, and the vote in that layer's space."""
        parts, mixture, kernel = self._empty_parts(X, Y), None, KERNELS[0]
        if held.any():
            trial = self._empty_parts(X[~held], Y[~held])
            trial.wide = self._fit_wide(X[~held], Y[~held], device, " (validation)", progress)
            if self.plan_.kernel:
                kernel = self._choose_kernel(trial, X[held], Y[held], device, progress)
                trial.kernel = fit_kernel(trial.points, trial.labels, kernel, torch.device(device))
            near = trial.search(X[held], max(NEIGHBORS), device)
            mixture = self._weigh(trial, X[held], Y[held], near, device)
            parts.n_neighbors, parts.power = trial.n_neighbors, trial.power
        parts.wide = self._fit_wide(X, Y, device, "", progress)
        if self.plan_.kernel:
            with progress.stage("kernel votes"):
                parts.kernel = fit_kernel(X, Y, kernel, torch.device(device))
        if mixture is None:
            near = parts.search(X[:1], 1, device)
            mixture = self._weigh(parts, X[:0], Y[:0], _nobody(near), device)
        return parts, mixture

    def _choose_kernel(
        self,
        trial: Parts,
        X: sp.csr_matrix,
        Y: sp.csr_matrix,
        device: str,
        progress: Progress,
    ) -> Kernel:
        points, labels = trial.points, trial.labels
        if device == "cpu" and points.shape[0] > KERNEL_CHOICE:
            rng = spawn(self.random_state, "kernel")["kernel"]
            rows = np.sort(rng.permutation(points.shape[0])[:KERNEL_CHOICE])
            points, labels = points[rows], labels[rows]
        return choose_kernel(points, labels, X, Y, torch.device(device), progress=progress)[0]

    def _fit_wide(
        self, X: sp.csr_matrix, Y: sp.csr_matrix, device: str, note: str, progress: Progress
    ) -> WideHead | None:
        if not self.plan_.width:
            return None
        n = X.shape[0]
        batch = 256 if n < 10_000 else 512 if n < 25_000 else 2048
        settings = WideSettings(
            width=self.plan_.width,
            epochs=self.epochs,
            batch_size=batch,
            learning_rate=1e-3 if batch < 2048 else 3e-3,
            feature_dropout=0.3 if self.scaler_.mean is None else 0.0,
        )
        seed = spawn_seed(self.random_state, "wide")
        head, self.history_ = fit_wide(
            X,
            Y,
            settings,
            seed=seed,
            device=torch.device(device),
            stage=f"wide layer{note}",
            progress=progress,
        )
        return head

    def _weigh(
        self, parts: Parts, X: sp.csr_matrix, Y: sp.csr_matrix, near: Near, device: str
    ) -> Mixture:
        """Choose the voters and their weights, then the mixture, on held-out points."""
        if X.shape[0]:
            parts.n_neighbors, parts.power = _choose_vote(parts, near, Y)
        pairs = parts.candidates(*near)
        return fit_mixture(parts.scores(X, *near, pairs, device), pairs, Y)

    def _take(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Use the parts as a saved model holds them, so that both rank alike."""
        self.parts_ = Parts.from_arrays(arrays, self._tie_place)
        self.plan_ = self.parts_.plan

    def _rank(self, X: sp.csr_matrix, k: int) -> TopK:
        rows = max(1, PAIRS // self.n_labels_) if self.plan_.every_label else X.shape[0]
        ranked = [
            self._rank_rows(X[start : start + rows] if X.shape[0] > rows else X, k)
            for start in range(0, X.shape[0], rows)
        ]
        return ranked[0] if len(ranked) == 1 else TopK.concatenate(ranked)

    def _rank_rows(self, X: sp.csr_matrix, k: int) -> TopK:
        device = resolve_device(self.device)
        X = self.scaler_.transform(X)
        wanted = self.parts_.n_neighbors if self.plan_.every_label else self.n_candidates
        near = self.parts_.search(X, wanted, device)
        pairs = self.parts_.candidates(*near)
        mixed = self.mixture_.mix(opinions(self.parts_.scores(X, *near, pairs, device)))
        scored = plain_csr(mixed, pairs.indices, pairs.indptr, pairs.shape)
        ranking = topk_from_csr(scored, k, self._tie_place)
        probability = self.mixture_.probability(ranking.scores)
        return TopK(ranking.indices, np.where(ranking.indices >= 0, probability, np.float32(0)))

    def predict(self, X: Any, k: int | None = None, *, threshold: float | None = None) -> Any:
        """Labels of each point, in the form that `fit` was given.

        Parameters
        ----------
        k : int, optional
            This many labels for every point.
        threshold : float, optional
            Every label of at least this probability, out of the 100 best; it may be none.

        By default a point gets as many labels as it should have by their probabilities: the number
        with the highest expected F1.
        """
        if k is not None:
            if threshold is not None:
                raise ParameterError("give k or threshold, not both.")
            return super().predict(X, k)
        self._check_fitted()
        ranking = self.predict_topk(X, min(100, self.n_labels_))
        if threshold is None:
            kept = np.arange(ranking.k) < expected_number(ranking)[:, None]
        else:
            kept = ranking.scores >= threshold
        return self._decode(TopK(np.where(kept, ranking.indices, -1), ranking.scores))

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        arrays = {
            **self.scaler_.arrays(),
            **self.mixture_.arrays(),
            **self.parts_.arrays(self.precision),
        }
        return {"plan": vars(self.plan_)}, arrays

    def _restore(self, config: Mapping[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        self.scaler_ = FeatureScaler.from_arrays(arrays)
        self.mixture_ = Mixture.from_arrays(arrays)
        self._take(arrays)
        self.plan_ = Plan(**config["plan"])


def _row_of_length_one(scaler: FeatureScaler) -> FeatureScaler:
    """Standardised columns made so small that a row has length 1 on average, not exactly."""
    if scaler.mean is None or scaler.spread is None:
        return scaler
    spread = scaler.spread * np.float32(np.sqrt(len(scaler.spread)))
    return FeatureScaler(scaler.mean, spread, rows=False)


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
