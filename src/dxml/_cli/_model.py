"""The tagger in a model's folder, for commands that need one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dxml._core.counted import counted
from dxml.exceptions import ModelFormatError

if TYPE_CHECKING:
    from dxml.tagging._tagger import TextTagger

__all__ = ["check_tagger", "load_tagger", "open_tagger", "pending_lessons"]


def load_tagger(folder: Path) -> TextTagger:
    """The tagger in a folder; a model of features is an error that says how to make a tagger."""
    from dxml.tagging._tagger import TextTagger

    check_tagger(folder)
    return TextTagger.load(folder)


def open_tagger(folder: Path) -> TextTagger:
    """As `load_tagger`, and says on standard error where a service knows more than the folder."""
    tagger = load_tagger(folder)
    if pending := pending_lessons(folder):
        typer.echo(
            f"{counted(pending, 'lesson')} that a service was taught: not part of {folder} yet, "
            f"apply with dxml learn --journal --model {folder}",
            err=True,
        )
    return tagger


def pending_lessons(folder: Path) -> int:
    """How many lessons of a service the model in its folder does not have."""
    from contextlib import closing

    from dxml._core.storage import read_config
    from dxml.tagging._journal import JOURNAL, Journal

    if not (folder / JOURNAL).exists():
        return 0
    known = read_config(folder).get("lessons") or {}
    with closing(Journal(folder / JOURNAL)) as journal:
        applied = known["number"] if known.get("journal") == journal.identity else 0
        return sum(entry.number > applied for entry in journal.lessons())


def check_tagger(folder: Path) -> None:
    """Refuse a folder without a tagger."""
    from dxml.methods import TAGGER, saved_method

    if (method := saved_method(folder)) != TAGGER:
        raise ModelFormatError(
            f"{folder}: holds a model of method {method!r}, which takes features, not texts. "
            "A tagger is needed here, which dxml train --text makes."
        )
