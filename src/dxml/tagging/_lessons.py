"""The lessons of a journal for a person: what each was, and how to take it back.

A lesson that is not part of the saved model yet is taken out of the journal: it is then as if it
had never been. One that is, is taken back by others: its texts are taught again as they were by the
lessons before it, or forgotten. What the training data had, and a lesson has replaced or taken
away, the journal does not know; an earlier version of the model has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from dxml.exceptions import ParameterError
from dxml.tagging._journal import Action, Entry
from dxml.tagging._known_texts import first_line

__all__ = ["Taught", "compensation", "described", "found", "summary", "when"]

Step = tuple[Action, dict[str, Any]]
"""An action and its arguments."""


@dataclass(frozen=True)
class Taught:
    """A text of the journal as its lessons have left it."""

    text: str
    labels: tuple[str, ...]


State = Taught | Literal["unknown", "changed", "gone"]
"""A text that was taught, or one of which the journal knows nothing, or what was done to it."""


def when(time: float) -> str:
    """A time for a person, in UTC.

    >>> when(0)
    '1970-01-01 00:00'
    """
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")


def summary(entry: Entry) -> str:
    """One line about a lesson.

    >>> summary(Entry(1, "forget", {"id": "a"}))
    "forgot 'a'"
    """
    content = entry.content
    if entry.action == "learn":
        n = len(content["texts"])
        labels = list(dict.fromkeys(label for row in content["labels"] for label in row))
        more = f" and {n - 1:,} more" if n > 1 else ""
        named = ", ".join(labels[:5]) + (", …" if len(labels) > 5 else "")
        return f"learnt {first_line(content['texts'][0])!r}{more}: {named or 'no labels'}"
    if entry.action == "forget":
        return f"forgot {content['id']!r}"
    if entry.action == "unlabel":
        return f"took {content['label']!r} off {content['id']!r}"
    if entry.action == "relabel":
        named = ", ".join(map(repr, content["labels"]))
        done = {"rename": "renamed", "merge": "merged", "delete": "deleted"}[content["how"]]
        to = {"rename": f" to {content['into']!r}", "merge": f" into {content['into']!r}"}
        return f"{done} {named}{to.get(content['how'], '')}"
    return str(entry.action)


def described(entry: Entry, pending: bool) -> dict[str, Any]:
    """A lesson as values that JSON knows."""
    return {
        "number": entry.number,
        "time": when(entry.time),
        "action": entry.action,
        "pending": pending,
        "summary": summary(entry),
        **{name: value for name, value in entry.content.items() if name != "replaced"},
    }


def found(entries: Sequence[Entry], number: int) -> Entry:
    """The lesson with a number."""
    for entry in entries:
        if entry.number == number:
            return entry
    last = f"; the last is {entries[-1].number}" if entries else ""
    raise ParameterError(f"there is no lesson {number}{last}. See dxml lessons list.")


def compensation(entries: Sequence[Entry], number: int) -> list[Step]:
    """The lessons that take one back.

    Raises
    ------
    ParameterError
        Where the journal does not know what was before.
    """
    entry = found(entries, number)
    if entry.action == "relabel":
        if entry.content["how"] != "rename":
            raise ParameterError(_lost(number, "the labels as they were"))
        back = {"labels": [entry.content["into"]], "into": entry.content["labels"][0]}
        return [("relabel", {"how": "rename", **back})]
    others = [each for each in entries if each.number != number]
    ids = entry.content["ids"] if entry.action == "learn" else [entry.content["id"]]
    fresh = entry.action == "learn" and "replaced" in entry.content
    replaced = entry.content["replaced"] if fresh else [entry.action != "learn"] * len(ids)
    taught: dict[str, list[Any]] = {"texts": [], "labels": [], "ids": []}
    steps: list[Step] = []
    for id, had_one in zip(ids, replaced, strict=True):
        without = _state(others, id)
        if without == _state(entries, id):
            continue  # a later lesson has settled it
        if isinstance(without, Taught):
            taught["texts"].append(without.text)
            taught["labels"].append(list(without.labels))
            taught["ids"].append(id)
        elif without != "gone" and had_one:
            raise ParameterError(_lost(number, f"the text {id!r} of the training data"))
        else:
            steps.append(("forget", {"id": id}))
    if taught["ids"]:
        steps.append(("learn", taught))
    return steps


def _lost(number: int, what: str) -> str:
    return (
        f"lesson {number} cannot be taken back: the journal does not have {what}. "
        "dxml versions lists earlier models, and dxml restore brings one back."
    )


def _state(entries: Sequence[Entry], id: str) -> State:
    """A text as lessons have left it."""
    state: State = "unknown"
    for entry in entries:
        state = _after(state, entry, id)
    return state


def _after(state: State, entry: Entry, id: str) -> State:
    content = entry.content
    if entry.action == "learn" and id in content["ids"]:
        place = content["ids"].index(id)
        return Taught(content["texts"][place], tuple(content["labels"][place]))
    if entry.action == "forget" and content["id"] == id:
        return "gone"
    if entry.action == "unlabel" and content["id"] == id:
        if not isinstance(state, Taught):
            return "changed" if state == "unknown" else state
        return Taught(state.text, tuple(n for n in state.labels if n != content["label"]))
    if entry.action == "relabel" and isinstance(state, Taught):
        gone, into = set(content["labels"]), content["into"]
        labels = [into if name in gone else name for name in state.labels]
        return Taught(state.text, tuple(dict.fromkeys(name for name in labels if name)))
    return state
