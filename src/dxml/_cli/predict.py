"""``dxml predict``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dxml._cli._options import DATA, MODEL, QUIET, RAY, SPLIT
from dxml._cli._tables import ENCODING, ID, SKIP, TEXT, Reading
from dxml.exceptions import ParameterError

if TYPE_CHECKING:
    from dxml.tagging._tagger import TextTagger

__all__ = ["OutputFormat", "predict"]


class OutputFormat(StrEnum):
    """How predictions are written."""

    tsv = "tsv"
    jsonl = "jsonl"
    npz = "npz"


def predict(
    data: str = DATA,
    model: Path = MODEL,
    top: int = typer.Option(5, "--top", metavar="N", min=1, help="Labels a point."),
    output: Path | None = typer.Option(
        None, "--output", "-o", metavar="FILE", help="Where to write; by default standard output."
    ),
    format: OutputFormat = typer.Option(
        OutputFormat.tsv,
        "--format",
        metavar="KIND",
        help="tsv, jsonl, or npz: sparse scores.",
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
    encoding: str = ENCODING,
    skip_bad_rows: bool = SKIP,
    ray: str | None = RAY,
    quiet: bool = QUIET,
) -> None:
    """Rank labels for the points of DATA.

    A named data set means its test part. Where the model is a tagger, DATA is a
    table of texts (JSON lines, CSV, TSV, Parquet), and labels come by name with
    their probabilities.

    Points go by their ids, or else by their row in the table, from 0. Rows that
    --skip-bad-rows leaves out are counted, so the others keep their numbers; in
    npz they are empty rows.
    """
    from dxml._cli._write import check_output, write_predictions
    from dxml._core.cluster import open_cluster
    from dxml.data import open_data
    from dxml.methods import TAGGER, load_model, saved_method
    from dxml.progress import open_progress

    chosen = OutputFormat.jsonl if as_json else format
    reading = Reading(text, None, id, None, encoding, skip_bad_rows)
    check_output(chosen.value, output)
    if (method := saved_method(model)) == TAGGER:
        with open_cluster(ray):
            _predict_texts(data, model, top, output, chosen, with_parents, split, reading, quiet)
        return
    reading.refuse(model, method)
    if with_parents:
        raise ParameterError(f"{model} holds no tagger, and so no parents: drop --with-parents.")
    estimator = load_model(model)
    widths = (estimator.n_features_in_, estimator.n_labels_)
    points = open_data(data, "test", split, widths=widths)
    with open_cluster(ray), open_progress(quiet) as progress:
        ranking = estimator.predict_topk(points.X, top, progress=progress)
    names = None if estimator.label_names_ is None else estimator.label_names_.tolist()
    write_predictions(ranking, estimator.n_labels_, names, chosen.value, output)


def _predict_texts(
    data: str,
    model: Path,
    top: int,
    output: Path | None,
    format: OutputFormat,
    with_parents: bool,
    split: int | None,
    reading: Reading,
    quiet: bool,
) -> None:
    from dataclasses import replace

    from dxml._cli._write import Row, write_predictions, write_rows
    from dxml.progress import open_progress
    from dxml.tagging._tagger import TextTagger

    if split is not None:
        raise ParameterError("a table of texts has no splits: leave --split out.")
    tagger = TextTagger.load(model)
    if with_parents:
        _check_parents(tagger, format)
    columns = replace(reading.columns(tagger.columns), labels=None)
    if reading.id is None and not reading.has_column(data, columns.id):
        columns = replace(columns, id=None)  # the model's, which this table need not have
    with open_progress(quiet) as progress:
        table = reading.read(data, columns, progress)
        ranking = tagger.rank(table.texts, top, progress=progress)
    mute = set(tagger.nothing_known(table.texts))
    if mute:
        found = f"no word of {len(mute):,} of {len(table):,} texts is known"
        typer.echo(f"{found}: their labels are only frequent ones", err=True)
    if with_parents:
        tags = tagger.named(ranking, with_parents=True)
        rows: list[Row] = [
            (point, [(tag.name, tag.probability) for tag in row])
            for point, row in zip(table.names, tags, strict=True)
        ]
        write_rows(rows, format.value, output, "probability", mute)
        return
    names = tagger.labels_
    write_predictions(
        ranking,
        len(names),
        names,
        format.value,
        output,
        table=table,
        score="probability",
        nothing_known=mute,
    )


def _check_parents(tagger: TextTagger, format: OutputFormat) -> None:
    if format == OutputFormat.npz:
        raise ParameterError("--format npz has no columns for parents: take tsv or jsonl.")
    if tagger.thesaurus is None:
        raise ParameterError(
            "the tagger was trained without --label-info, and knows no parents: "
            "drop --with-parents."
        )
