"""``dxml evaluate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dxml._cli._options import DATA, MODEL, PRECISION, QUIET, RAY, RECALL, SPLIT
from dxml._cli._ranked import Ranked, rank_data
from dxml._cli._tables import ENCODING, LABELS, SEPARATOR, SKIP, TEXT, Reading
from dxml._core.counted import counted

if TYPE_CHECKING:
    from dxml._cli._promise import Promise
    from dxml.metrics import Chosen

__all__ = ["evaluate"]

DEEP = 20  # labels a point among which the best threshold is looked for


def evaluate(
    data: str = DATA,
    model: Path = MODEL,
    split: int | None = SPLIT,
    text: list[str] = TEXT,
    labels: str | None = LABELS,
    label_separator: str | None = SEPARATOR,
    encoding: str = ENCODING,
    skip_bad_rows: bool = SKIP,
    precision: float | None = PRECISION,
    recall: float | None = RECALL,
    as_json: bool = typer.Option(False, "--json", help="One JSON object instead of a table."),
    per_label: Path | None = typer.Option(
        None, "--per-label", metavar="FILE", help="Write the scores of each label as CSV."
    ),
    ray: str | None = RAY,
    quiet: bool = QUIET,
) -> None:
    """Score a model on DATA, where the right labels are known.

    P, nDCG, PSP, PSnDCG, recall, macro-averages and coverage at 1, 3 and 5, in
    per cent; and ECE, the calibration error, of scores between 0 and 1. A named
    data set means its test part; for a tagger, DATA is a table of texts with
    labels. Labels that the model does not know count as misses.

    Of probabilities, the threshold with the best F1 over the 20 first labels of
    every point is named, and --per-label says how each label fares there. With
    --precision or --recall it is the threshold that is to keep that promise, as
    dxml predict does, over the 50 first labels.
    """
    from dxml._cli._output import check_file
    from dxml._cli._promise import Promise
    from dxml._core.cluster import open_cluster
    from dxml.progress import open_progress
    from dxml.topk import default_top

    promise = Promise(precision, recall)
    if per_label is not None:
        check_file(per_label)
    reading = Reading(text, labels, None, label_separator, encoding, skip_bad_rows)
    with open_cluster(ray), open_progress(quiet or as_json) as progress:
        depth = default_top(0.0) if promise.asked else DEEP
        ranked = rank_data(data, model, split, reading, progress, depth)
    _warn(ranked, data)
    scores, ks = _scores(ranked)
    best = _best(ranked, promise)
    if as_json:
        rounded = {name: round(value, 4) for name, value in scores.items()}
        rounded |= {"points": len(ranked.ranking), "seconds": round(ranked.seconds, 4)}
        rounded |= {"unknown_labels": len(ranked.unknown_names)}
        if best is not None:
            rounded |= {"threshold": round(best.threshold, 4), "F1": round(100 * best.f1, 4)}
            if promise.asked:
                rounded |= {"precision": round(100 * best.precision, 4)}
                rounded |= {"recall": round(100 * best.recall, 4)}
        typer.echo(json.dumps(rounded))
    else:
        _print_table(scores, ks, len(ranked.ranking), ranked.seconds)
        if best is not None:
            which = "promised" if promise.asked else "best"
            typer.echo(
                f"{which} threshold {best.threshold:.3f}: F1 {100 * best.f1:.2f}, precision "
                f"{100 * best.precision:.2f}, recall {100 * best.recall:.2f}"
            )
    if per_label is not None:
        _write_labels(ranked, per_label, 0.0 if best is None else best.threshold)


def _warn(ranked: Ranked, data: str) -> None:
    """Say what makes the scores lower, or higher, than they are elsewhere."""
    if ranked.unknown is not None and ranked.unknown_names:
        n, known = int(ranked.unknown.nnz), int(ranked.truth.nnz)
        typer.echo(
            f"of {counted(n + known, 'label')} the model does not know {n:,} "
            f"({counted(len(ranked.unknown_names), 'name')}, such as {ranked.unknown_names[0]!r}): "
            "they count as misses",
            err=True,
        )
    if ranked.known_again:
        typer.echo(
            f"warning: {ranked.known_again:,} of {len(ranked.ranking):,} texts were trained on or "
            f"learnt: the scores are too high. Evaluate on texts that are new, not {data}",
            err=True,
        )


def _best(ranked: Ranked, promise: Promise) -> Chosen | None:
    """The best threshold of probabilities, or the promised one."""
    from dxml import metrics

    if promise.asked:
        threshold = promise.threshold(ranked.estimator)
        return metrics.at_threshold(ranked.whole_truth, ranked.ranking, threshold)
    if not metrics.are_probabilities(ranked.ranking):
        return None
    return metrics.best_threshold(ranked.whole_truth, ranked.ranking)


def _write_labels(ranked: Ranked, path: Path, threshold: float) -> None:
    """A line a label that a point carries or is given, most frequent first."""
    import csv
    import io

    import numpy as np

    from dxml import metrics
    from dxml._cli._output import replace_file

    carried, given, right = metrics.label_scores(ranked.whole_truth, ranked.ranking, threshold)
    own = range(ranked.truth.shape[1]) if ranked.names is None else ranked.names
    names = [*own, *ranked.unknown_names]
    trained = ranked.estimator.label_frequency_.tolist()
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("label", "trained", "carried", "given", "right", "precision", "recall", "F1"))
    for label in np.lexsort((np.arange(len(carried)), -carried)).tolist():
        n_true, n_given, n_right = (int(counts[label]) for counts in (carried, given, right))
        if n_true or n_given:
            shares = (n_right, n_given), (n_right, n_true), (2 * n_right, n_given + n_true)
            cells = [f"{100 * part / whole:.2f}" if whole else "" for part, whole in shares]
            before = trained[label] if label < len(trained) else 0
            writer.writerow((names[label], before, n_true, n_given, n_right, *cells))
    replace_file(path, lambda file: file.write(text.getvalue().encode()))


def _scores(ranked: Ranked) -> tuple[dict[str, float], tuple[int, ...]]:
    """Every measure by name, and the depths it is measured at."""
    import numpy as np

    from dxml import metrics

    ranking, truth, estimator = ranked.ranking, ranked.whole_truth, ranked.estimator
    frequency, n = estimator.label_frequency_, estimator.n_samples_
    frequency = np.pad(frequency, (0, truth.shape[1] - len(frequency)))
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
