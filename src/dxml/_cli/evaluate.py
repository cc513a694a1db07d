"""``dxml evaluate``."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from dxml._cli._options import DATA, MODEL, QUIET, RAY, SPLIT
from dxml._cli._ranked import Ranked, rank_data
from dxml._cli._tables import ENCODING, LABELS, SEPARATOR, SKIP, TEXT, Reading

__all__ = ["evaluate"]


def evaluate(
    data: str = DATA,
    model: Path = MODEL,
    split: int | None = SPLIT,
    text: list[str] = TEXT,
    labels: str | None = LABELS,
    label_separator: str | None = SEPARATOR,
    encoding: str = ENCODING,
    skip_bad_rows: bool = SKIP,
    as_json: bool = typer.Option(False, "--json", help="One JSON object instead of a table."),
    ray: str | None = RAY,
    quiet: bool = QUIET,
) -> None:
    """Score a model on DATA, where the right labels are known.

    P, nDCG, PSP, PSnDCG, recall, macro-averages and coverage at 1, 3 and 5, in
    per cent; and ECE, the calibration error, of scores between 0 and 1. A named
    data set means its test part; for a tagger, DATA is a table of texts with
    labels.
    """
    from dxml._core.cluster import open_cluster
    from dxml.progress import open_progress

    reading = Reading(text, labels, None, label_separator, encoding, skip_bad_rows)
    with open_cluster(ray), open_progress(quiet or as_json) as progress:
        ranked = rank_data(data, model, split, reading, progress)
    scores, ks = _scores(ranked)
    if as_json:
        rounded = {name: round(value, 4) for name, value in scores.items()}
        rounded |= {"points": len(ranked.ranking), "seconds": round(ranked.seconds, 4)}
        typer.echo(json.dumps(rounded))
    else:
        _print_table(scores, ks, len(ranked.ranking), ranked.seconds)


def _scores(ranked: Ranked) -> tuple[dict[str, float], tuple[int, ...]]:
    """Every measure by name, and the depths it is measured at."""
    from dxml import metrics

    ranking, truth, estimator = ranked.ranking, ranked.truth, ranked.estimator
    frequency, n = estimator.label_frequency_, estimator.n_samples_
    inverse = metrics.inverse_propensity(frequency, n, *ranked.propensity)
    ks = tuple(k for k in (1, 3, 5) if k <= ranking.k)
    found = metrics.evaluate(truth, ranking, ks=ks, inverse_propensity=inverse)
    if metrics.are_probabilities(ranking):
        found |= {f"ECE@{k}": 100 * metrics.calibration_error(truth, ranking, k) for k in ks}
    return found, ks


def _print_table(scores: dict[str, float], ks: tuple[int, ...], n: int, seconds: float) -> None:
    from rich.table import Table

    from dxml._cli._console import table_console

    table = Table("", *(f"@{k}" for k in ks), title=f"{n:,} points, per cent")
    for measure in dict.fromkeys(key.partition("@")[0] for key in scores):
        table.add_row(measure, *(f"{scores[f'{measure}@{k}']:.2f}" for k in ks))
    table_console().print(table)
    typer.echo(f"predicted in {seconds:.2f} s, {1000 * seconds / max(n, 1):.3f} ms a point")
