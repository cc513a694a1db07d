"""``dxml plot``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from dxml.cli._options import DATA, MODEL, QUIET, SPLIT
from dxml.cli._ranked import Ranked, rank_data
from dxml.cli._tables import ENCODING, LABELS, SEPARATOR, SKIP, TEXT, Reading

if TYPE_CHECKING:
    from dxml._progress import Progress
    from dxml.base import Classifier
    from dxml.plots import FrequencyPlot, LabelPlot, Plot, ReliabilityPlot, TrainingPlot

__all__ = ["app"]

app = typer.Typer(
    help="Draw a trained model: training, reliability, accuracy by label frequency, label map.",
    no_args_is_help=True,
)

OUTPUT = typer.Option(
    None,
    "--output",
    "-o",
    metavar="FILE",
    help="Where to draw it: .png, .svg or .pdf. By default the plot's name, .png, right here.",
)
JSON = typer.Option(
    False, "--json", help="Print the numbers behind it; drawn then only with --output."
)
FIND = typer.Option(
    [],
    "--find",
    metavar="NAME",
    help="Mark this label and link it to those it goes with; may be repeated.",
)


@app.command()
def training(model: Path = MODEL, output: Path | None = OUTPUT, as_json: bool = JSON) -> None:
    """Training: the loss of each epoch, where a method has epochs, and the time of each stage."""
    target = _target(output, "training", as_json)
    _finish(_training(model), target, as_json)


@app.command()
def reliability(
    data: str = DATA,
    model: Path = MODEL,
    output: Path | None = OUTPUT,
    as_json: bool = JSON,
    split: int | None = SPLIT,
    text: list[str] = TEXT,
    labels: str | None = LABELS,
    label_separator: str | None = SEPARATOR,
    encoding: str = ENCODING,
    skip_bad_rows: bool = SKIP,
    quiet: bool = QUIET,
) -> None:
    """Reliability: how many of the labels given with 70 % are right, and so on from 0 to 100 %.

    DATA is what dxml evaluate takes, and the calibration error the ECE@5 that it prints.
    """
    target = _target(output, "reliability", as_json)
    reading = Reading(text, labels, None, label_separator, encoding, skip_bad_rows)
    ranked = _rank(data, model, split, reading, quiet or as_json)
    _finish(_reliability(ranked, data), target, as_json)


@app.command()
def frequency(
    data: str = DATA,
    model: Path = MODEL,
    output: Path | None = OUTPUT,
    as_json: bool = JSON,
    split: int | None = SPLIT,
    text: list[str] = TEXT,
    labels: str | None = LABELS,
    label_separator: str | None = SEPARATOR,
    encoding: str = ENCODING,
    skip_bad_rows: bool = SKIP,
    quiet: bool = QUIET,
) -> None:
    """Accuracy by label frequency: precision and recall of frequent and of rare labels.

    Head, torso and tail labels each make up a third of the label occurrences in the training data.
    DATA is what dxml evaluate takes.
    """
    target = _target(output, "frequency", as_json)
    reading = Reading(text, labels, None, label_separator, encoding, skip_bad_rows)
    ranked = _rank(data, model, split, reading, quiet or as_json)
    _finish(_frequency(ranked, data), target, as_json)


@app.command("labels")
def label_map(
    model: Path = MODEL,
    find: list[str] = FIND,
    output: Path | None = OUTPUT,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """The label map: labels that share training points stand near each other.

    A label without a name goes by its number.
    """
    from dxml.cli._progress import open_progress

    target = _target(output, "labels", as_json)
    with open_progress(quiet or as_json) as progress:
        drawn = _label_map(model, find, progress)
    _finish(drawn, target, as_json)


@app.command("all")
def every(
    data: str = DATA,
    model: Path = MODEL,
    output: Path = typer.Option(
        Path("plots"), "--output", "-o", metavar="FOLDER", help="Where to draw them."
    ),
    kind: Literal["png", "svg", "pdf"] = typer.Option("png", "--format", help="Of the files."),
    find: list[str] = FIND,
    as_json: bool = typer.Option(False, "--json", help="Also print the numbers behind them."),
    split: int | None = SPLIT,
    text: list[str] = TEXT,
    labels: str | None = LABELS,
    label_separator: str | None = SEPARATOR,
    encoding: str = ENCODING,
    skip_bad_rows: bool = SKIP,
    quiet: bool = QUIET,
) -> None:
    """All four plots, into a folder; one that the model has nothing for is left out, and why.

    DATA is what dxml evaluate takes.
    """
    from dxml.cli._progress import open_progress
    from dxml.plots import NothingToDrawError, save

    reading = Reading(text, labels, None, label_separator, encoding, skip_bad_rows)
    numbers = {}
    with open_progress(quiet or as_json) as progress:
        ranked = rank_data(data, model, split, reading, progress)
        plots: dict[str, Callable[[], Plot]] = {
            "training": lambda: _training(model),
            "reliability": lambda: _reliability(ranked, data),
            "frequency": lambda: _frequency(ranked, data),
            "labels": lambda: _label_map(model, find, progress),
        }
        for name, make in plots.items():
            try:
                plot = make()
            except NothingToDrawError as error:
                typer.echo(f"{name} left out: {error}", err=True)
                continue
            written = save(plot, output / f"{name}.{kind}")
            numbers[name] = plot.numbers()
            if not (quiet or as_json):
                typer.echo(f"drew {written}")
    if as_json:
        typer.echo(json.dumps(numbers, ensure_ascii=False))


def _target(output: Path | None, name: str, as_json: bool) -> Path | None:
    """Where to draw; checked before the work is done."""
    from dxml.plots.style import check_target

    if output is None:
        return None if as_json else Path(f"{name}.png")
    return check_target(output)


def _finish(plot: Plot, target: Path | None, as_json: bool) -> None:
    from dxml.plots import save

    written = None if target is None else save(plot, target)
    if as_json:
        typer.echo(json.dumps(plot.numbers(), ensure_ascii=False))
    else:
        typer.echo(f"drew {written}")


def _rank(data: str, model: Path, split: int | None, reading: Reading, silent: bool) -> Ranked:
    from dxml.cli._progress import open_progress

    with open_progress(silent) as progress:
        return rank_data(data, model, split, reading, progress)


def _load(model: Path) -> tuple[Classifier, Sequence[str] | None]:
    """The classifier in a folder, and the names of its labels where it has them."""
    from dxml.methods import TAGGER, load_model, saved_method
    from dxml.tagger import TextTagger

    if saved_method(model) == TAGGER:
        tagger = TextTagger.load(model)
        return tagger.model, tagger.labels_
    found = load_model(model)
    names = found.label_names_
    return found, None if names is None else [str(name) for name in names.tolist()]


def _training(model: Path) -> TrainingPlot:
    from dxml.plots import training_plot

    return training_plot(_load(model)[0])


def _reliability(ranked: Ranked, data: str) -> ReliabilityPlot:
    from dxml.plots import reliability_plot

    method = ranked.estimator.method
    title = f"Reliability of {method} on {Path(data).name}"
    return reliability_plot(ranked.truth, ranked.ranking, title=title, method=method)


def _frequency(ranked: Ranked, data: str) -> FrequencyPlot:
    from dxml.plots import frequency_plot

    return frequency_plot(
        ranked.truth,
        ranked.ranking,
        ranked.estimator.label_frequency_,
        title=f"Accuracy of {ranked.estimator.method} by label frequency on {Path(data).name}",
    )


def _label_map(model: Path, find: list[str], progress: Progress) -> LabelPlot:
    from dxml.plots import NothingToDrawError, label_plot

    found, names = _load(model)
    known = getattr(found, "train_labels_", None)
    if known is None:
        raise NothingToDrawError(
            f"a model of method {found.method!r} keeps no training labels, so there is no map of "
            "them to draw. Those of joint, dxml, knn and sleec do."
        )
    title = f"Label map: {found.n_labels_:,} labels on {found.n_samples_:,} points"
    return label_plot(known, names, find=find, title=title, progress=progress)
