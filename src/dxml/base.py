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
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays, listed_texts, mapping, reading, real, whole
from dxml._core.blocks import cut_rows, run_blocks, spread
from dxml._core.compiled import is_loaded
from dxml._core.estimator import Estimator
from dxml._core.params import accept_former_names, check_params, present_names
from dxml._core.storage import read_folder, write_folder
from dxml._core.threads import FEW_ROWS, numba_threads
from dxml._core.validation import (
    check_features,
    check_k,
    check_labels,
    check_names,
    check_pair,
    is_indicator,
)
from dxml.exceptions import DataFormatError, ModelFormatError, NotFittedError
from dxml.progress import SILENT, Progress, StageTimer
from dxml.topk import TopK, tie_order

__all__ = ["Classifier"]


RANKED_BYTES = 8  # of a label and its score
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
    label_frequency_ : int64 array of shape (n_labels,)
        Training points that carry each label.
    label_names_ : array of shape (n_labels,) or None
        The names, where `fit` was given lists of names.
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
    label_names_: npt.NDArray[Any] | None
    seconds_: dict[str, float]

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
        features, labels, names = check_pair(X, Y)
        self._forget()
        self.n_samples_, self.n_features_in_ = features.shape
        self.n_labels_ = labels.shape[1]
        self.label_names_ = names
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
        return self._in_batches(X, k, None, progress)

    def _rank_texts(self, X: sp.csr_matrix, k: int, texts: Sequence[str] | None) -> TopK:
        """As `_rank`, for a method that makes something of the points' texts."""
        return self._rank(X, k)

    def _in_batches(
        self, X: Any, k: int | None, texts: Sequence[str] | None, progress: Progress
    ) -> TopK:
        """`predict_topk`, with the points' texts where there are any."""
        self._check_fitted()
        features = check_features(X, self.n_features_in_)
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
        return TopK.concatenate(parts)

    def predict(self, X: Any, k: int | None = None) -> Any:
        """The k best labels of each point, in the form that `fit` was given.

        A sparse 0/1 indicator, or lists of names where `fit` had names. k defaults to the mean
        number of labels of a training point, rounded.
        """
        self._check_fitted()
        if k is None:
            mean = self.label_frequency_.sum() / max(self.n_samples_, 1)
            k = int(np.clip(round(float(mean)), 1, self.n_labels_))
        return self._decode(self.predict_topk(X, k))

    def _decode(self, ranking: TopK) -> Any:
        """The labels of a ranking as names, or as a 0/1 indicator."""
        if self.label_names_ is not None:
            names = self.label_names_.tolist()
            return [[names[label] for label, _ in row] for row in ranking.rows()]
        scores = ranking.to_csr(self.n_labels_)
        kept = (np.ones(scores.nnz, dtype=bool), scores.indices, scores.indptr)
        return sp.csr_matrix(kept, shape=scores.shape)

    def decision_function(self, X: Any, k: int = 100) -> sp.csr_matrix:
        """Scores as a sparse (n_samples, n_labels) matrix that holds the k best of each row."""
        self._check_fitted()
        return self.predict_topk(X, min(k, self.n_labels_)).to_csr(self.n_labels_)

    def score(self, X: Any, Y: Any) -> float:
        """Precision at 1: the share of points whose first label is right."""
        self._check_fitted()
        truth = self.encode_labels(Y)
        best = self.predict_topk(X, 1).indices[:, 0]
        if truth.shape[0] != len(best):
            raise DataFormatError(
                f"X and Y must have equally many rows, got {len(best)} and {truth.shape[0]}."
            )
        kept = np.flatnonzero(best >= 0)
        return float(np.asarray(truth[kept, best[kept]]).sum() / max(len(best), 1))

    def encode_labels(self, Y: Any) -> sp.csr_matrix:
        """Truth in this model's columns; names that training never saw are left out."""
        if self.label_names_ is not None and not is_indicator(Y):
            column = {name: i for i, name in enumerate(self.label_names_.tolist())}
            Y = [[column[name] for name in row if name in column] for row in check_names(Y)]
        truth, _ = check_labels(Y, self.n_labels_)
        if truth.shape[1] != self.n_labels_:
            raise DataFormatError(
                f"Y must have {self.n_labels_} labels like the training data, got {truth.shape[1]}."
            )
        return truth

    def save(self, folder: str | Path) -> Path:
        """Write the model as a folder of JSON and safetensors, in one step."""
        return write_folder(folder, *self._packed())

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
            "seconds": {name: round(spent, 4) for name, spent in self.seconds_.items()},
            "state": state,
        }
        return config, {"label_frequency": self.label_frequency_, **arrays}

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
            model = cls(**present_names(cls, mapping(config, "parameters")))
            check_params(model)
            model.n_features_in_ = whole(config, "n_features")
            model.n_labels_ = n_labels = whole(config, "n_labels", 1)
            model.n_samples_ = whole(config, "n_samples")
            names = config["label_names"]
            model.label_names_ = (
                None if names is None else np.asarray(listed_texts(names, "label_names", n_labels))
            )
            model.label_frequency_ = arrays.counts("label_frequency", n_labels)
            seconds = config.get("seconds", {})
            model.seconds_ = {name: real(seconds, name) for name in seconds}
            model._tie_place = tie_order(model.label_frequency_)
            model._restore(config["state"], arrays)
        return model

    def _forget(self) -> None:
        """Drop everything an earlier fit learned."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_labels_"):
            raise NotFittedError(
                f"this {type(self).__name__} has not been fitted. Call fit(X, Y) or load(folder)."
            )
