"""``dxml predict``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dxml._cli._options import DATA, MODEL, QUIET, RAY, SPLIT
from dxml._cli._tables import ENCODING, ID, LINES, SKIP, TEXT, Reading
from dxml.exceptions import ParameterError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from dxml.base import Classifier
    from dxml.tagging._tagger import TextTagger
    from dxml.text import TextTable
    from dxml.topk import TopK

__all__ = ["OutputFormat", "predict"]


TEXTS = 2048  # ranked at a time
DEEP = 50  # labels a point among which a threshold chooses


class OutputFormat(StrEnum):
    """How predictions are written."""

    tsv = "tsv"
    csv = "csv"
    jsonl = "jsonl"
    npz = "npz"


def predict(
    data: str = DATA,
    model: Path = MODEL,
    top: int | None = typer.Option(
        None, "--top", metavar="N", min=1, help="Labels a point; 5, or 50 with --threshold."
    ),
    threshold: float | None = typer.Option(
        None, "--threshold", metavar="P", min=0, max=1, help="Only labels at least so probable."
    ),
    output: Path | None = typer.Option(
        None, "--output", "-o", metavar="FILE", help="Where to write; by default standard output."
    ),
    format: OutputFormat = typer.Option(
        OutputFormat.tsv,
        "--format",
        metavar="KIND",
        help="tsv, csv: a row a point, jsonl, npz.",
    ),
    as_json: bool = typer.Option(False, "--json", help="The same as --format jsonl."),
    with_parents: bool = typer.Option(
        False,
        "--with-parents",
        help="Of a tagger with --label-info: add broader labels.",
    ),
    split: int | None = SPLIT,
    text: list[str] = TEXT,
    id: str | None = ID,
    lines: bool = LINES,
    encoding: str = ENCODING,
    skip_bad_rows: bool = SKIP,
    ray: str | None = RAY,
    quiet: bool = QUIET,
) -> None:
    """Rank labels for the points of DATA.

    A named data set means its test part. Where the model is a tagger, DATA is a
    table of texts (JSON, CSV, TSV, Excel, Parquet) or a file or folder of plain
    text (.txt), and labels come by name with their probabilities. Features may
    come without labels: X.npz. DATA may be - for standard input: text or JSON, or
    the lines of libsvm where the model takes features.

    A file of any length is read in blocks, and what was ranked is written at
    once; only npz waits for the end.

    Points go by their ids, or else by their row in the table, from 0. Rows that
    --skip-bad-rows leaves out are counted, so the others keep their numbers; in
    npz they are empty rows.
    """
    from dxml._cli._write import check_output
    from dxml._core.cluster import open_cluster
    from dxml.methods import TAGGER, saved_method

    chosen = OutputFormat.jsonl if as_json else format
    reading = Reading(text, None, id, None, encoding, skip_bad_rows, lines)
    wanted = _Wanted(top, threshold)
    check_output(chosen.value, output)
    if (method := saved_method(model)) == TAGGER:
        with open_cluster(ray):
            _predict_texts(data, model, wanted, output, chosen, with_parents, split, reading, quiet)
        return
    reading.refuse(model, method)
    if with_parents:
        raise ParameterError(f"{model} holds no tagger, and so no parents: drop --with-parents.")
    with open_cluster(ray):
        _predict_features(data, model, wanted, output, chosen, split, quiet)


@dataclass(frozen=True)
class _Wanted:
    """How many labels of a point, and how probable."""

    top: int | None
    threshold: float | None

    @property
    def depth(self) -> int:
        return self.top or (5 if self.threshold is None else DEEP)

    def of(self, ranking: TopK, method: str) -> TopK:
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


def _rank_points(shared: tuple[Classifier, int], X: csr_matrix) -> TopK:
    estimator, top = shared
    return estimator.predict_topk(X, top)


def _rank_texts(shared: tuple[TextTagger, int], texts: Sequence[str]) -> TopK:
    tagger, top = shared
    return tagger.rank(texts, top)


def _predict_features(
    data: str,
    model: Path,
    wanted: _Wanted,
    output: Path | None,
    format: OutputFormat,
    split: int | None,
    quiet: bool,
) -> None:
    from dxml._cli._write import named_rows, write_rows, write_scores
    from dxml._core.blocks import run_blocks
    from dxml.data._loading import open_blocks
    from dxml.methods import load_model
    from dxml.progress import open_progress

    estimator = load_model(model)
    widths = (estimator.n_features_in_, estimator.n_labels_)
    names = None if estimator.label_names_ is None else estimator.label_names_.tolist()
    depth = wanted.depth if wanted.top else min(wanted.depth, estimator.n_labels_)
    with open_progress(quiet) as progress, progress.stage("predict", None, "points") as stage:

        def ranked() -> Iterator[tuple[int, TopK]]:
            done = 0
            blocks = open_blocks(data, "test", split, widths)
            for found in run_blocks(_rank_points, (estimator, depth), blocks):
                yield done, wanted.of(found, estimator.method)
                done += len(found)
                stage.advance(len(found))

        if format == OutputFormat.npz:
            assert output is not None
            scores = (
                (
                    ranking.to_csr(widths[1]),
                    range(first, first + len(ranking)),
                    first + len(ranking),
                )
                for first, ranking in ranked()
            )
            write_scores(scores, widths[1], output)
            return
        rows = (
            named_rows(ranking, names, range(first, first + len(ranking)))
            for first, ranking in ranked()
        )
        write_rows(rows, format.value, output)


def _predict_texts(
    data: str,
    model: Path,
    wanted: _Wanted,
    output: Path | None,
    format: OutputFormat,
    with_parents: bool,
    split: int | None,
    reading: Reading,
    quiet: bool,
) -> None:
    from dxml._cli._write import Row, named_rows, write_rows, write_scores
    from dxml._core.blocks import run_pairs
    from dxml.progress import open_progress
    from dxml.tagging._tagger import TextTagger

    if split is not None:
        raise ParameterError("a table of texts has no splits: leave --split out.")
    tagger = TextTagger.load(model)
    if with_parents:
        _check_parents(tagger, format)
    columns, n_texts, n_mute = reading.columns(tagger.columns), 0, 0
    with open_progress(quiet) as progress, progress.stage("predict", None, "texts") as stage:

        def ranked() -> Iterator[tuple[TextTable, TopK, set[int]]]:
            nonlocal n_texts, n_mute
            tables = reading.read_blocks(data, columns, TEXTS)
            found = run_pairs(
                _rank_texts, (tagger, wanted.depth), tables, lambda table: table.texts
            )
            for table, ranking in found:
                mute = set(tagger.nothing_known(table.texts))
                ranking = wanted.of(ranking, "joint")
                yield table, ranking, mute
                n_texts += len(table)
                n_mute += len(mute)
                stage.advance(len(table))

        def rows() -> Iterator[Iterator[Row]]:
            for table, ranking, mute in ranked():
                found = named_rows(ranking, tagger.labels_, table.names)
                if with_parents:
                    tags = tagger.named(ranking, with_parents=True)
                    pairs = zip(table.names, tags, strict=True)
                    found = (Row(name, [(str(tag), p) for tag, p in row]) for name, row in pairs)
                yield (row._replace(nothing_known=place in mute) for place, row in enumerate(found))

        if format == OutputFormat.npz:
            assert output is not None
            n_labels = len(tagger.labels_)
            scores = (
                (ranking.to_csr(n_labels), table.rows or (), n_texts + len(table) + table.skipped)
                for table, ranking, _ in ranked()
            )
            write_scores(scores, n_labels, output)
        else:
            write_rows(rows(), format.value, output, "probability")
    if n_mute:
        found = f"no word of {n_mute:,} of {n_texts:,} texts is known"
        typer.echo(f"{found}: their labels are only frequent ones", err=True)


def _check_parents(tagger: TextTagger, format: OutputFormat) -> None:
    if format == OutputFormat.npz:
        raise ParameterError("--format npz has no columns for parents: take tsv, csv or jsonl.")
    if tagger.thesaurus is None:
        raise ParameterError(
            "the tagger was trained without --label-info, and knows no parents: "
            "drop --with-parents."
        )
