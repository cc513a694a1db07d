"""Joint: a head and a vote over the same points, weighed against each other on held-out points.

The method to use by default. Its parts (`joint_parts`) are fitted twice (`joint_fitting`): without
a fifth of the points, to learn how far each part can be trusted (`mixture`), and with all of them.
Scores are probabilities, calibrated on the held-out points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays, real, reals, whole
from dxml._core.device import memory_for, resolve_device
from dxml._core.params import Range
from dxml._core.precision import Precision
from dxml._core.random import spawn_seed
from dxml._core.scaling import FeatureScaler, Scaling, fit_scaler
from dxml._core.sparse import plain_csr
from dxml._core.validation import (
    check_features,
    check_label_ids,
    check_labels,
    check_names,
    is_indicator,
)
from dxml.base import Classifier
from dxml.exceptions import DataFormatError, ParameterError
from dxml.joint.catching_up import catch_up
from dxml.joint.explaining import Evidence, Explainer, strongest
from dxml.joint.fitting import DEFAULT_C, MOST_FOLDS, Fitter, hold_out
from dxml.joint.mixture import NEVER, Mixture, expected_number, opinions
from dxml.joint.parts import Parts, Plan, make_plan
from dxml.joint.teaching import Lessons, add_points, drop_points, remove_label
from dxml.progress import SILENT, Progress
from dxml.topk import TopK, topk_from_csr

__all__ = ["Joint"]

PAIRS = 1 << 22  # pairs scored at a time

Floats = npt.NDArray[np.float32]


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
    C_ : float
        That of the linear head, where there is one.
    history_ : list of float
        Training loss of each epoch of the wide layer, where there is one.

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
    curve: ClassVar[tuple[str, str] | None] = ("epoch", "mean training loss of the wide layer")
    variants: ClassVar[tuple[dict[str, Any], ...]] = (
        {"candidates": "all", "width": 256, "epochs": 1},
        {"candidates": "nearest", "width": 256, "epochs": 1},
    )

    def __init__(
        self,
        *,
        width: Annotated[
            int | None, Range(0), "of the wide layer; 0: none; None: by the data and the device"
        ] = None,
        epochs: Annotated[
            int | None,
            Range(1),
            "passes of the wide layer over the points; None: 15 to 40, by the data and the device",
        ] = None,
        batch_size: Annotated[
            int | None, Range(1), "points in a step of the wide layer; None: by their number"
        ] = None,
        candidates: Annotated[
            Literal["auto", "all", "nearest"],
            "labels scored: all, or those of the nearest points; auto by the size of the data",
        ] = "auto",
        n_candidates: Annotated[
            int | None,
            Range(1),
            "nearest points whose labels are candidates, and labels scored; "
            "None: 200 with a wide layer, else 100",
        ] = None,
        n_negatives: Annotated[
            int, Range(1), "labels near a point that its own are learnt to be told from"
        ] = 200,
        C: Annotated[
            float | None,
            Range(0, open_low=True),
            "weight of the linear head's loss beside ‖w‖²/2; None: by held-out points",
        ] = None,
        passes: Annotated[
            int, Range(1), "of the linear head over a label's points; half as many in trials"
        ] = 6,
        prune: Annotated[float, Range(0), "linear weights smaller than this are dropped"] = 0.03,
        precision: Annotated[Precision, "of the numbers in the model"] = "float16",
        memory_gb: Annotated[
            float | None,
            Range(0, open_low=True),
            "that training may take beside the data; 8 by default, or a quarter of a GPU's",
        ] = None,
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
        self.batch_size = batch_size
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
        plan = self._make_plan(X, device)
        most = 1 if plan.width else MOST_FOLDS  # a wide layer takes too long to be fitted often
        folds = hold_out(X.shape[0], self.validation_fraction, self.random_state, most)
        fitted = self._fitter(plan, device).fit(X, Y, folds, progress)
        self.mixture_, self.history_, self.C_ = fitted.mixture, fitted.history, fitted.C
        self._take(Arrays(fitted.parts.arrays(self.precision)), fitted.parts.plan)

    def _make_plan(self, X: sp.csr_matrix, device: str) -> Plan:
        return make_plan(
            X,
            self.n_labels_,
            device=device,
            memory=memory_for(device) if self.memory_gb is None else self.memory_gb * 1e9,
            candidates=self.candidates,
            width=self.width,
            epochs=self.epochs,
        )

    def _fitter(self, plan: Plan, device: str) -> Fitter:
        return Fitter(
            plan=plan,
            place=self._tie_place,
            dense=self.scaler_.mean is not None,
            batch_size=self.batch_size,
            n_candidates=self.n_candidates,
            n_negatives=self.n_negatives,
            C=self.C,
            passes=self.passes,
            prune=self.prune,
            random_state=self.random_state,
            device=device,
        )

    def _take(self, arrays: Arrays, plan: Plan) -> None:
        """Use the parts as a saved model holds them, so that both rank alike."""
        self.parts_, self.plan_ = Parts.from_arrays(arrays, plan, self._tie_place), plan
        shape, expected = self.parts_.points.shape, (self.n_samples_, self.n_features_in_)
        if shape != expected:
            raise ValueError(f"'points' must have the shape {expected}, has {shape}")

    @property
    def train_labels_(self) -> sp.csr_matrix:
        """The labels of the points that are known, of shape (n_samples, n_labels)."""
        return self.parts_.labels

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
        parts = self.parts_
        wanted = parts.n_neighbors if self.plan_.every_label else parts.n_candidates
        near = self.parts_.search(X, wanted, device)
        pairs = self.parts_.candidates(*near)
        mixed = self.mixture_.mix(opinions(self.parts_.scores(X, *near, pairs, device)))
        if not parts.known.all():
            mixed[~parts.known[pairs.indices]] = NEVER
        scored = plain_csr(mixed, pairs.indices, pairs.indptr, pairs.shape)
        ranking = topk_from_csr(scored, k, self._tie_place)
        probability = self.mixture_.probability(ranking.scores)
        probability[ranking.indices < 0] = 0
        alone = np.diff(X.indptr) == 0
        if alone.any():  # no features, nothing to go by but how often a label occurs
            most = np.argsort(self._tie_place)[:k]
            ranking.indices[alone] = most
            probability[alone] = self.label_frequency_[most] / self.n_samples_
        return TopK(ranking.indices, probability)

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

    def explain(self, X: Any, k: int | None = None, *, n_features: int = 10) -> list[Evidence]:
        """Why the k best labels of one point are what they are; see `dxml.joint.explaining`.

        Parameters
        ----------
        X : one row, of shape (1, n_features)
        k : int, optional
            5 by default, or the number of labels if there are fewer.
        n_features : int
            Features named for each label, out of the point's 50 largest; 0: none.
        """
        self._check_fitted()
        rows = check_features(X, self.n_features_in_)
        if rows.shape[0] != 1:
            raise DataFormatError(f"one point is explained at a time, got {rows.shape[0]} rows.")
        best = self.predict_topk(rows, k).row(0)
        labels, probabilities = [label for label, _ in best], [p for _, p in best]
        found = self.explain_labels(rows, labels, n_features=n_features)
        return [replace(why, probability=p) for why, p in zip(found, probabilities, strict=True)]

    def explain_labels(
        self, X: Any, labels: Sequence[int], *, n_features: int = 0
    ) -> list[Evidence]:
        """As `explain`, for the labels that are asked about."""
        self._check_fitted()
        rows = self.scaler_.transform(check_features(X, self.n_features_in_))
        wanted, explainer = check_label_ids(labels, self.n_labels_), self._explainer()
        scores, added, (ids, cosines) = explainer.added(rows, wanted)
        probability = self.mixture_.probability(scores).tolist()
        features: list[Any] = [()] * len(labels)
        if n_features:
            names, effects = explainer.effects(rows, wanted)
            features = [strongest(names.tolist(), column, n_features) for column in effects.T]
        return [
            Evidence(
                label, probability[i], added[i], explainer.voters(ids, cosines, label), features[i]
            )
            for i, label in enumerate(wanted.tolist())
        ]

    def score_labels(self, X: Any, labels: npt.ArrayLike) -> Floats:
        """The mixed scores, before calibration, of these labels: (n_samples, n_labels_given)."""
        self._check_fitted()
        rows = self.scaler_.transform(check_features(X, self.n_features_in_))
        return self._explainer().scores(rows, check_label_ids(labels, self.n_labels_))

    def effects(self, X: Any, without: Any, labels: npt.ArrayLike) -> Floats:
        """How much lower the labels' scores are without something that a point has.

        Parameters
        ----------
        X : one row, of shape (1, n_features)
        without : rows of shape (n, n_features)
            The point without one thing or another; a row that was made longer by that is shortened
            again, so that what is left of the point is what it was.

        Returns
        -------
        float32 array of shape (n, n_labels_given)
        """
        self._check_fitted()
        row, rows = (
            self.scaler_.transform(check_features(x, self.n_features_in_)) for x in (X, without)
        )
        if self.scaler_.rows:
            products, squares = (rows @ row.T).toarray(), rows.multiply(rows).sum(axis=1)
            lengths = products.ravel() / np.maximum(np.asarray(squares).ravel(), 1e-12)
            rows = sp.csr_matrix(sp.diags(lengths.astype(np.float32)) @ rows)
        wanted = check_label_ids(labels, self.n_labels_)
        return self._explainer().differences(row, rows, wanted)

    def _explainer(self) -> Explainer:
        return Explainer(self.parts_, self.mixture_, resolve_device(self.device))

    def partial_fit(self, X: Any, Y: Any) -> Self:
        """Learn from more points, in the time it takes to look up their neighbours.

        They vote at once, and their labels are predicted from now on: the linear head trains on
        with them and the kernel takes them up, while a wide layer and the weights of the parts stay
        what they are until `refit`; see `dxml.joint.teaching`.

        Parameters
        ----------
        X : scipy sparse matrix or array of shape (n_new, n_features)
        Y : 0/1 indicator of shape (n_new, n_labels or more), or a list of label lists
            Columns, ids or names that the model does not know are new labels.
        """
        if not hasattr(self, "n_labels_"):
            return self.fit(X, Y)
        features = check_features(X, self.n_features_in_)
        labels, names = self._grown_labels(Y)
        if features.shape[0] != labels.shape[0]:
            raise DataFormatError(
                f"X and Y must have equally many rows, got {features.shape[0]} and "
                f"{labels.shape[0]}."
            )
        if features.shape[0]:
            rows = self.scaler_.transform(features)
            self._adopt(add_points(self.parts_, rows, labels, self._lessons()))
            self.label_names_ = names
        return self

    def forget(self, rows: npt.ArrayLike) -> Self:
        """Take training points, by their rows, out of the vote and the kernel.

        The rows after them move up. What the weights of a linear head or a wide layer owe to them
        stays until `refit`.
        """
        gone = np.unique(self._checked_rows(rows))
        if len(gone) == self.n_samples_:
            raise DataFormatError("a model cannot forget all of its points. Keep one, or fit anew.")
        self._adopt(drop_points(self.parts_, gone))
        return self

    def remove_label(self, row: int, label: int) -> Self:
        """Take a wrong label off a training point; the linear head unlearns it from that point."""
        [point] = self._checked_rows([row]).tolist()
        own = self.parts_.labels[point].indices
        if label not in own:
            raise DataFormatError(f"point {point} does not carry label {label}: {own.tolist()}.")
        self._adopt(remove_label(self.parts_, point, label, self._lessons()))
        return self

    def catch_up(self, *, progress: Progress = SILENT) -> Self:
        """Train the parts on from where they are, with all the points that are known now.

        A good deal quicker than `refit`, as nothing is held out and weights are near where they
        should be; see `dxml.joint.catching_up`. How the parts are weighed stays.
        """
        self._check_fitted()
        parts, lessons = self.parts_, self._lessons()
        plan = self._make_plan(parts.points, lessons.device)
        trained = catch_up(parts, lessons, solve=plan.kernel, progress=progress)
        if parts.wide is not None:
            fitter = self._fitter(self.plan_, lessons.device)
            trained.wide, history = fitter.fit_wide(
                parts.points, parts.labels, progress, start=parts.wide
            )
            self.history_ = [*self.history_, *history]
        self._take(Arrays(trained.arrays(self.precision)), self.plan_)
        return self

    def refit(self, *, progress: Progress = SILENT) -> Self:
        """Train all parts again, on all the points that are known now."""
        self._check_fitted()
        X, Y, names = self.parts_.points, self.parts_.labels, self.label_names_
        if self.scaler_.mean is not None and self.scaler_.spread is not None:
            X = sp.csr_matrix(X.toarray() * self.scaler_.spread + self.scaler_.mean)
        self.fit(X, Y, progress=progress)
        self.label_names_ = names
        return self

    def _lessons(self) -> Lessons:
        return Lessons(
            C=self.C_,
            passes=self.passes,
            prune=self.prune,
            n_negatives=self.n_negatives,
            precision=self.precision,
            seed=spawn_seed(self.random_state, "teaching"),
            device=resolve_device(self.device),
        )

    def _adopt(self, parts: Parts) -> None:
        self.parts_, self._tie_place = parts, parts.place
        self.n_samples_, self.n_labels_ = parts.labels.shape
        self.label_frequency_ = np.bincount(parts.labels.indices, minlength=self.n_labels_)

    def _checked_rows(self, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
        self._check_fitted()
        found = np.asarray(rows, dtype=np.int64).ravel()
        outside = found[(found < 0) | (found >= self.n_samples_)]
        if len(outside):
            raise DataFormatError(f"there is no point {outside[0]} in {self.n_samples_} points.")
        return found

    def _grown_labels(self, Y: Any) -> tuple[sp.csr_matrix, npt.NDArray[Any] | None]:
        """Labels in this model's columns and new ones after them, and the names of all."""
        names = self.label_names_
        if names is not None and not is_indicator(Y):
            lists = check_names(Y)
            new = sorted({name for row in lists for name in row} - set(names.tolist()))
            names = np.asarray([*names.tolist(), *new])
            column = {name: i for i, name in enumerate(names.tolist())}
            Y = [[column[name] for name in row] for row in lists]
        labels, unknown = check_labels(Y, self.n_labels_ if names is None else len(names))
        if unknown is not None or labels.shape[1] < self.n_labels_:
            raise DataFormatError(
                f"Y must have the {self.n_labels_} labels of the model, and may have more, "
                f"got {labels.shape[1]}{'' if unknown is None else ' by name'}."
            )
        if names is not None and labels.shape[1] > len(names):
            raise DataFormatError(
                f"the {len(names)} labels of this model have names, and new ones need them too, "
                f"got a matrix of {labels.shape[1]} columns. Give lists of names."
            )
        return labels, names

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        arrays = {
            **self.scaler_.arrays(),
            **self.mixture_.arrays(),
            **self.parts_.arrays(self.precision),
        }
        config = {"plan": vars(self.plan_), "C": self.C_, "history": self.history_}
        return {**config, "frequency": "share"}, arrays

    def _restore(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        self.scaler_ = FeatureScaler.from_arrays(arrays, self.n_features_in_)
        self.mixture_ = Mixture.from_arrays(arrays)
        if config.get("frequency") != "share":  # until format 3 it was counted
            shift = float(self.mixture_.weights[0]) * float(np.log1p(self.n_samples_))
            self.mixture_ = replace(self.mixture_, bias=self.mixture_.bias + shift)
        plan = config["plan"]  # until format 2 every label was scored where no linear head was
        self._take(arrays, _checked_plan({"every_label": not plan["linear"], **plan}))
        if len(self.mixture_.weights) != self.plan_.n_opinions:
            raise ValueError(f"'mixture.weights' must have {self.plan_.n_opinions} entries")
        self.history_ = reals(config.get("history", []), "history")
        self.C_ = real({"C": self.C or DEFAULT_C, **config}, "C")


def _checked_plan(saved: Mapping[str, Any]) -> Plan:
    """The plan of a saved model."""
    plan = Plan(**saved)
    for name in ("every_label", "kernel", "linear"):
        if not isinstance(saved[name], bool):
            raise ValueError(f"{name!r} of the plan must be true or false, is {saved[name]!r}")
    for name, least in (("width", 0), ("learners", 1), ("epochs", 1)):
        whole(vars(plan), name, least)
    return plan


def _row_of_length_one(scaler: FeatureScaler) -> FeatureScaler:
    """Standardised columns made so small that a row has length 1 on average, not exactly."""
    if scaler.mean is None or scaler.spread is None:
        return scaler
    spread = scaler.spread * np.float32(np.sqrt(len(scaler.spread)))
    return FeatureScaler(scaler.mean, spread, rows=False)
