"""``dxml predict``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

from dxml.cli._options import DATA, MODEL, QUIET, SPLIT

__all__ = ["OutputFormat", "predict"]


class OutputFormat(StrEnum):
    """How predictions are written."""

    tsv = "tsv"
    jsonl = "jsonl"
    npz = "npz"


def predict(
    data: str = DATA,
    model: Path = MODEL,
    top: int = typer.Option(5, "--top", min=1, help="Labels a point."),
    output: Path | None = typer.Option(
        None, "--output", "-o", metavar="FILE", help="Where to write; standard output if not given."
    ),
    format: OutputFormat = typer.Option(
        OutputFormat.tsv,
        "--format",
        help="tsv: point, rank, label, score a line; jsonl: an object a point; npz: sparse scores.",
    ),
    split: int | None = SPLIT,
    quiet: bool = QUIET,
) -> None:
    """Rank labels for the points of DATA.

    A named data set means its test part.
    """
    from dxml.cli._progress import open_progress
    from dxml.cli._write import write_predictions
    from dxml.data import open_data
    from dxml.methods import load_model

    estimator = load_model(model)
    widths = (estimator.n_features_in_, estimator.n_labels_)
    points = open_data(data, "test", split, widths=widths)
    with open_progress(quiet) as progress:
        ranking = estimator.predict_topk(points.X, top, progress=progress)
    write_predictions(ranking, estimator, format.value, output)
