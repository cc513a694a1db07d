"""The tagger in a model's folder, for commands that need one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dxml.exceptions import ModelFormatError

if TYPE_CHECKING:
    from dxml.tagging._tagger import TextTagger

__all__ = ["check_tagger", "load_tagger", "open_tagger"]


def load_tagger(folder: Path) -> TextTagger:
    """The tagger in a folder; a model of features is an error that says how to make a tagger."""
    from dxml.tagging._tagger import TextTagger

    check_tagger(folder)
    return TextTagger.load(folder)


def open_tagger(folder: Path) -> TextTagger:
    """As `load_tagger`, and says on standard error where a service knows more than the folder."""
    from contextlib import closing

    from dxml.tagging._journal import JOURNAL, Journal

    tagger = load_tagger(folder)
    if (folder / JOURNAL).exists():
        with closing(Journal(folder / JOURNAL)) as journal:
            known = tagger.applied_lessons
            applied = known.number if known and known.journal == journal.identity else 0
            pending = sum(entry.number > applied for entry in journal.lessons())
        if pending:
            lessons = "1 lesson" if pending == 1 else f"{pending:,} lessons"
            typer.echo(
                f"{lessons} that a service was taught: not part of {folder} yet, apply with "
                f"dxml learn --journal --model {folder}",
                err=True,
            )
    return tagger


def check_tagger(folder: Path) -> None:
    """Refuse a folder without a tagger."""
    from dxml.methods import TAGGER, saved_method

    if (method := saved_method(folder)) != TAGGER:
        raise ModelFormatError(
            f"{folder}: holds a model of method {method!r}, which takes features, not texts. "
            "A tagger is needed here, which dxml train --text makes."
        )
