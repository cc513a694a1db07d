"""``dxml bench run | score | report | board | list``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dxml._cli._options import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dxml.bench._measurements import Measurement, Outcome
    from dxml.bench._results import Store
    from dxml.bench._runner import Event
    from dxml.bench._spec import Experiment, Run
    from dxml.bench._worker import Settings

__all__ = ["app"]

app = typer.Typer(help="Benchmarks: run experiments, make the page.", no_args_is_help=True)

NO_EXPERIMENT = typer.Argument(
    None,
    metavar="[FILE_OR_NAME]",
    help="An experiment, what a script measures, or [bold]all[/bold] of both; not with "
    "[bold]--method[/bold].",
)
EXPERIMENT = typer.Argument(
    ..., metavar="FILE_OR_NAME", help="A TOML file, or a name of [bold]dxml bench list[/bold]."
)
RESULTS = typer.Option(
    Path("benchmarks/results"), "--results", metavar="DIR", help="Stored results."
)

MEASUREMENTS = typer.Option(
    Path("benchmarks/measurements.toml"),
    "--measurements",
    metavar="FILE",
    help="A checkout's table of what its scripts measure.",
    show_default=False,
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
        help="A run, or a script's command, that takes longer has failed.",
    ),
    device: str = typer.Option("auto", "--device", metavar="NAME", help="auto, cpu or cuda."),
    results: Path = RESULTS,
    only: list[str] = typer.Option(
        [],
        "--only",
        metavar="WORD",
        help="Only runs or scripts with this word in their name; several: with each.",
    ),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Do failed runs again."),
    rerun: bool = typer.Option(False, "--rerun", help="Do every run again."),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Only print the commands, what they store, and what would not run."
    ),
    measurements: Path = MEASUREMENTS,
    quiet: bool = QUIET,
) -> None:
    """Do the runs that are not stored yet, then score and sum up all.

    Without an experiment, every --method is run on every --data. A method may be
    a file of your own: docs/guide/board.md says what is in it. In a checkout the
    scripts of benchmarks/ run by their names too. All ends with what was done,
    what was skipped, since something is not here, and what failed. Where a run
    failed, the exit code is 1.
    """
    from dxml._cli._output import check_folder
    from dxml.bench._machine import plain
    from dxml.bench._measurements import (
        Outcome,
        check_own_name,
        lacking,
        read_measurements,
        summed_up,
    )
    from dxml.bench._results import Store
    from dxml.bench._spec import find_experiment, measuring, own_experiment
    from dxml.bench._worker import Settings
    from dxml.exceptions import ParameterError, did_you_mean

    devices = ("auto", "cpu", "cuda")
    if device not in devices:
        raise ParameterError(f"unknown device {device!r}{did_you_mean(device, devices)}")
    table = read_measurements(measurements)
    scripts = {each: entry for each, entry in table.items() if entry.commands}
    several: list[Experiment] = []
    measured: list[Measurement] = []
    if experiment is None and method and data:
        check_own_name(name, table)
        several = [own_experiment(name, method, data)]
    elif experiment is None or method or data:
        raise ParameterError("give an experiment, or --method and --data.")
    elif experiment == "all":
        several = measuring()
        measured = [entry for each, entry in scripts.items() if all(w in each for w in only)]
    elif experiment in scripts:
        options: dict[str, object] = {
            "--jobs": jobs > 1,
            "--threads": threads,
            "--device": device != "auto",
        }
        options |= {"--only": only, "--retry-failed": retry_failed}
        if given := ", ".join(option for option, is_given in options.items() if is_given):
            raise ParameterError(f"{experiment} is measured by its own commands: no {given}.")
        measured = [scripts[experiment]]
    else:
        several = [find_experiment(experiment, scripts)]
    again = {"retry_failed": retry_failed, "rerun": rerun}
    store = Store(results)
    if dry_run:
        needs = table if experiment == "all" else {}
        _print_commands(several, measured, needs, store, {"only": only, **again})
        return
    check_folder(results)
    command = plain(shlex.join(["dxml", *sys.argv[1:]]))
    settings = Settings(device=device, threads=threads, command=command)
    outcomes = []
    for chosen in several:
        if experiment == "all" and chosen.name in table and (why := lacking(table[chosen.name])):
            outcomes.append(Outcome(chosen.name, "skipped", why))
            continue
        more: dict[str, Any] = {"jobs": jobs, "limit": limit, "only": only, **again}
        outcomes.append(_experiment(chosen, store, settings, more, quiet))
    for entry in measured:
        outcomes.append(_measurement(entry, results, limit, rerun, quiet))
    if experiment == "all" or measured:
        typer.echo(summed_up(outcomes))
    bad = ("failed", "skipped") if experiment != "all" else ("failed",)
    if any(outcome.status in bad for outcome in outcomes):
        raise typer.Exit(1)


def _experiment(
    chosen: Experiment, store: Store, settings: Settings, more: dict[str, Any], quiet: bool
) -> Outcome:
    """Do the runs of an experiment that are to do; failed, if one of these failed."""
    from dxml import __version__
    from dxml.bench._measurements import Outcome
    from dxml.bench._runner import run_experiment, to_do
    from dxml.bench._summary import earlier_summary, write_summary

    earlier_summary(chosen, store)  # before anything is run: its place must be free
    only = more["only"]
    again = {name: more[name] for name in ("retry_failed", "rerun")}
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
    before = _rankings(store, wanted)

    def report(event: Event) -> None:
        if not quiet:
            _say(event, before.get(event.stored.run))

    run_experiment(chosen, store, settings, report=report, **more)
    path = write_summary(chosen, store)
    failed = [run for run in chosen.runs if (s := store.get(run)) and s.status == "failed"]
    told = f"{total} runs, {len(wanted)} new, {len(failed)} failed"
    again_with = " (again: --retry-failed)" if failed else ""
    typer.echo(f"{path}: {told}{again_with}")
    return Outcome(chosen.name, "failed" if set(failed) & set(wanted) else "done", told)


def _measurement(
    entry: Measurement, results: Path, limit: float | None, again: bool, quiet: bool
) -> Outcome:
    """Run the commands of a script's entry."""
    from dxml.bench._measurements import Outcome, carry_out

    if why := _elsewhere(entry, results):
        return Outcome(entry.name, "skipped", why)
    say: Callable[[str], None] = (
        (lambda line: None) if quiet else (lambda x: typer.echo(x, err=True))
    )
    return carry_out(entry, say=say, limit=limit, again=again)


