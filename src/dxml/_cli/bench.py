"""``dxml bench run | score | report | list``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dxml._cli._options import QUIET

if TYPE_CHECKING:
    from dxml.bench._runner import Event

__all__ = ["app"]

app = typer.Typer(help="Benchmarks: run experiments, make the page.", no_args_is_help=True)

NO_EXPERIMENT = typer.Argument(
    None,
    metavar="[FILE_OR_NAME]",
    help="An experiment, or [bold]all[/bold] of them; not with [bold]--method[/bold].",
)
EXPERIMENT = typer.Argument(
    ..., metavar="FILE_OR_NAME", help="A TOML file, or a name of [bold]dxml bench list[/bold]."
)
RESULTS = typer.Option(
    Path("benchmarks/results"), "--results", metavar="DIR", help="Stored results."
)


@app.command()
def run(
    experiment: str | None = NO_EXPERIMENT,
    method: list[str] = typer.Option(
        [], "--method", metavar="NAME_OR_FILE", help="A method, or adapter.py of your own; several."
    ),
    data: list[str] = typer.Option(
        [], "--data", metavar="NAME_OR_FILE", help="Data by name, or set.toml of your own; several."
    ),
    name: str = typer.Option(
        "own", "--name", metavar="NAME", help="What to call such an experiment."
    ),
    jobs: int = typer.Option(1, "--jobs", "-j", metavar="N", min=1, help="Runs at once."),
    threads: int | None = typer.Option(
        None, "--threads", metavar="N", min=1, help="Of each run; default: its share of the cores."
    ),
    limit: float | None = typer.Option(
        None,
        "--limit",
        metavar="SECONDS",
        min=1,
        help="A run that takes longer has failed.",
    ),
    device: str = typer.Option("auto", "--device", metavar="NAME", help="auto, cpu or cuda."),
    results: Path = RESULTS,
    only: list[str] = typer.Option(
        [],
        "--only",
        metavar="WORD",
        help="Only runs with this word in their name; several: with each.",
    ),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Do failed runs again."),
    rerun: bool = typer.Option(False, "--rerun", help="Do every run again."),
    quiet: bool = QUIET,
) -> None:
    """Do the runs that are not stored yet, then score and sum up all.

    Without an experiment, every --method is run on every --data. A method may be
    a file of your own: docs/guide/board.md says what is in it.
    """
    from dxml import __version__
    from dxml._cli._output import check_folder
    from dxml.bench._machine import plain
    from dxml.bench._results import Store
    from dxml.bench._runner import run_experiment, to_do
    from dxml.bench._spec import find_experiment, measuring, own_experiment
    from dxml.bench._summary import write_summary
    from dxml.bench._worker import Settings
    from dxml.exceptions import ParameterError, did_you_mean

    devices = ("auto", "cpu", "cuda")
    if device not in devices:
        raise ParameterError(f"unknown device {device!r}{did_you_mean(device, devices)}")
    check_folder(results)
    if experiment is None and method and data:
        several = [own_experiment(name, method, data)]
    elif experiment == "all" and not method and not data:
        several = measuring()
    elif experiment is not None and not method and not data:
        several = [find_experiment(experiment)]
    else:
        raise ParameterError("give an experiment, or --method and --data.")
    store = Store(results)
    again = {"retry_failed": retry_failed, "rerun": rerun}
    command = plain(shlex.join(["dxml", *sys.argv[1:]]))
    settings = Settings(device=device, threads=threads, command=command)
    for chosen in several:
        wanted, total = to_do(chosen, store, only=only, **again), len(chosen.runs)
        if not quiet:
            left = f"{len(wanted)} to do" if only else f"{total - len(wanted)} stored already"
            typer.echo(f"{chosen.name}: {total} runs, {left}", err=True)
            scored = store.scored_on_test(wanted, __version__)
            if scored:
                typer.echo(
                    f"{scored} of them scored test points before, with this version of dxml: "
                    f'{store.test_log} says when. Choices belong on part = "validation".',
                    err=True,
                )
        run_experiment(
            chosen,
            store,
            settings,
            jobs=jobs,
            limit=limit,
            only=only,
            report=(lambda event: None) if quiet else _say,
            **again,
        )
        path = write_summary(chosen, store)
        failed = sum(1 for r in chosen.runs if (s := store.get(r)) and s.status == "failed")
        typer.echo(f"{path}: {total} runs, {len(wanted)} new, {failed} failed")


def _say(event: Event) -> None:
    record = event.stored.record
    what = f"failed: {record['error']}" if event.stored.status == "failed" else "done"
    left = f", about {_duration(event.left)} left" if event.done < event.total else ""
    line = (
        f"{event.done}/{event.total} {event.stored.run}: {what} in {_duration(event.seconds)}{left}"
    )
    typer.echo(line, err=True)


def _duration(seconds: float) -> str:
    """
    >>> _duration(4.25), _duration(190), _duration(7300)
    ('4.2 s', '3 min 10 s', '2 h 2 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min"


@app.command()
def score(experiment: str = EXPERIMENT, results: Path = RESULTS, quiet: bool = QUIET) -> None:
    """Score and sum up the stored runs; nothing is run."""
    from dxml.bench._results import Store
    from dxml.bench._spec import find_experiment
    from dxml.bench._summary import write_summary

    path = write_summary(find_experiment(experiment), Store(results))
    if not quiet:
        typer.echo(f"wrote {path}")


@app.command()
def report(
    results: Path = RESULTS,
    output: Path = typer.Option(
        Path("docs"), "--output", metavar="DIR", help="Folder for the page."
    ),
    experiment: str | None = typer.Option(
        None, "--experiment", metavar="NAME", help="Only this one."
    ),
    plots: bool = typer.Option(True, "--plots/--no-plots", help="Draw the figures as well."),
    quiet: bool = QUIET,
) -> None:
    """Write benchmarks.md and its figures from the stored summaries."""
    from dxml._cli._output import check_folder
    from dxml.bench._report import write_report

    check_folder(output)
    page = write_report(results, output, experiment=experiment, with_plots=plots)
    if not quiet:
        typer.echo(f"wrote {page}")


@app.command("list")
def list_() -> None:
    """The experiments that come with dxml."""
    from rich.table import Table

    from dxml._cli._console import table_console
    from dxml.bench._spec import read_experiment, shipped

    table = Table("name", "runs", "what", title="experiments")
    for name, path in shipped().items():
        found = read_experiment(path)
        table.add_row(name, f"{len(found.runs):,}", found.description)
    table_console().print(table)
