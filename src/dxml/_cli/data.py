"""``dxml data list | info | check | get | convert``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

from dxml._cli._options import DATA, QUIET, SPLIT
from dxml._cli._tables import ENCODING, ID, LABELS, SEPARATOR, SKIP, TEXT, Reading

__all__ = ["app"]

app = typer.Typer(help="Data sets: list, describe, check, fetch, convert.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """The data sets known by name, and whether they are here."""
    from rich.table import Table

    from dxml._cli._console import table_console
    from dxml.data import REGISTRY, is_present

    table = Table("name", "here", title="data sets")
    for column in ("train", "test", "features", "labels", "splits", "labels a point"):
        table.add_column(column, justify="right")
    for name, info in REGISTRY.items():
        sizes = (info.n_train, info.n_test, info.n_features, info.n_labels, info.n_splits)
        numbers = [f"{size:,}" for size in sizes]
        here = "yes" if is_present(name) else "no"
        table.add_row(name, here, *numbers, f"{info.labels_per_point:g}")
    table_console().print(table)
    typer.echo("dxml data get NAME fetches one; DXML_DATA names a folder that holds your own.")


@app.command()
def info(data: str = DATA, split: int | None = SPLIT) -> None:
    """Shape and statistics of a data set or a file."""
    from rich.table import Table

    from dxml._cli._console import table_console
    from dxml.data import open_data

    points = open_data(data, "train", split)
    table = Table("", "", title=points.name or data, show_header=False)
    for name, value in points.describe().items():
        table.add_row(name, f"{value:,.6g}" if isinstance(value, float) else f"{value:,}")
    table_console().print(table)


@app.command()
def check(
    data: str = typer.Argument(
        ..., metavar="FILE", help="A table of texts: JSON, CSV, TSV, Excel, Parquet."
    ),
    text: list[str] = TEXT,
    labels: str | None = LABELS,
    id: str | None = ID,
    test: str | None = typer.Option(
        None, "--test", metavar="FILE", help="Texts to judge a model on: are they others?"
    ),
    plot: Path | None = typer.Option(
        None, "--plot", metavar="FILE", help="Draw it: a .png, .svg or .pdf."
    ),
    as_json: bool = typer.Option(False, "--json", help="As a JSON object."),
    label_separator: str | None = SEPARATOR,
    encoding: str = ENCODING,
    skip_bad_rows: bool = SKIP,
    quiet: bool = QUIET,
) -> None:
    """Look at a table of texts before training on it.

    Finds rows without text or labels, texts that stand twice or nearly so,
    labels that were not split, labels of a single text, languages, and test
    texts that are training texts too. Columns are text and labels, unless given.
    """
    import json

    from dxml._cli._output import check_folder
    from dxml.plots import save, table_plot
    from dxml.plots._style import check_target
    from dxml.progress import open_progress
    from dxml.text import check_table

    if plot is not None:
        check_folder(check_target(plot).parent)
    asked = Reading(text or ["text"], labels or "labels", id, label_separator, encoding)
    reading = replace(asked, skip_bad_rows=skip_bad_rows)
    columns = reading.columns(None)
    with open_progress(quiet or as_json) as progress:
        table = reading.read_labelled(data, columns, progress, distinct_ids=False)
        other = test and reading.read_labelled(test, columns, progress, distinct_ids=False)
        found = check_table(table, other or None, progress=progress)
    if as_json:
        typer.echo(json.dumps(found.numbers(), ensure_ascii=False, indent=1))
    else:
        for line in found.lines(Path(test).name if test else "", named=True):
            typer.echo(line)
    if plot is not None:
        save(table_plot(found, title=f"{Path(data).name} before training"), plot)
        if not (quiet or as_json):
            typer.echo(f"drawn into {plot}")


@app.command()
def get(
    name: str = typer.Argument(..., metavar="NAME", help="One of [bold]dxml data list[/bold]."),
    quiet: bool = QUIET,
) -> None:
    """Fetch a data set into the cache."""
    from dxml.data import fetch
    from dxml.progress import open_progress

    with open_progress(quiet) as progress:
        folder = fetch(name, progress=progress)
    if not quiet:
        typer.echo(f"{name} is in {folder}")


@app.command()
def convert(
    source: str = typer.Argument(..., metavar="IN", help="A file; the suffix says the format."),
    target: str = typer.Argument(..., metavar="OUT", help="The file to write, likewise."),
) -> None:
    """Read a file in one format and write it in another.

    OUT may be a folder name.dxml: binary, memory-mapped when it is read, and
    made of text of any size in little memory.
    """
    from dxml._cli._output import check_folder
    from dxml.data._formats import convert as convert_data
    from dxml.data._formats import recognise

    recognise(target)
    for path in target.split(","):
        check_folder(Path(path).parent)
    typer.echo(f"{target}: {convert_data(source, target):,} points")
