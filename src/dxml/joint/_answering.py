"""What a fitted joint model answers: rankings, predictions, and why.

A query goes from scaled rows to neighbours, candidates, scores of every part, and a mixture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.device import resolve_device
from dxml._core.html import Shown
from dxml._core.precision import Precision
from dxml._core.scaling import FeatureScaler
from dxml._core.sparse import plain_csr
from dxml._core.validation import check_label_ids
from dxml._deep.texts import Texts
from dxml._deep.tokens import Tokens
from dxml._neighbors.cosine import GPU_PAIRS
from dxml.base import Classifier
from dxml.exceptions import DataFormatError, ParameterError, advise
from dxml.joint._ensemble import Ensemble
from dxml.joint._explaining import Evidence, Explainer, strongest
from dxml.joint._held_out import HeldOut
from dxml.joint._known_features import only_known
from dxml.joint._mixture import NEVER, Mixture, expected_number
from dxml.joint._past_formats import upgraded
from dxml.joint._plan import Plan
from dxml.joint._promises import DEPTH, Promises
from dxml.joint.parts._deep import DeepPart
from dxml.joint.parts._linear import DEFAULT_C, LinearPart
from dxml.joint.parts._vectors import VectorsPart
from dxml.joint.parts.protocol import Part, Query
from dxml.progress import SILENT, Progress
from dxml.topk import TopK, topk_from_csr

__all__ = ["Answering"]

PAIRS = 1 << 22  # pairs scored at a time
KERNEL_SCORES = 1 << 25  # of all labels, that a kernel beside a shortlist has at a time
LEAST = np.float32(1e-6)  # probability of a label, and of its absence

Floats = npt.NDArray[np.float32]


class Answering(Classifier):
    """A joint model that is fitted or opened; `dxml.joint.Joint` describes its attributes."""

    C: float | None
    device: str
    precision: Precision
    scaler_: FeatureScaler
    mixture_: Mixture
    held_out_: HeldOut | None
    promises_: Promises | None
    _ensemble: Ensemble

    def _read(self, texts: Sequence[str] | None) -> Texts | None:
        """Texts as the parts read them; None where no part does."""
        vectors = self.parts_.get(VectorsPart.name)
        tokens = self._read_tokens(texts)
        if texts is None or not isinstance(vectors, VectorsPart):
            return None if tokens is None else Texts(tokens)
        return Texts(tokens, vectors.how.read(texts, resolve_device(self.device)))

    def are_read(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Of each text: whether a part reads anything in it, beside the features."""
        read = self._read(texts)
        return np.zeros(len(texts), dtype=np.bool_) if read is None else read.say_something

    def _read_tokens(self, texts: Sequence[str] | None) -> Tokens | None:
        """Texts as the encoder that was fine-tuned reads them; None where there is none."""
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
    def names_suffice(self) -> bool:
        """Whether labels without an example can be predicted by their names."""
        deep = self.parts_.get(DeepPart.name)
        return isinstance(deep, DeepPart) and deep.name_line is not None

    @property
    def train_features_(self) -> sp.csr_matrix:
        return self._ensemble.known.without_holes.points

    @property
    def train_labels_(self) -> sp.csr_matrix:
        return self._ensemble.known.without_holes.labels

    def point_labels(self, row: int) -> npt.NDArray[np.int32]:
        """The labels of one training point."""
        known = self._ensemble.known
        return known.labels_of(known.holes.place_of([row]))

    def is_empty(self, row: int) -> bool:
        """Whether a training point has no feature."""
        known = self._ensemble.known
        place = int(known.holes.place_of(row))
        start, stop = known.points.indptr[place : place + 2]
        return bool(start == stop)

    @property
    def C_(self) -> float:
        linear = self.parts_.get(LinearPart.name)
        return linear.C if isinstance(linear, LinearPart) else DEFAULT_C

    @property
    def history_(self) -> list[float]:
        return list(getattr(self.parts_.get("wide"), "history", ()))

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
            The points' texts; a model with an encoder or with vectors needs them.
        """
        rows = self._checked(X)
        if texts is not None and len(texts) != rows.shape[0]:
            raise DataFormatError(
                f"expected a text for each of {rows.shape[0]} points, got {len(texts)}."
            )
        return self._in_batches(rows, k, texts, progress)

    def _rank(self, X: sp.csr_matrix, k: int) -> TopK:
        return self._rank_texts(X, k, None)

    def _rank_texts(self, X: sp.csr_matrix, k: int, texts: Sequence[str] | None) -> TopK:
        rows = self._rows_at_a_time(X.shape[0])
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

    def _rows_at_a_time(self, n: int) -> int:
        """Of n points, as many as are ranked together, where scores of all labels are in memory."""
        if self.plan_.every_label:
            return max(1, PAIRS // self.n_labels_)
        return max(1, KERNEL_SCORES // self.n_labels_) if "kernel" in self.parts_ else n

    def _rank_rows(self, X: sp.csr_matrix, k: int, texts: Texts | None) -> TopK:
        X = self._scaled(X)
        ensemble = self._ensemble
        query = ensemble.ask(X, self._place(X.shape[0]), texts)
        pairs, carried = query.pairs, ensemble.known.carried
        mixed = self.mixture_.mix(ensemble.scores(query))
        if not carried.all():
            mixed[~carried[pairs.indices]] = NEVER
        scored = plain_csr(mixed, pairs.indices, pairs.indptr, pairs.shape)
        ranking = topk_from_csr(scored, k, self._tie_place)
        n_features = np.diff(X.indptr)
        probability = self.mixture_.ranked(ranking.scores, n_features)
        probability[ranking.indices < 0] = 0
        alone = n_features == 0
        if texts is not None:
            alone &= ~texts.say_something
        if alone.any():  # nothing to go by but how often a label occurs
            most, shares = ensemble.wordless
            ranking.indices[alone], probability[alone] = most[:k], shares[:k]
        return self._with_unseen(TopK(ranking.indices, probability), query)

    def _scaled(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Rows of new points as the parts know them."""
        if self.scaler_.mean is None:
            X = only_known(X, self._ensemble.known.feature_counts)
        return self.scaler_.transform(X)

    def _with_unseen(self, ranking: TopK, query: Query) -> TopK:
        """With labels that no known point carries, where a part can tell them."""
        for part in self.parts_.values():
            found = part.unseen(query, ranking.k)
            if found is not None:
                known = ranking.indices
                carried = (known >= 0) & query.known.carried[np.maximum(known, 0)]
                ids = np.concatenate([known, found[0]], axis=1)
                scores = np.concatenate([np.where(carried, ranking.scores, -1), found[1]], axis=1)
                best = np.argsort(-scores, axis=1, kind="stable")[:, : ranking.k]
                scores = np.take_along_axis(scores, best, axis=1)
                ids = np.where(scores >= 0, np.take_along_axis(ids, best, axis=1), np.int32(-1))
                ranking = TopK(ids, np.maximum(scores, 0))
        return ranking

    def predict(
        self,
        X: Any,
        k: int | None = None,
        *,
        threshold: float | None = None,
        precision: float | None = None,
        recall: float | None = None,
        texts: Sequence[str] | None = None,
    ) -> Any:
        """Labels of each point, in the form that `fit` was given.

        By default a point gets as many labels as it should have by their probabilities: the number
        with the highest expected F1. Where `fit` had one label a point, it is the most probable.

        Parameters
        ----------
        k : int, optional
            This many labels for every point.
        threshold : float, optional
            Every label of at least this probability, out of the 100 best; it may be none.
        precision, recall : float, optional
            Every label, out of the 50 best, above the threshold that keeps this; see
            `threshold_for`.
        texts : sequence of str, optional
            As in `predict_topk`.
        """
        if sum(each is not None for each in (k, threshold, precision, recall)) > 1:
            raise ParameterError("give one of k, threshold, precision and recall.")
        if k is not None:
            return self._decode(self.predict_topk(X, k, texts=texts))
        if precision is not None or recall is not None:
            least = self.threshold_for(precision=precision, recall=recall)
            ranking = self.predict_topk(X, min(DEPTH, self.n_labels_), texts=texts)
            return self._decode(ranking.at_least(least))
        self._check_fitted()
        if threshold is None and self.target_.form == "values":
            return self._best_values(self.predict_topk(X, 1, texts=texts))
        ranking = self.predict_topk(X, min(100, self.n_labels_), texts=texts)
        if threshold is None:
            return self._decode(self.expected_best(ranking))
        return self._decode(ranking.at_least(threshold))

    def threshold_for(
        self, *, precision: float | None = None, recall: float | None = None
    ) -> float:
        """The probability from which on labels keep a promised precision or recall.

        Parameters
        ----------
        precision : float, optional
            The share of the labels given that are right, over all points, at least.
        recall : float, optional
            The share of the true labels that are given, over all points, at least.

        Returns
        -------
        float
            The lowest threshold that keeps the precision, or the highest that keeps the recall,
            with 95 % confidence: 19 of 20 trainings on such data keep it on new points of the same
            kind. Where the held-out points do not allow the promise, it is a `ParameterError`.
        """
        self._check_fitted()
        if self.promises_ is None:
            raise ParameterError(
                "this model can promise no precision and no recall: it was trained on too few "
                "points, or by an older version. Train it again, on more points, or take "
                f"{advise('threshold', '--threshold')}."
            )
        return self.promises_.threshold(precision, recall)

    @staticmethod
    def expected_best(ranking: TopK) -> TopK:
        """As many labels of each point as have the highest expected F1."""
        kept = np.arange(ranking.k) < expected_number(ranking)[:, None]
        return TopK(np.where(kept, ranking.indices, np.int32(-1)), ranking.scores)

    def predict_proba(self, X: Any, *, texts: Sequence[str] | None = None) -> Floats:
        """The probability of every label, float32 of shape (n_samples, n_labels).

        Where `fit` had one label a point, the probabilities of a point add up to 1. Labels that
        were not ranked have almost none. Many labels of many points take much memory:
        `predict_topk` gives the best. A model with an encoder needs the points' `texts`.
        """
        scores = np.clip(super()._all_scores(X, texts), LEAST, 1 - LEAST)
        if self.target_.form == "values":
            scores /= scores.sum(axis=1, keepdims=True)
        return scores

    def _all_scores(self, X: Any, texts: Sequence[str] | None = None) -> Floats:
        return self.predict_proba(X, texts=texts)

    def explain(
        self,
        X: Any,
        k: int | None = None,
        *,
        n_features: int = 10,
        texts: Sequence[str] | None = None,
    ) -> list[Evidence]:
        """Why the k best labels of one point are what they are; see `dxml.joint._explaining`.

        Parameters
        ----------
        X : one row, of shape (1, n_features)
        k : int, optional
            5 by default, or the number of labels if there are fewer.
        n_features : int
            Features named for each label, out of the point's 50 largest; 0: none.
        texts : sequence of one str, optional
            The point's text; a model that reads texts needs it. Features are left out one by one
            and the text stays: `effects` tells what its words do.
        """
        rows = self._checked(X)
        if rows.shape[0] != 1:
            raise DataFormatError(f"one point is explained at a time, got {rows.shape[0]} rows.")
        best = self._in_batches(rows, k, texts).row(0)
        labels, probabilities = [label for label, _ in best], [p for _, p in best]
        found = self._explained(rows, labels, n_features, texts)
        both = zip(found, probabilities, strict=True)
        return Shown(replace(why, probability=p) for why, p in both)

    def explain_labels(
        self,
        X: Any,
        labels: Sequence[int],
        *,
        n_features: int = 0,
        texts: Sequence[str] | None = None,
    ) -> list[Evidence]:
        """As `explain`, for the labels that are asked about."""
        return self._explained(self._checked(X), labels, n_features, texts)

    def _explained(
        self,
        rows: sp.csr_matrix,
        labels: Sequence[int],
        n_features: int,
        texts: Sequence[str] | None = None,
    ) -> list[Evidence]:
        read, nothing = self._read(texts), self._read([""])
        rows = self._scaled(rows)
        wanted, explainer = check_label_ids(labels, self.n_labels_), self._explainer()
        probability, added, voters = explainer.added(rows, wanted, read, nothing)
        features: list[Any] = [()] * len(labels)
        if n_features:
            names, effects = explainer.effects(rows, wanted, read)
            features = [strongest(names.tolist(), column, n_features) for column in effects.T]
        return Shown(
            Evidence(label, float(probability[i]), added[i], voters[i], features[i])
            for i, label in enumerate(wanted.tolist())
        )

    def score_labels(
        self, X: Any, labels: npt.ArrayLike, *, texts: Sequence[str] | None = None
    ) -> Floats:
        """The mixed scores, before calibration, of these labels: (n_samples, n_labels_given)."""
        rows = self._scaled(self._checked(X))
        return self._explainer().scores(
            rows, check_label_ids(labels, self.n_labels_), self._read(texts)
        )

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
        row, rows = self._scaled(self._checked(X)), self._scaled(self._checked(without))
        if self.scaler_.rows:
            products, squares = (rows @ row.T).toarray(), rows.multiply(rows).sum(axis=1)
            lengths = products.ravel() / np.maximum(np.asarray(squares).ravel(), 1e-12)
            shortened = rows.data * np.repeat(lengths.astype(np.float32), np.diff(rows.indptr))
            rows = plain_csr(shortened, rows.indices, rows.indptr, rows.shape)
        wanted = check_label_ids(labels, self.n_labels_)
        return self._explainer().differences(row, rows, wanted, self._read(texts))

    def _explainer(self) -> Explainer:
        return Explainer(self._ensemble, self.mixture_, self._place(1))

    def _place(self, n_points: int) -> str:
        """The device to answer on; torch is not asked where only a CPU would do the work."""
        searched_there = n_points * self.n_samples_ >= GPU_PAIRS
        if searched_there or any(part.on_device for part in self.parts_.values()):
            return resolve_device(self.device)
        return "cpu"

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        config, arrays = self._ensemble.state(self.precision)
        config["held_out"] = None if self.held_out_ is None else self.held_out_.state()
        promises = {} if self.promises_ is None else self.promises_.arrays()
        return config, {**self.scaler_.arrays(), **self.mixture_.arrays(), **promises, **arrays}

    def _restore(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        config, arrays = upgraded(config, arrays, self.n_samples_, self.C or DEFAULT_C)
        self.scaler_ = FeatureScaler.from_arrays(arrays, self.n_features_in_)
        shape = self.n_samples_, self.n_features_in_
        self._ensemble = Ensemble.restore(config, arrays, self._tie_place, shape)
        opinions = {name: part.opinion for name, part in self.parts_.items()}
        self.mixture_ = Mixture.from_arrays(arrays, opinions)
        self.held_out_ = HeldOut.from_state(config.get("held_out"))
        self.promises_ = Promises.from_arrays(arrays)
