"""What a service was taught, taken into the saved model: `dxml learn --journal`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dxml.exceptions import ParameterError
from dxml.service._engine import Engine
from dxml.service._reviewing import take_back
from dxml.service._served import Change, ServedTagger, check_method
from dxml.tagging._journal import JOURNAL, Journal
from dxml.tagging._tagger import AppliedLessons, TextTagger

__all__ = [
    "apply_journal",
    "compact_journal",
    "has_new_lessons",
    "journal_in",
    "relabel",
    "undo_lesson",
]


def has_new_lessons(folder: str | Path, tagger: TextTagger) -> bool:
    """Whether a service of a folder was taught anything that its saved tagger does not know."""
    journal = Journal(journal_in(folder))
    try:
        known = ServedTagger(tagger).applied_from(journal.identity)
        return journal.has_lessons_after(known)
    finally:
        journal.close()


def journal_in(folder: str | Path) -> Path:
    """The journal of a folder, which must be there."""
    path = Path(folder) / JOURNAL
    if not path.exists():
        raise ParameterError(f"{folder}: has no {JOURNAL}; no service was taught anything.")
    return path


def apply_journal(folder: str | Path) -> TextTagger:
    """The tagger of a folder with all lessons of its journal applied; the caller saves it.

    The saved tagger records the last entry that was applied. A service that opens it applies only
    later ones. The folder is replaced in one step, so a process that is killed leaves either the
    old tagger or the new one, each with its own record.
    """
    check_method(folder)
    engine = Engine(folder, journal_in(folder))
    try:
        return _applied(engine)
    finally:
        engine.close()


def _applied(engine: Engine) -> TextTagger:
    """The tagger with a record of the lessons that were applied to it."""
    served = engine.served
    if not isinstance(served, ServedTagger):
        raise ParameterError(
            f"{engine.folder}: holds a model of features, which learns no lessons."
        )
    served.tagger.applied_lessons = AppliedLessons(engine.journal.identity, engine.applied)
    return served.tagger


def relabel(
    folder: str | Path, how: Change, labels: Sequence[str], into: str | None = None
) -> TextTagger:
    """The tagger of a folder with labels renamed, merged or deleted; the caller saves it.

    Where a service was taught, its lessons are applied first, and the change is an entry of its
    journal: what it was taught before has the old names, what it is taught later the new ones.
    """
    if not (Path(folder) / JOURNAL).exists():
        return ServedTagger(TextTagger.load(folder)).relabelled(how, labels, into).tagger
    engine = Engine(folder)
    try:
        engine.relabel(how, labels, into)
        return _applied(engine)
    finally:
        engine.close()


def undo_lesson(folder: str | Path, number: int) -> str:
    """Take a lesson back, and have services follow; says what was done.

    The saved model stays as it is: what is done about a lesson that it has is a lesson too.
    """
    engine = Engine(folder, journal_in(folder))
    try:
        return take_back(engine, number)
    finally:
        engine.close()


def compact_journal(folder: str | Path) -> int:
    """Drop the journal's void entries and have services reload.

    Call it when the tagger of `apply_journal` is saved.

    Returns
    -------
    Number of entries dropped.
    """
    journal = Journal(Path(folder) / JOURNAL)
    try:
        gone = journal.compact()
        journal.append("reload", {"by": "dxml learn"})
        return gone
    finally:
        journal.close()
