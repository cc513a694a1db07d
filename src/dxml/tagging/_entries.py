"""One entry of the journal, and the check of what a file says that it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

__all__ = ["Action", "Entry", "read_entry"]

Action = Literal["learn", "forget", "unlabel", "relabel", "reload"]
LATEST = 253_402_300_799.0  # the last second of the year 9999


@dataclass(frozen=True)
class Entry:
    """One entry: its number, the action, the action's arguments, and when it was added."""

    number: int
    action: Action
    content: Mapping[str, Any]
    time: float = field(default=0.0, compare=False)


def read_entry(number: int, action: Any, text: Any, time: Any) -> Entry:
    """An entry as it lies in the file.

    Raises
    ------
    ValueError
        Where it is none that dxml writes.
    """
    try:
        content = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"entry {number} is no JSON: {error}") from None
    good = (
        action in get_args(Action)
        and isinstance(content, dict)
        and _KINDS[action](content)
        and isinstance(time, int | float)
        and 0 <= time <= LATEST
    )
    if not good:
        raise ValueError(f"entry {number}, {action!r:.20}, is none that dxml writes")
    return Entry(number, action, content, time)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_learn(content: Mapping[str, Any]) -> bool:
    texts, labels, ids = (content.get(name) for name in ("texts", "labels", "ids"))
    columns = texts, labels, ids, content.get("replaced", ids)
    sizes = {len(column) if isinstance(column, list) else 0 for column in columns}
    return len(sizes) == 1 and 0 not in sizes and all(map(_texts, [texts, ids, *(labels or ())]))


def _is_relabel(content: Mapping[str, Any]) -> bool:
    how, labels, into = (content.get(name) for name in ("how", "labels", "into"))
    named = into is None if how == "delete" else isinstance(into, str)
    return how in ("rename", "merge", "delete") and named and _texts(labels) and bool(labels)


def _has(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda content: all(isinstance(content.get(name), str) for name in names)


_KINDS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "learn": _is_learn,
    "forget": _has("id"),
    "unlabel": _has("id", "label"),
    "relabel": _is_relabel,
    "reload": _has("by"),
}
