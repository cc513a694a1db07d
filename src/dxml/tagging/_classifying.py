"""A tagger as scikit-learn's tools know a classifier: predictions in the form of the labels given.

`dxml.tagging._tagger` has what a tagger does besides.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.params import Parameter, parameters_of
from dxml._core.targets import Target
from dxml._core.validation import check_threshold
from dxml.exceptions import DataFormatError, ParameterError, did_you_mean
from dxml.joint import Joint
from dxml.tagging._known_texts import KnownTexts, indicator_of
from dxml.text._features import TextFeatures
from dxml.topk import TopK

__all__ = ["Classifying"]


class Classifying(ABC):
    """Parameters, predictions and scores, by the names that scikit-learn has for them."""

    features: TextFeatures
    model: Joint
    target: Target

    @staticmethod
    @abstractmethod
    def parameters() -> dict[str, Parameter]:
        """What may be set."""

    @abstractmethod
    def rank(self, texts: Sequence[str], top: int = 5) -> TopK:
        """The best labels by their columns."""

    @abstractmethod
    def label_names(self, labels: Any) -> list[list[str]]:
        """The labels of each text by their names."""

    @property
    @abstractmethod
    def _known(self) -> KnownTexts:
        """Labels and texts of a fitted tagger."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings, given or by default; `deep` makes no difference."""
        both = {**self.features.get_params(), **self.model.get_params()}
        known = {name: both[name] for name in self.parameters()}
        own = inspect.signature(type(self).__init__).parameters
        if not any(each.kind is each.VAR_KEYWORD for each in own.values()):
            known = {name: known[name] for name in own if name in known}
        more = [name for name in own if hasattr(self, name) and name not in known]
        return known | {name: getattr(self, name) for name in more}

    def set_params(self, **settings: Any) -> Self:
        """Change settings; they are checked by `fit`."""
        known = self.get_params()
        for name in settings:
            if name not in known:
                raise ParameterError(f"unknown parameter {name!r}{did_you_mean(name, known)}")
        for name, value in settings.items():
            if name in parameters_of(TextFeatures):
                self.features.set_params(**{name: value})
            elif name in self.parameters():
                self.model.set_params(**{name: value})
            else:
                setattr(self, name, value)
        return self

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """What the columns of `predict_proba` are called; numbers where `fit` was given numbers."""
        names = np.asarray(list(self._known.names))
        if self.target.dtype == "str":
            return names
        try:
            return names.astype(np.int64)
        except ValueError:  # a name was learnt later
            return names

    def threshold_for(
        self, *, precision: float | None = None, recall: float | None = None
    ) -> float:
        """The probability from which on labels keep a promised precision or recall.

        As `dxml.joint.Joint.threshold_for`: the promise is about texts like those of the training.
        """
        _ = self._known
        return self.model.threshold_for(precision=precision, recall=recall)

    def _least(
        self,
        top: int | None,
        threshold: float | None,
        precision: float | None,
        recall: float | None,
    ) -> float | None:
        """The threshold that was given, or that keeps what was promised."""
        check_threshold(threshold)
        if precision is None and recall is None:
            return threshold
        if threshold is not None:
            raise ParameterError("give one of threshold, precision and recall.")
        if recall is not None and top is not None:
            raise ParameterError("recall needs every label above its threshold: leave top out.")
        return self.threshold_for(precision=precision, recall=recall)

    def predict(
        self,
        texts: Sequence[str],
        top: int | None = None,
        threshold: float | None = None,
        *,
        precision: float | None = None,
        recall: float | None = None,
    ) -> Any:
        """Labels of each text, in the form that `fit` was given.

        Lists of names, a 0/1 matrix, or one label a text where `fit` had one.

        Parameters
        ----------
        top : int, optional
            This many labels for every text. By default a text gets as many as it should have by
            their probabilities: the number with the highest expected F1.
        threshold : float, optional
            Only labels of at least this probability; it may be none.
        precision, recall : float, optional
            Only labels above the threshold that keeps this; see `threshold_for`.
        """
        threshold = self._least(top, threshold, precision, recall)
        names, form = self.classes_, self.target.form
        alone = form == "values" and top is None and threshold is None
        if top is not None or alone:
            chosen = self.rank(texts, top or 1)
        else:
            chosen = self.rank(texts, min(100, len(names)))
        if threshold is not None:
            chosen = chosen.at_least(threshold)
        elif top is None and not alone:
            chosen = self.model.expected_best(chosen)
        if alone:
            return names[np.maximum(chosen.indices[:, 0], 0)]
        if form in ("lists", "values"):
            listed = names.tolist()
            return [[listed[label] for label, _ in row] for row in chosen.rows()]
        found = chosen.to_csr(len(names)) != 0
        return found.toarray().astype(self.target.dtype) if form == "dense" else found

    def predict_proba(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The probability of every label of every text, of shape (n_texts, n_labels)."""
        _ = self._known
        found = self.model.predict_proba(self.features.transform(texts), texts=list(texts))
        if self.target.form == "values":
            found /= found.sum(axis=1, keepdims=True)
        return found

    def decision_function(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """As `predict_proba`; with two classes and one label a text, the difference of both.

        scikit-learn's scorers ask for it before probabilities.
        """
        found = self.predict_proba(texts)
        if self.target.form == "values" and found.shape[1] == 2:
            return found[:, 1] - found[:, 0]
        return found

    def score(self, texts: Sequence[str], y: Any) -> float:
        """Precision at 1: the share of texts whose first label is right."""
        best, truth = self.rank(texts, 1).indices[:, 0], self.encode_labels(y)
        if truth.shape[0] != len(best):
            raise DataFormatError(
                f"there are {len(best)} texts but labels of {truth.shape[0]}. Give both for each."
            )
        kept = np.flatnonzero(best >= 0)
        return float(np.asarray(truth[kept, best[kept]]).sum() / max(len(best), 1))

    def encode_labels(self, labels: Iterable[Iterable[str]] | Any) -> sp.csr_matrix:
        """Labels as a 0/1 indicator of the model's columns; unknown names are left out."""
        names = self._known.names
        rows = [[name for name in row if name in names] for row in self.label_names(labels)]
        return indicator_of(rows, names)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        tags = Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True, two_d_labels=True),
            input_tags=InputTags(one_d_array=True, two_d_array=False, string=True),
        )
        # Folds of a classifier are made by its labels, which must not be lists; scorers ask later.
        if vars(self).get("_points") is not None:
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_label=True)
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return vars(self).get("_points") is not None
