"""What a served model was taught, for a person: lessons listed, shown and taken back.

A lesson that is not part of the saved model yet is taken out of the journal, and the model is
loaded again without it. One that is, is taken back by other lessons (`dxml.tagging._lessons`).
"""

from __future__ import annotations

from typing import Any

from dxml._core.locking import folder_lock
from dxml._core.storage import read_config
from dxml.exceptions import ParameterError
from dxml.service._engine import Engine
from dxml.service._errors import ServiceError
from dxml.tagging._lessons import compensation, described, found, summary, when

__all__ = ["checked_take_back", "list_lessons", "saved_up_to", "show_lesson", "take_back"]

PATIENCE = 10.0  # seconds that another program may write the model meanwhile


def saved_up_to(engine: Engine) -> int:
    """The number of the last lesson that the model in the folder has."""
    lessons = read_config(engine.folder).get("lessons") or {}
    return int(lessons["number"]) if lessons.get("journal") == engine.journal.identity else 0


def list_lessons(engine: Engine, before: int | None, limit: int) -> dict[str, Any]:
    """Lessons with a smaller number than `before`, newest first, and how many there are in all."""
    saved = saved_up_to(engine)
    rows = [
        {
            "number": entry.number,
            "time": when(entry.time),
            "action": entry.action,
            "pending": entry.number > saved,
            "summary": summary(entry),
        }
        for entry in engine.journal.newest(before, limit)
    ]
    return {"total": engine.journal.count(), "lessons": rows}


def show_lesson(engine: Engine, number: int) -> dict[str, Any]:
    """One lesson in full."""
    for entry in engine.journal.newest(number + 1, 1):
        if entry.number == number:
            return described(entry, number > saved_up_to(engine))
    raise ServiceError("not_found", f"there is no lesson {number}.")


def take_back(engine: Engine, number: int) -> str:
    """Take a lesson back, here and in the processes that share the journal; says what was done.

    Raises
    ------
    ParameterError
        Where there is no such lesson, or the journal does not know what was before it.
    """
    with folder_lock(engine.folder, timeout=PATIENCE):  # nobody takes it into the model meanwhile
        entries = engine.journal.lessons()
        what = summary(found(entries, number))
        if number > saved_up_to(engine):
            engine.journal.remove(number)
            engine.reload()
            return f"took lesson {number} out of the journal: {what}"
        steps = compensation(entries, number)
    for action, content in steps:
        if action == "learn":
            engine.learn(**content)
        elif action == "forget":
            engine.forget(content["id"])
        else:
            engine.relabel(**content)
    done = "took it back" if steps else "later lessons have settled it"
    return f"lesson {number}, {what}: {done}"


def checked_take_back(engine: Engine, number: int) -> str:
    """As `take_back`, with the errors of a service."""
    show_lesson(engine, number)
    try:
        return take_back(engine, number)
    except ParameterError as error:
        raise ServiceError("conflict", str(error)) from None
    except TimeoutError:
        message = "another program is writing the model; try again later."
        raise ServiceError("busy", message) from None
