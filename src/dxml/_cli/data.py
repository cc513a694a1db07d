"""``dxml data list | info | get | convert``."""

from __future__ import annotations

import typer

from dxml._cli._options import DATA, QUIET, SPLIT

__all__ = ["app"]

app = typer.Typer(help="Data sets: list, describe, fetch, convert.", no_args_is_help=True)


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
    from pathlib import Path

    from dxml._cli._output import check_folder
    from dxml.data._formats import convert as convert_data
    from dxml.data._formats import recognise

    recognise(target)
    for path in target.split(","):
        check_folder(Path(path).parent)
    typer.echo(f"{target}: {convert_data(source, target):,} points")
