"""``dxml plot``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from dxml._cli._options import DATA, MODEL, QUIET, SPLIT
from dxml._cli._ranked import Ranked, rank_data
from dxml._cli._tables import ENCODING, LABELS, SEPARATOR, SKIP, TEXT, Reading

if TYPE_CHECKING:
    from dxml.base import Classifier
    from dxml.plots import FrequencyPlot, LabelPlot, Plot, ReliabilityPlot, TrainingPlot
    from dxml.progress import Progress

__all__ = ["app"]

app = typer.Typer(
    help="Pictures of a model: training, reliability, accuracy, label map.",
    no_args_is_help=True,
)

OUTPUT = typer.Option(
    None,
    "--output",
    "-o",
    metavar="FILE",
    help="A .png, .svg or .pdf; by default a .png here.",
)
JSON = typer.Option(False, "--json", help="Print the numbers; draw only with --output.")
FIND = typer.Option(
    [],
    "--find",
    metavar="NAME",
    help="Mark this label and those it goes with.",
)


@app.command()
def training(
    model: Path = MODEL,
    output: Path | None = OUTPUT,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Training: loss by epoch, if there are any, and time by stage."""
    target = _target(output, "training", as_json)
    _finish(_training(model), target, as_json, quiet)


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
    """Reliability: of the labels given with 70 %, how many are right?

    DATA is what dxml evaluate takes, and the calibration error the ECE@5 that
    it prints.
    """
    target = _target(output, "reliability", as_json)
    reading = Reading(text, labels, None, label_separator, encoding, skip_bad_rows)
    ranked = _rank(data, model, split, reading, quiet or as_json)
    _finish(_reliability(ranked, data), target, as_json, quiet)


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
    """Accuracy by label frequency: head, torso and tail labels.

    Precision and recall of three groups of labels, each a third of the label
    occurrences in the training data. DATA is what dxml evaluate takes.
    """
    target = _target(output, "frequency", as_json)
    reading = Reading(text, labels, None, label_separator, encoding, skip_bad_rows)
    ranked = _rank(data, model, split, reading, quiet or as_json)
    _finish(_frequency(ranked, data), target, as_json, quiet)


@app.command("labels")
def label_map(
    model: Path = MODEL,
    find: list[str] = FIND,
    output: Path | None = OUTPUT,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """The label map: labels that share points stand near each other.

    A label goes by its number where it has no name, or one that no installed
    font can write.
    """
    from dxml.progress import open_progress

    target = _target(output, "labels", as_json)
    with open_progress(quiet or as_json) as progress:
        drawn = _label_map(model, find, progress)
    _finish(drawn, target, as_json, quiet)


@app.command("all")
def every(
    data: str = DATA,
    model: Path = MODEL,
    output: Path = typer.Option(
        Path("plots"), "--output", "-o", metavar="FOLDER", help="Where to draw them."
    ),
    kind: Literal["png", "svg", "pdf"] = typer.Option("png", "--format", help="Of the files."),
    find: list[str] = FIND,
    as_json: bool = typer.Option(False, "--json", help="Also print the numbers."),
    split: int | None = SPLIT,
    text: list[str] = TEXT,
    labels: str | None = LABELS,
    label_separator: str | None = SEPARATOR,
    encoding: str = ENCODING,
    skip_bad_rows: bool = SKIP,
    quiet: bool = QUIET,
) -> None:
    """All four, into a folder.

    A sentence says why where the model has nothing for one of them. DATA is what
    dxml evaluate takes.
    """
    from dxml._cli._output import check_folder
    from dxml.plots import NothingToDrawError
    from dxml.progress import open_progress

    check_folder(output)
    _check_drawing()
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
            _draw(plot, output / f"{name}.{kind}", quiet or as_json)
            numbers[name] = plot.numbers()
    if as_json:
        typer.echo(json.dumps(numbers, ensure_ascii=False))


def _target(output: Path | None, name: str, as_json: bool) -> Path | None:
    """Where to draw; checked before the work is done."""
    from dxml._cli._output import check_folder
    from dxml.plots._style import check_target

    if output is None and as_json:
        return None
    target = check_target(output or Path(f"{name}.png"))
    check_folder(target.parent)
    _check_drawing()
    return target


def _check_drawing() -> None:
    """Raise an error where matplotlib is missing, before the work is done."""
    from dxml.plots._style import pyplot

    with pyplot():
        pass


def _finish(plot: Plot, target: Path | None, as_json: bool, quiet: bool) -> None:
    if target is not None:
        _draw(plot, target, quiet or as_json)
    if as_json:
        typer.echo(json.dumps(plot.numbers(), ensure_ascii=False))


def _draw(plot: Plot, target: Path, silent: bool) -> None:
    from dxml.plots import LabelPlot, save

    written = save(plot, target)
    if not silent:
        typer.echo(f"drew {written}")
    if isinstance(plot, LabelPlot) and (lacking := len(plot.unwritable)):
        typer.echo(
            f"no installed font can write the names of {lacking:,} of {len(plot.names):,} labels: "
            "they stand on the map by their numbers, which count those of --json from 0",
            err=True,
        )


def _rank(data: str, model: Path, split: int | None, reading: Reading, silent: bool) -> Ranked:
    from dxml.progress import open_progress

    with open_progress(silent) as progress:
        return rank_data(data, model, split, reading, progress)


def _load(model: Path) -> tuple[Classifier, Sequence[str] | None]:
    """The classifier in a folder, and the names of its labels where it has them."""
    from dxml.methods import TAGGER, load_model, saved_method
    from dxml.tagging._tagger import TextTagger

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
