"""``dxml evaluate``."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dxml.cli._options import DATA, MODEL, QUIET, SPLIT
from dxml.cli._tables import ENCODING, LABELS, SEPARATOR, SKIP, TEXT, Reading

if TYPE_CHECKING:
    import scipy.sparse as sp

    from dxml._progress import Progress
    from dxml.base import Classifier
    from dxml.topk import TopK

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
    quiet: bool = QUIET,
) -> None:
    """Score a model on DATA: P, nDCG, PSP, PSnDCG, recall, macro and coverage at 1, 3 and 5.

    A named data set means its test part; for a tagger, DATA is a table of texts with labels. Values
    are percentages.
    """
    from dxml.cli._progress import open_progress
    from dxml.methods import TAGGER, saved_method

    reading = Reading(text, labels, None, label_separator, encoding, skip_bad_rows)
    with open_progress(quiet or as_json) as progress:
        if (method := saved_method(model)) == TAGGER:
            run = _run_tagger(data, model, split, reading, progress)
        else:
            reading.refuse(model, method)
            run = _run_method(data, model, split, progress)
    scores, ks = run.scores()
    if as_json:
        rounded = {name: round(value, 4) for name, value in scores.items()}
        rounded |= {"points": len(run.ranking), "seconds": round(run.seconds, 4)}
        typer.echo(json.dumps(rounded))
    else:
        _print_table(scores, ks, len(run.ranking), run.seconds)


@dataclass(frozen=True)
class _Run:
    """A ranking, the truth beside it, and the classifier behind it."""

    ranking: TopK
    truth: sp.csr_matrix
    estimator: Classifier
    seconds: float
    propensity: tuple[float, float] = (0.55, 1.5)

    def scores(self) -> tuple[dict[str, float], tuple[int, ...]]:
        """Every measure by name, and the depths it is measured at."""
        from dxml import metrics

        frequency, n = self.estimator.label_frequency_, self.estimator.n_samples_
        inverse = metrics.inverse_propensity(frequency, n, *self.propensity)
        ks = tuple(k for k in (1, 3, 5) if k <= self.ranking.k)
        found = metrics.evaluate(self.truth, self.ranking, ks=ks, inverse_propensity=inverse)
        return found, ks


def _run_method(data: str, model: Path, split: int | None, progress: Progress) -> _Run:
    from dxml.data import open_data
    from dxml.methods import load_model

    estimator = load_model(model)
    widths = (estimator.n_features_in_, estimator.n_labels_)
    points = open_data(data, "test", split, widths=widths)
    start = time.perf_counter()
    ranking = estimator.predict_topk(points.X, min(5, estimator.n_labels_), progress=progress)
    seconds = time.perf_counter() - start
    return _Run(ranking, estimator.encode_labels(points.Y), estimator, seconds, points.propensity)


def _run_tagger(
    data: str, model: Path, split: int | None, reading: Reading, progress: Progress
) -> _Run:
    from dxml.exceptions import DataFormatError, ParameterError
    from dxml.tagger import TextTagger

    if split is not None:
        raise ParameterError("a table of texts has no splits: leave --split out.")
    tagger = TextTagger.load(model)
    columns = replace(reading.columns(tagger.columns), id=None)
    table = reading.read_labelled(data, columns, progress)
    truth = tagger.encode_labels(table.labels or ())
    if truth.nnz == 0:
        raise DataFormatError(
            f"{data}: none of its labels is known to the model. Look at the column "
            f"{columns.labels!r}, or give --label-separator."
        )
    start = time.perf_counter()
    ranking = tagger.rank(table.texts, 5, progress=progress)
    seconds = time.perf_counter() - start
    return _Run(ranking, truth, tagger.model, seconds)


def _print_table(scores: dict[str, float], ks: tuple[int, ...], n: int, seconds: float) -> None:
    from rich.table import Table

    from dxml.cli._console import table_console

    table = Table("", *(f"@{k}" for k in ks), title=f"{n:,} points, per cent")
    for measure in dict.fromkeys(key.partition("@")[0] for key in scores):
        table.add_row(measure, *(f"{scores[f'{measure}@{k}']:.2f}" for k in ks))
    table_console().print(table)
    typer.echo(f"predicted in {seconds:.2f} s, {1000 * seconds / max(n, 1):.3f} ms a point")