def _elsewhere(entry: Measurement, results: Path) -> str:
    """Scripts know one place to store in; nothing if it is the one that is asked for."""
    theirs = entry.root / "benchmarks" / "results"
    is_there = results.absolute() == theirs
    return "" if is_there else f"scripts store in benchmarks/results, not in {results}"


def _print_commands(
    several: Sequence[Experiment],
    measured: Sequence[Measurement],
    needs: dict[str, Measurement],
    store: Store,
    more: dict[str, Any],
) -> None:
    """What would be run, a line a command; what would not behind a ``#``, and why.

    Before them stands what they store, and which pages show it.
    """
    from dxml.bench._machine import commit
    from dxml.bench._measurements import is_stored, lacking
    from dxml.bench._runner import to_do

    for each in several:
        entry = needs.get(each.name)
        name = f"{each.name}.json"
        left = f" {len(to_do(each, store, **more))} of {len(each.runs)} runs are to do."
        typer.echo(_stores(each.name, entry.stores if entry else (name,), entry) + left)
        if why := lacking(entry) if entry else "":
            typer.echo(f"# {each.name} is skipped: {why}")
        typer.echo(f"{'# ' if why else ''}{_own_command(each)}")
    at = commit()
    for entry in measured:
        typer.echo(_stores(entry.name, entry.stores, entry))
        if why := _elsewhere(entry, store.root) or lacking(entry):
            typer.echo(f"# {entry.name} is skipped: {why}")
        for command in entry.commands:
            is_done = not more["rerun"] and is_stored(entry, command, at)
            known = f"  # is stored, with commit {at}" if is_done and not why else ""
            typer.echo(f"{'# ' if why or is_done else ''}{command}{known}")


def _stores(name: str, files: Sequence[str], entry: Measurement | None) -> str:
    shown = f", shown by {', '.join(entry.pages)}" if entry and entry.pages else ""
    return f"# {name} stores {', '.join(files)}{shown}."


def _own_command(chosen: Experiment) -> str:
    """The command of an experiment: by its name, or by methods and data of one's own."""
    if not chosen.grows:
        return f"dxml bench run {chosen.name}"
    named = [("--method", {run.method: 0 for run in chosen.runs})]
    named += [("--data", {run.dataset: 0 for run in chosen.runs}), ("--name", {chosen.name: 0})]
    return shlex.join(
        [
            "dxml",
            "bench",
            "run",
            *(x for option, each in named for one in each for x in (option, one)),
        ]
    )


def _rankings(store: Store, runs: Sequence[Run]) -> dict[Run, str]:
    """Checksums of what is stored of these runs, and was computed from the same files."""
    found = {run: store.get(run) for run in runs}
    return {
        run: stored.ranking_hash()
        for run, stored in found.items()
        if stored is not None and stored.status == "done" and not stored.stale
    }


def _say(event: Event, before: str | None) -> None:
    """What has come of a run; `before` is the checksum of the ranking that it replaces."""
    record = event.stored.record
    what = f"failed: {record['error']}" if event.stored.status == "failed" else "done"
    if before is not None and event.stored.status == "done":
        same = event.stored.ranking_hash() == before
        what += ", the same ranking as before" if same else ", another ranking than before"
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


@app.command()
def board(
    results: Path = RESULTS,
    output: Path = typer.Option(
        Path("board.html"), "--output", "-o", metavar="FILE", help="The page."
    ),
    quiet: bool = QUIET,
) -> None:
    """Write every stored row as a page of one file, with filters, for a browser."""
    from dxml._cli._output import check_file, replace_file
    from dxml.bench._board import render_page
    from dxml.bench._summary import load_summaries

    check_file(output)
    page = render_page(load_summaries(results))
    replace_file(output, lambda file: file.write(page.encode()))
    if not quiet:
        typer.echo(f"wrote {output}")


@app.command("list")
def list_(measurements: Path = MEASUREMENTS) -> None:
    """The experiments that come with dxml; in a checkout, its scripts too."""
    from rich.table import Table

    from dxml._cli._console import table_console
    from dxml.bench._measurements import read_measurements
    from dxml.bench._spec import read_experiment, shipped

    table = Table("name", "runs", "what", title="experiments")
    for name, path in shipped().items():
        found = read_experiment(path)
        table.add_row(name, f"{len(found.runs):,}", found.description)
    table_console().print(table)
    entries = [each for each in read_measurements(measurements).values() if each.commands]
    if entries:
        table = Table("name", "about", "what", "needs", title="measured by scripts")
        for entry in entries:
            table.add_row(entry.name, _duration(60 * entry.minutes), entry.what, entry.needs)
        table_console().print(table)
