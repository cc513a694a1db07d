"""What a fitted joint model learns later; `dxml.joint._teaching` says how."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.targets import grown_labels
from dxml._deep.texts import Texts
from dxml._deep.vectors import VectorRows
from dxml.exceptions import DataFormatError
from dxml.joint._answering import Answering
from dxml.joint._ensemble import Ensemble
from dxml.joint._plan import Plan
from dxml.joint._teaching import (
    add_points,
    drop_points,
    regroup,
    remove_label,
    train_on,
    widen,
)
from dxml.joint.parts._deep import DeepPart
from dxml.joint.parts._vectors import VectorsPart
from dxml.joint.parts.protocol import Options
from dxml.progress import SILENT, Progress

__all__ = ["Teachable"]

GIVEN = ("label_names_", "feature_names_in_", "target_")
"""What `fit` reads off the forms of X and Y."""


class Teachable(Answering):
    """Takes up, drops and corrects points, and trains on with them."""

    @abstractmethod
    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        texts: Sequence[str] | Texts | None = None,
        label_texts: Sequence[str] | None = None,
        progress: Progress = SILENT,
    ) -> Self:
        """Learn to rank labels."""

    @abstractmethod
    def _options(self) -> Options:
        """The parameters that parts read."""

    @abstractmethod
    def _make_plan(self, X: sp.csr_matrix, options: Options) -> Plan:
        """The parts that a model of these scaled rows would have."""

    def partial_fit(
        self,
        X: Any,
        Y: Any,
        *,
        classes: Any = None,
        texts: Sequence[str] | None = None,
        label_texts: Sequence[str] | None = None,
    ) -> Self:
        """Learn from more points, in the time it takes to look up their neighbours.

        They vote at once, and their labels are predicted from now on: the linear head trains on
        with them and the kernel takes them up, while a wide layer and the weights of the parts stay
        what they are until `refit`; see `dxml.joint._teaching`.

        Parameters
        ----------
        X : scipy sparse matrix or array of shape (n_new, n_features)
        Y : 0/1 indicator of shape (n_new, n_labels or more), or a list of label lists
            Columns, ids or names that the model does not know are new labels.
        classes : ignored
            scikit-learn's tools give it; labels may be new at any time.
        texts, label_texts : sequence of str, optional
            Of the new points, and of the new labels, as in `fit`.
        """
        if not hasattr(self, "n_labels_"):
            return self.fit(X, Y, texts=texts, label_texts=label_texts)
        features = self._checked(X)
        labels, names = grown_labels(Y, features.shape[0], self.n_labels_, self.label_names_)
        if features.shape[0]:
            rows = self.scaler_.transform(features)
            read, new = self._read(texts), self._read_tokens(label_texts)
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
            vars(self).pop("feature_names_in_", None)  # the new ones have none
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
        own = self.point_labels(point).tolist()
        if label not in own:
            raise DataFormatError(f"point {point} does not carry label {label}: {own}.")
        place = int(self._ensemble.known.holes.place_of(point))
        self._adopt(remove_label(self._ensemble, place, label, self._options()))
        return self

    def merge_labels(self, labels: Sequence[int], *, label_text: str | None = None) -> Self:
        """Make one label of several; the points of each carry it.

        It takes the column of the most frequent of them, and the columns after the others move up.

        Parameters
        ----------
        labels : sequence of int
            Columns.
        label_text : str, optional
            Name and description of the new label, for a model that reads texts.
        """
        old = self._checked_labels(labels)
        kept = int(old[np.argmax(self.label_frequency_[old])])
        main = np.setdiff1d(np.arange(self.n_labels_), old[old != kept])
        place = int(np.searchsorted(main, kept))
        merged = {place: old} if len(old) > 1 else {}
        return self._regroup(main, merged, place, label_text)

    def delete_labels(self, labels: Sequence[int]) -> Self:
        """Take labels, by their columns, off all points; the columns after them move up."""
        main = np.setdiff1d(np.arange(self.n_labels_), self._checked_labels(labels))
        if not len(main):
            raise DataFormatError("a model cannot lose all of its labels. Keep one, or fit anew.")
        return self._regroup(main, {})

    def rename_label(self, label: int, label_text: str) -> Self:
        """Read the new name of a label, where the model reads texts."""
        [place] = self._checked_labels([label]).tolist()
        return self._regroup(np.arange(self.n_labels_), {}, place, label_text)

    def _regroup(
        self,
        main: npt.NDArray[np.int64],
        merged: Mapping[int, npt.NDArray[np.int64]],
        renamed: int | None = None,
        label_text: str | None = None,
    ) -> Self:
        texts = None if label_text is None else self._read_tokens([label_text])
        named = np.array([] if renamed is None else [renamed], dtype=np.int64)
        self._adopt(regroup(self._ensemble, self._options(), main, merged, named, texts))
        if self.label_names_ is not None:
            self.label_names_ = self.label_names_[main]
        return self

    def _checked_labels(self, labels: Sequence[int]) -> npt.NDArray[np.int64]:
        self._check_fitted()
        found = np.unique(np.asarray(labels, dtype=np.int64))
        outside = found[(found < 0) | (found >= self.n_labels_)]
        if not len(found) or len(outside):
            what = outside[0] if len(outside) else "none"
            raise DataFormatError(f"give labels of 0 to {self.n_labels_ - 1}, got {what}.")
        return found

    def catch_up(self, *, progress: Progress = SILENT) -> Self:
        """Train the parts on from where they are, with all the points that are known now.

        A good deal quicker than `refit`, as nothing is held out and weights are near where they
        should be; see `dxml.joint._teaching`. The weights of the parts stay.
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
        ensemble = self._ensemble.without_holes()
        X, Y = ensemble.known.points, ensemble.known.labels
        kept = {name: vars(self)[name] for name in GIVEN if name in vars(self)}
        if self.scaler_.mean is not None and self.scaler_.spread is not None:
            X = sp.csr_matrix(X.toarray() * self.scaler_.spread + self.scaler_.mean)
        texts = _known_texts(ensemble)
        self.fit(X, Y, texts=texts, label_texts=label_texts, progress=progress)
        vars(self).update(kept)
        return self

    def _adopt(self, ensemble: Ensemble) -> None:
        self._ensemble, self._tie_place = ensemble, ensemble.known.tie_order
        self.n_samples_, self.n_labels_ = ensemble.known.n_points, ensemble.known.n_labels
        self.label_frequency_ = ensemble.known.counts

    def _checked_rows(self, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
        self._check_fitted()
        found = np.asarray(rows, dtype=np.int64).ravel()
        outside = found[(found < 0) | (found >= self.n_samples_)]
        if len(outside):
            raise DataFormatError(f"there is no point {outside[0]} in {self.n_samples_} points.")
        return found


def _known_texts(ensemble: Ensemble) -> Texts | None:
    """The texts of the known points, as far as parts keep them."""
    deep, vectors = (ensemble.parts.get(kind.name) for kind in (DeepPart, VectorsPart))
    tokens = deep.texts if isinstance(deep, DeepPart) else None
    rows = VectorRows(vectors.how, vectors.points) if isinstance(vectors, VectorsPart) else None
    return None if tokens is None and rows is None else Texts(tokens, rows)
