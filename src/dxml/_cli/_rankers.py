"""A saved model that ranks the points of a file and writes what it finds, for ``dxml predict``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dxml._cli._promise import Promise
from dxml._cli._tables import Reading
from dxml.exceptions import ParameterError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from dxml.base import Classifier
    from dxml.progress import Stage
    from dxml.tagging._tagger import TextTagger
    from dxml.text import TextTable
    from dxml.topk import TopK

__all__ = ["Job", "Ranker", "Tally", "open_ranker"]


TEXTS = 2048  # ranked at a time


class Tally(NamedTuple):
    """Points that were ranked, and those of which the model knows nothing."""

    points: int
    unknown: int


@dataclass(frozen=True)
class Job:
    """What is asked for: by which model, how many labels, and how they are written."""

    model: Path
    format: str
    top: int | None = None
    threshold: float | None = None
    with_parents: bool = False
    split: int | None = None
    reading: Reading = field(default_factory=lambda: Reading([]))
    promise: Promise = field(default_factory=Promise)

    @property
    def depth(self) -> int:
        """Labels of a point that are ranked."""
        from dxml.topk import default_top

        return self.top or default_top(self.threshold)

    def kept_by(self, model: Classifier | TextTagger) -> Job:
        """With the threshold at which a model keeps what is promised."""
        if not self.promise.asked:
            return self
        return replace(self, threshold=self.promise.threshold(model), promise=Promise())

    def wanted(self, ranking: TopK, method: str) -> TopK:
        """The labels of a ranking that are wanted; a threshold is one of probabilities."""
        from dxml.metrics import are_probabilities

        if self.threshold is None:
            return ranking
        if not are_probabilities(ranking):
            raise ParameterError(
                f"--threshold goes with probabilities, and the scores of method {method!r} are "
                "none: take --top."
            )
        return ranking.at_least(self.threshold)


class Ranker(Protocol):
    """An opened model."""

    unit: str

    def write(self, data: str, output: Path | None, stage: Stage) -> Tally:
        """Rank the points of a file, and write each block before the next is read."""
        ...


def open_ranker(job: Job) -> Ranker:
    """Open the model of a job, and refuse what it cannot do."""
    from dxml.methods import TAGGER, saved_method

    if (method := saved_method(job.model)) == TAGGER:
        return TextRanker(job)
    job.reading.refuse(job.model, method)
    if job.with_parents:
        raise ParameterError(
            f"{job.model} holds no tagger, and so no parents: drop --with-parents."
        )
    return PointRanker(job)


def _rank_points(shared: tuple[Classifier, int], X: csr_matrix) -> TopK:
    estimator, top = shared
    return estimator.predict_topk(X, top)


def _rank_texts(shared: tuple[TextTagger, int], texts: Sequence[str]) -> TopK:
    tagger, top = shared
    return tagger.rank(texts, top)


class PointRanker:
    """A model of features."""

    unit = "points"

    def __init__(self, job: Job) -> None:
        from dxml.methods import load_model

        self._model = load_model(job.model)
        self._job = job.kept_by(self._model)
        names = self._model.label_names_
        self._names = None if names is None else names.tolist()

    def write(self, data: str, output: Path | None, stage: Stage) -> Tally:
        """As `Ranker.write`."""
        from dxml._cli._write import named_rows, write_rows, write_scores

        n_labels, done = self._model.n_labels_, 0

        def counted() -> Iterator[tuple[TopK, range]]:
            nonlocal done
            for ranking in self._ranked(data):
                first, done = done, done + len(ranking)
                yield ranking, range(first, done)
                stage.advance(len(ranking))

        if self._job.format == "npz":
            assert output is not None
            scores = ((ranking.to_csr(n_labels), rows, rows.stop) for ranking, rows in counted())
            write_scores(scores, n_labels, output)
        else:
            found = (named_rows(ranking, self._names, rows) for ranking, rows in counted())
            write_rows(found, self._job.format, output)
        return Tally(done, 0)

    def _ranked(self, data: str) -> Iterator[TopK]:
        from dxml._core.blocks import run_blocks
        from dxml.data._loading import open_blocks

        model, job = self._model, self._job
        depth = job.depth if job.top else min(job.depth, model.n_labels_)
        blocks = open_blocks(data, "test", job.split, (model.n_features_in_, model.n_labels_))
        for found in run_blocks(_rank_points, (model, depth), blocks):
            yield job.wanted(found, model.method)


class TextRanker:
    """A tagger."""

    unit = "texts"

    def __init__(self, job: Job) -> None:
        from dxml._cli._model import open_tagger

        if job.split is not None:
            raise ParameterError("a table of texts has no splits: leave --split out.")
        self._tagger = open_tagger(job.model)
        self._job = job.kept_by(self._tagger)
        self._columns = job.reading.columns(self._tagger.columns)
        if job.with_parents:
            _check_parents(self._tagger, job.format)

    def write(self, data: str, output: Path | None, stage: Stage) -> Tally:
        """As `Ranker.write`."""
        from dxml._cli._write import Row, named_rows, write_rows, write_scores

        tagger, n_texts, n_mute = self._tagger, 0, 0

        def counted() -> Iterator[tuple[TextTable, TopK, set[int]]]:
            nonlocal n_texts, n_mute
            for table, ranking in self._ranked(data):
                mute = set(tagger.nothing_known(table.texts))
                yield table, ranking, mute
                n_texts += len(table)
                n_mute += len(mute)
                stage.advance(len(table))

        def rows() -> Iterator[Iterator[Row]]:
            for table, ranking, mute in counted():
                found = named_rows(ranking, tagger.labels_, table.names)
                if self._job.with_parents:
                    tags = tagger.named(ranking, with_parents=True)
                    pairs = zip(table.names, tags, strict=True)
                    found = (Row(name, [(str(tag), p) for tag, p in row]) for name, row in pairs)
                yield (row._replace(nothing_known=place in mute) for place, row in enumerate(found))

        if self._job.format == "npz":
            assert output is not None
            n_labels = len(tagger.labels_)
            scores = (
                (ranking.to_csr(n_labels), table.rows or (), n_texts + len(table) + table.skipped)
                for table, ranking, _ in counted()
            )
            write_scores(scores, n_labels, output)
        else:
            write_rows(rows(), self._job.format, output, "probability")
        return Tally(n_texts, n_mute)

    def _ranked(self, data: str) -> Iterator[tuple[TextTable, TopK]]:
        from dxml._core.blocks import run_pairs

        job = self._job
        tables = job.reading.read_blocks(data, self._columns, TEXTS)
        shared = (self._tagger, job.depth)
        for table, ranking in run_pairs(_rank_texts, shared, tables, lambda table: table.texts):
            yield table, job.wanted(ranking, "joint")


def _check_parents(tagger: TextTagger, format: str) -> None:
    if format == "npz":
        raise ParameterError("--format npz has no columns for parents: take tsv, csv or jsonl.")
    if tagger.thesaurus is None:
        raise ParameterError(
            "the tagger was trained without --label-info, and knows no parents: "
            "drop --with-parents."
        )
