"""``dxml evaluate``."""

from __future__ import annotations

import json
import time
from pathlib import Path

import typer

from dxml.cli._options import DATA, MODEL, QUIET, SPLIT

__all__ = ["evaluate"]


def evaluate(
    data: str = DATA,
    model: Path = MODEL,
    split: int | None = SPLIT,
    as_json: bool = typer.Option(False, "--json", help="One JSON object instead of a table."),
    quiet: bool = QUIET,
) -> None:
    """Score a model on DATA: P, nDCG, PSP, PSnDCG, recall, macro and coverage at 1, 3 and 5.

    A named data set means its test part. Values are percentages.
    """
    from dxml import metrics
    from dxml.cli._progress import open_progress
    from dxml.data import open_data
    from dxml.methods import load_model

    estimator = load_model(model)
    widths = (estimator.n_features_in_, estimator.n_labels_)
    points = open_data(data, "test", split, widths=widths)
    depth = min(5, estimator.n_labels_)
    start = time.perf_counter()
    with open_progress(quiet or as_json) as progress:
        ranking = estimator.predict_topk(points.X, depth, progress=progress)
    seconds = time.perf_counter() - start
    a, b = points.propensity
    inverse = metrics.inverse_propensity(estimator.label_frequency_, estimator.n_samples_, a, b)
    truth = estimator.encode_labels(points.Y)
    ks = tuple(k for k in (1, 3, 5) if k <= depth)
    scores = metrics.evaluate(truth, ranking, ks=ks, inverse_propensity=inverse)
    if as_json:
        rounded = {name: round(value, 4) for name, value in scores.items()}
        rounded |= {"points": points.n_samples, "seconds": round(seconds, 4)}
        typer.echo(json.dumps(rounded))
    else:
        _print_table(scores, ks, points.n_samples, seconds)


def _print_table(scores: dict[str, float], ks: tuple[int, ...], n: int, seconds: float) -> None:
    from rich.table import Table

    from dxml.cli._console import table_console

    table = Table("", *(f"@{k}" for k in ks), title=f"{n:,} points, per cent")
    for measure in dict.fromkeys(key.partition("@")[0] for key in scores):
        table.add_row(measure, *(f"{scores[f'{measure}@{k}']:.2f}" for k in ks))
    table_console().print(table)
    typer.echo(f"predicted in {seconds:.2f} s, {1000 * seconds / max(n, 1):.3f} ms a point")
