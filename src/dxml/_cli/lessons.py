"""``dxml lessons``: what a service was taught."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dxml._cli._model import check_tagger, load_tagger
from dxml._cli._options import MODEL, QUIET

if TYPE_CHECKING:
    from dxml.tagging._journal import Entry

__all__ = ["app"]

app = typer.Typer(help="What a service was taught: list, show, undo.", no_args_is_help=True)


@app.command("list")
def list_lessons(
    model: Path = MODEL,
    top: int = typer.Option(20, "--top", metavar="N", min=1, help="Lessons shown: the last."),
    as_json: bool = typer.Option(False, "--json", help="A line a lesson, each a JSON object."),
) -> None:
    """The last lessons, with their numbers.

    Those marked with a star are not part of the saved model yet: a service
    applies them when it starts, and dxml learn --journal for good.
    """
    from dxml.tagging._lessons import described, summary, when

    entries, applied = _lessons(model)
    for entry in entries[-top:]:
        pending = entry.number > applied
        if as_json:
            typer.echo(json.dumps(described(entry, pending), ensure_ascii=False))
        else:
            mark = "*" if pending else " "
            typer.echo(f"{entry.number:>5}{mark} {when(entry.time)}  {summary(entry)}")
    if not as_json:
        waiting = sum(entry.number > applied for entry in entries)
        lessons = "1 lesson" if len(entries) == 1 else f"{len(entries):,} lessons"
        typer.echo(f"{lessons}, {waiting:,} not part of the saved model yet")


@app.command()
def show(
    number: int = typer.Argument(..., metavar="N", help="Of dxml lessons list."),
    model: Path = MODEL,
    as_json: bool = typer.Option(False, "--json", help="As a JSON object."),
) -> None:
    """One lesson: its texts in full, with ids and labels."""
    from dxml.tagging._lessons import described, found, summary, when

    entries, applied = _lessons(model)
    entry = found(entries, number)
    if as_json:
        typer.echo(json.dumps(described(entry, number > applied), ensure_ascii=False))
        return
    state = "not part of the saved model yet" if number > applied else "part of the saved model"
    typer.echo(f"lesson {number} of {when(entry.time)} UTC, {state}\n{summary(entry)}")
    if entry.action == "learn":
        content = entry.content
        for id, text, labels in zip(
            content["ids"], content["texts"], content["labels"], strict=True
        ):
            typer.echo(f"\n{id}: {'; '.join(labels)}\n{text}")


@app.command()
def undo(
    number: int = typer.Argument(..., metavar="N", help="Of dxml lessons list."),
    model: Path = MODEL,
    quiet: bool = QUIET,
) -> None:
    """Take a lesson back; services of the model follow.

    One that is not part of the saved model yet is as if it had never been. One
    that is, is taken back by lessons: its texts are forgotten, or taught again
    as they were.
    """
    from dxml.service._settling import undo_lesson

    check_tagger(model)
    said = undo_lesson(model, number)
    if not quiet:
        typer.echo(said)


def _lessons(model: Path) -> tuple[list[Entry], int]:
    """All lessons, and the number of the last that the saved model has."""
    from dxml.service._served import ServedTagger
    from dxml.service._settling import journal_in
    from dxml.tagging._journal import Journal

    tagger = load_tagger(model)
    with closing(Journal(journal_in(model))) as journal:
        return journal.lessons(), ServedTagger(tagger).applied_from(journal.identity)
