"""What every method has in common: the estimator's outside.

A method writes three things of its own: `_fit`, `_rank` and the pair `_state`/`_restore`.
Everything a user calls (`fit`, `predict_topk`, `predict`, `decision_function`, `score`,
`save`, `load`) is here, once, with its checks.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays, listed_texts, mapping, reading, real, whole
from dxml._core.blocks import cut_rows, run_blocks, spread
from dxml._core.card import card, plain_sections, write_card
from dxml._core.compiled import is_loaded
from dxml._core.estimator import Estimator
from dxml._core.frames import check_feature_names, column_names
from dxml._core.params import (
    accept_former_names,
    check_params,
    parameters_of,
    present_names,
)
from dxml._core.storage import read_folder, write_folder
from dxml._core.targets import Target, encode_target, read_target
from dxml._core.threads import FEW_ROWS, numba_threads
from dxml._core.validation import check_features, check_k, check_labels, check_pair
from dxml.exceptions import DataFormatError, ModelFormatError, not_fitted
from dxml.progress import SILENT, Progress, StageTimer
from dxml.topk import TopK, tie_order

__all__ = ["Classifier"]


RANKED_BYTES = 8  # of a label and its score
DENSE_BYTES = 1 << 32  # of a matrix of all scores, at most
Batch = tuple[sp.csr_matrix, Sequence[str] | None]


def _batches(X: sp.csr_matrix, texts: Sequence[str] | None, size: int, k: int) -> Iterator[Batch]:
    start = 0
    for rows in cut_rows(X, size, more=k * RANKED_BYTES):
        stop = start + rows.shape[0]
        yield rows, None if texts is None else texts[start:stop]
        start = stop


def _rank_batch(shared: tuple[Classifier, int], batch: Batch) -> TopK:
    (model, k), (rows, texts) = shared, batch
    return model._rank_texts(rows, k, texts)


class Classifier(Estimator, ABC):
    """A multi-label classifier over sparse points that ranks labels.

    Attributes set by `fit`
    -----------------------
    n_features_in_, n_labels_, n_samples_ : int
    feature_names_in_ : object array of shape (n_features,)
        The columns' names, where `fit` was given a frame whose columns have names.
    label_frequency_ : int64 array of shape (n_labels,)
        Training points that carry each label.
    classes_ : array of shape (n_labels,)
        What the columns of a prediction are called: names, values of a 1-D y, or else numbers.
    label_names_ : array of shape (n_labels,) or None
        The same, or None where they are only numbered.
    target_ : Target
        The form of Y, which predictions have too.
    seconds_ : dict of str to float
        What each stage of `fit` took, and "other"; empty for folders written before it was kept.
    """

    method: ClassVar[str]
    """The name on the command line."""
    summary: ClassVar[str]
    """One line for ``dxml methods``."""
    curve: ClassVar[tuple[str, str] | None] = None
    """What `history_` is by and of, such as ("epoch", "training loss"); None: there is none."""
    variants: ClassVar[tuple[dict[str, Any], ...]] = ({},)
    """Settings that between them use all of the method's code, to compile it on tiny data."""
    former_names: ClassVar[Mapping[str, str]] = {}
    """Names that parameters had in an earlier version, and those they have now."""
    batch_rows: ClassVar[int] = 2048
    """Points ranked at a time; bounds the memory of a prediction."""

    n_features_in_: int
    n_labels_: int
    n_samples_: int
    label_frequency_: npt.NDArray[np.int64]
    feature_names_in_: npt.NDArray[np.object_]
    label_names_: npt.NDArray[Any] | None
    target_: Target
    seconds_: dict[str, float]

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags(multi_label=True)
        tags.target_tags.required = tags.input_tags.sparse = True
        return tags

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "former_names" in vars(cls):
            accept_former_names(cls)

    @abstractmethod
    def _fit(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
        """Learn from checked arrays; set attributes that end in an underscore."""

    @abstractmethod
    def _rank(self, X: sp.csr_matrix, k: int) -> TopK:
        """The k best labels of each checked row, by the rule of `dxml.topk`."""

    @abstractmethod
    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """What a saved model must hold: JSON values, and arrays."""

    @abstractmethod
    def _restore(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        """The inverse of `_state`."""

    def fit(self, X: Any, Y: Any, *, progress: Progress = SILENT) -> Self:
        """Learn to rank labels.

        Parameters
        ----------
        X : scipy sparse matrix, array or frame of shape (n_samples, n_features)
        Y : sparse or dense 0/1 indicator of shape (n_samples, n_labels), or a list of label lists
            One label a point is a 1-D array, as of scikit-learn's classifiers. The names of a
            frame's columns are those of the labels.
        progress : Progress
            Hears of the long steps.
        """
        return self._fit_by(self._fit, X, Y, progress)

    def _fit_by(
        self,
        fit: Callable[[sp.csr_matrix, sp.csr_matrix, Progress], None],
        X: Any,
        Y: Any,
        progress: Progress,
    ) -> Self:
        """`fit`, by a function of checked arrays."""
        check_params(self)
        features = check_features(X)
        labels, names, target = read_target(Y)
        check_pair(features, labels)
        self._forget()
        self.n_samples_, self.n_features_in_ = features.shape
        self.n_labels_ = labels.shape[1]
        self.label_names_, self.target_ = names, target
        if (columns := column_names(X)) is not None:
            self.feature_names_in_ = columns
        self.label_frequency_ = np.bincount(labels.indices, minlength=labels.shape[1])
        self._tie_place = tie_order(self.label_frequency_)
        timer, start = StageTimer(progress), time.perf_counter()
        fit(features, labels, timer)
        spent = time.perf_counter() - start - sum(timer.seconds.values())
        self.seconds_ = {**timer.seconds, "other": max(spent, 0.0)}
        return self

    def predict_topk(self, X: Any, k: int | None = None, *, progress: Progress = SILENT) -> TopK:
        """The k best labels of each point, best first; see `dxml.topk.TopK`.

        k defaults to 5, or to the number of labels if there are fewer.
        """
        return self._in_batches(self._checked(X), k, None, progress)

    def _rank_texts(self, X: sp.csr_matrix, k: int, texts: Sequence[str] | None) -> TopK:
        """As `_rank`, for a method that makes something of the points' texts."""
        return self._rank(X, k)

    def _in_batches(
        self,
        features: sp.csr_matrix,
        k: int | None,
        texts: Sequence[str] | None = None,
        progress: Progress = SILENT,
    ) -> TopK:
        """`predict_topk` of checked rows, with the points' texts where there are any."""
        k = check_k(min(5, self.n_labels_) if k is None else k, self.n_labels_)
        if features.shape[0] == 0:
            return TopK(np.empty((0, k), np.int32), np.empty((0, k), np.float32))
        parts = []
        few = features.shape[0] < FEW_ROWS and is_loaded()
        one = 1 if few else None  # waking others would take longer
        with numba_threads(one), progress.stage("predict", features.shape[0], "points") as stage:
            batches = _batches(features, texts, self.batch_rows, k)
            model = self
            if spread():  # what the first ranking builds is sent too; a copy is never learnt on
                self._rank_texts(features[:1], k, None if texts is None else texts[:1])
                model = copy(self)
            for ranking in run_blocks(_rank_batch, (model, k), batches):
                parts.append(ranking)
                stage.advance(len(ranking))
        found = TopK.concatenate(parts)
        if not np.isfinite(found.scores).all():
            raise DataFormatError(
                f"some scores of {self.method} are not finite. Numbers of X are far larger than in "
                "training, or the model is damaged: `dxml model check` looks into a folder."
            )
        return replace(found, names=self.label_names_)

    def _checked(self, X: Any) -> sp.csr_matrix:
        """Features of the points that are asked about, as checked rows."""
        self._check_fitted()
        name = type(self).__name__
        check_feature_names(getattr(self, "feature_names_in_", None), X, name)
        return check_features(X, self.n_features_in_, name)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        self._check_fitted()
        return np.arange(self.n_labels_) if self.label_names_ is None else self.label_names_

    def predict(self, X: Any, k: int | None = None) -> Any:
        """The k best labels of each point, in the form that `fit` was given.

        A 0/1 indicator, sparse or dense, lists of names or ids, or the best value of each point
        where `fit` had one label a point. k defaults to the mean number of labels of a training
        point, rounded; with k, values are lists too.
        """
        self._check_fitted()
        if k is None and self.target_.form == "values":
            return self._best_values(self.predict_topk(X, 1))
        if k is None:
            mean = self.label_frequency_.sum() / max(self.n_samples_, 1)
            k = int(np.clip(round(float(mean)), 1, self.n_labels_))
        return self._decode(self.predict_topk(X, k))

    def _decode(self, ranking: TopK) -> Any:
        """The labels of a ranking in the form of the training labels."""
        if self.target_.form in ("lists", "values"):
            names = self.classes_.tolist()
            return [[names[label] for label, _ in row] for row in ranking.rows()]
        scores = ranking.to_csr(self.n_labels_)
        kept = (np.ones(scores.nnz, dtype=bool), scores.indices, scores.indptr)
        found = sp.csr_matrix(kept, shape=scores.shape)
        dense = self.target_.form == "dense"
        return found.toarray().astype(self.target_.dtype) if dense else found

    def _best_values(self, ranking: TopK) -> npt.NDArray[Any]:
        """The first label of each point; the most frequent one where none was found."""
        best = ranking.indices[:, 0]
        found: npt.NDArray[Any] = self.classes_[np.where(best < 0, self._tie_place.argmin(), best)]
        return found

    def decision_function(self, X: Any, k: int | None = None) -> Any:
        """Scores of all labels, larger is better, or of the k best.

        Returns
        -------
        float32 array of shape (n_samples, n_labels)
            A label that the method did not rank has the lowest score of its row, 0 or less. With
            two classes and one label a point: of shape (n_samples,), the second one's score less
            the first one's. With `k`, a csr_matrix that holds the k best of each row.
        """
        self._check_fitted()
        if k is not None:
            return self.predict_topk(X, min(k, self.n_labels_)).to_csr(self.n_labels_)
        scores = self._all_scores(X)
        if self.target_.form == "values" and self.n_labels_ == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def _all_scores(self, X: Any, texts: Sequence[str] | None = None) -> npt.NDArray[np.float32]:
        """A score for every label of every point."""
        rows = self._checked(X)
        if 4 * rows.shape[0] * self.n_labels_ > DENSE_BYTES:
            raise DataFormatError(
                f"the scores of {self.n_labels_:,} labels for {rows.shape[0]:,} points would take "
                f"{4e-9 * rows.shape[0] * self.n_labels_:,.0f} GB. Ask for the best of them with "
                "predict_topk, or for fewer points at a time."
            )
        ranking = self._in_batches(rows, self.n_labels_, texts)
        lowest = np.minimum(ranking.scores.min(axis=1, initial=0), 0)
        scores = np.repeat(lowest[:, None], self.n_labels_, axis=1)
        row, place = np.nonzero(ranking.indices >= 0)
        scores[row, ranking.indices[row, place]] = ranking.scores[row, place]
        return scores

    def score(self, X: Any, y: Any) -> float:
        """Precision at 1: the share of points whose first label is right."""
        best = self.predict_topk(X, 1).indices[:, 0]
        truth = self.encode_labels(y)
        if truth.shape[0] != len(best):
            raise DataFormatError(
                f"X and Y must have equally many rows, got {len(best)} and {truth.shape[0]}."
            )
        kept = np.flatnonzero(best >= 0)
        return float(np.asarray(truth[kept, best[kept]]).sum() / max(len(best), 1))

    def encode_labels(self, Y: Any) -> sp.csr_matrix:
        """Truth in this model's columns; names that training never saw are left out."""
        truth, _ = check_labels(encode_target(Y, self.label_names_), self.n_labels_)
        if truth.shape[1] != self.n_labels_:
            raise DataFormatError(
                f"Y must have {self.n_labels_} labels like the training data, got {truth.shape[1]}."
            )
        return truth

    def save(self, folder: str | Path) -> Path:
        """Write the model as a folder of JSON and safetensors, in one step, with a model card."""
        config, arrays = self._packed()
        path = write_folder(folder, config, arrays)
        header = {"library_name": "dxml", "tags": ["dxml", self.method, "multi-label"]}
        about = ("Method", f"{self.method}: {self.summary}")
        sections = [about, *plain_sections(config)]
        write_card(path, card(path.resolve().name, header, sections))
        return path

    def _packed(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """All that a folder holds of the model: JSON values, and arrays."""
        self._check_fitted()
        state, arrays = self._state()
        config = {
            "method": self.method,
            "parameters": self.get_params(),
            "n_features": self.n_features_in_,
            "n_labels": self.n_labels_,
            "n_samples": self.n_samples_,
            "label_names": None if self.label_names_ is None else self.label_names_.tolist(),
            "target": self.target_.state(),
            "feature_names": self._feature_names(),
            "seconds": {name: round(spent, 4) for name, spent in self.seconds_.items()},
            "state": state,
        }
        return config, {"label_frequency": self.label_frequency_, **arrays}

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else names.tolist()

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a saved model."""
        config, arrays = read_folder(folder)
        if config.get("method") != cls.method:
            raise ModelFormatError(
                f"{folder}: holds a model of method {config.get('method')!r}, not {cls.method!r}. "
                "Open it with dxml.load_model."
            )
        model = cls._unpacked(folder, config, arrays)
        arrays.accept()
        return model

    @classmethod
    def _unpacked(cls, folder: str | Path, config: Mapping[str, Any], arrays: Arrays) -> Self:
        """The inverse of `_packed`; `folder` is named in errors."""
        with reading(folder):
            model = cls(**cls._own_parameters(folder, mapping(config, "parameters")))
            check_params(model)
            model.n_features_in_ = whole(config, "n_features")
            model.n_labels_ = n_labels = whole(config, "n_labels", 1)
            model.n_samples_ = whole(config, "n_samples")
            names = config["label_names"]
            model.target_ = Target.from_state(config.get("target"), names is not None)
            model.label_names_ = None if names is None else model.target_.names(names, n_labels)
            if (columns := config.get("feature_names")) is not None:
                model.feature_names_in_ = np.asarray(
                    listed_texts(columns, "feature_names", model.n_features_in_), dtype=object
                )
            model.label_frequency_ = arrays.counts("label_frequency", n_labels)
            seconds = config.get("seconds", {})
            model.seconds_ = {name: real(seconds, name) for name in seconds}
            model._tie_place = tie_order(model.label_frequency_)
            model._restore(config["state"], arrays)
        return model

    @classmethod
    def _own_parameters(cls, folder: str | Path, stored: Mapping[str, Any]) -> dict[str, Any]:
        parameters = present_names(cls, stored)
        if strange := sorted(parameters.keys() - parameters_of(cls).keys()):
            raise ModelFormatError(
                f"{folder}: holds a model of another class, with parameters that {cls.__name__} "
                f"does not have: {', '.join(strange)}. Open it with load of that class."
            )
        return parameters

    def _forget(self) -> None:
        """Drop everything an earlier fit learned."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_labels_"):
            raise not_fitted(
                f"this {type(self).__name__} has not been fitted. Call fit(X, Y) or load(folder)."
            )
