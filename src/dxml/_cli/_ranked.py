"""A ranking of DATA by a saved model and the true labels, for commands that evaluate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dxml._cli._tables import Reading

if TYPE_CHECKING:
    import scipy.sparse as sp

    from dxml.base import Classifier
    from dxml.progress import Progress
    from dxml.topk import TopK

__all__ = ["Ranked", "rank_data"]


@dataclass(frozen=True)
class Ranked:
    """A ranking, the truth beside it, and the classifier behind it.

    Attributes
    ----------
    unknown : csr_matrix or None
        Labels of the points that the model does not know, a column a label of `unknown_names`.
    names : sequence or None
        Of the model's labels.
    known_again : int
        Points that the model was trained on or has learnt.
    """

    ranking: TopK
    truth: sp.csr_matrix
    estimator: Classifier
    seconds: float
    propensity: tuple[float, float] = (0.55, 1.5)
    unknown: sp.csr_matrix | None = None
    unknown_names: Sequence[str] = ()
    names: Sequence[str] | None = None
    known_again: int = 0

    @property
    def whole_truth(self) -> sp.csr_matrix:
        """With the labels that the model does not know, after the others."""
        import scipy.sparse as sp

        if self.unknown is None:
            return self.truth
        return sp.csr_matrix(sp.hstack([self.truth, self.unknown], format="csr"))


def rank_data(
    data: str,
    model: Path,
    split: int | None,
    reading: Reading,
    progress: Progress,
    depth: int = 5,
) -> Ranked:
    """Rank the test part of a named data set, a file, or a table of texts where that is asked."""
    from dxml.methods import TAGGER, saved_method

    if (method := saved_method(model)) == TAGGER:
        return _rank_texts(data, model, split, reading, progress, depth)
    reading.refuse(model, method)
    return _rank_features(data, model, split, progress, depth)


def _rank_features(
    data: str, model: Path, split: int | None, progress: Progress, depth: int
) -> Ranked:
    from dxml.data import open_data
    from dxml.methods import load_model

    estimator = load_model(model)
    widths = (estimator.n_features_in_, estimator.n_labels_)
    points = open_data(data, "test", split, widths=widths)
    start = time.perf_counter()
    ranking = estimator.predict_topk(points.X, min(depth, estimator.n_labels_), progress=progress)
    seconds = time.perf_counter() - start
    truth = estimator.encode_labels(points.Y)
    names = None if estimator.label_names_ is None else estimator.label_names_.tolist()
    return Ranked(ranking, truth, estimator, seconds, points.propensity, names=names)


def _rank_texts(
    data: str,
    model: Path,
    split: int | None,
    reading: Reading,
    progress: Progress,
    depth: int,
) -> Ranked:
    from dxml._cli._model import open_tagger
    from dxml.exceptions import DataFormatError, ParameterError

    if split is not None:
        raise ParameterError("a table of texts has no splits: leave --split out.")
    tagger = open_tagger(model)
    columns = reading.columns(tagger.columns)
    table = reading.read_labelled(data, columns, progress, distinct_ids=False)
    truth = tagger.encode_labels(table.labels or ())
    if truth.nnz == 0:
        raise DataFormatError(
            f"{data}: none of its labels is known to the model. Look at the column "
            f"{columns.labels!r}, or give --label-separator."
        )
    start = time.perf_counter()
    ranking = tagger.rank(table.texts, depth, progress=progress)
    seconds = time.perf_counter() - start
    unknown_names, unknown = tagger.unknown_labels(table.labels or ())
    return Ranked(
        ranking,
        truth,
        tagger.model,
        seconds,
        unknown=unknown,
        unknown_names=unknown_names,
        names=tagger.labels_,
        known_again=len(tagger.known_again(table.texts, table.ids)),
    )
