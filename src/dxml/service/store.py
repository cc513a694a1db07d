"""The journal: everything taught, in the order it was taught, in SQLite beside the model.

A lesson is committed, and on the disk (WAL, ``synchronous=FULL``), before it is applied; a process
that is killed at any moment finds it again when it starts. Several processes may write to one
journal; each asks for what came after the last entry it has applied, so all apply the same lessons
in the same order.

The model's own folder is not changed: lessons are applied on top of what is in it, also after
another model was put there.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dxml.exceptions import ModelFormatError

__all__ = ["JOURNAL", "Action", "Entry", "Journal"]

JOURNAL = "lessons.sqlite"
"""The journal's name in a model's folder."""
VERSION = 1
PAGE = 1000  # entries read at a time

Action = Literal["learn", "forget", "reload"]


@dataclass(frozen=True)
class Entry:
    """One entry: its number, what was done, and what with."""

    number: int
    action: Action
    content: Mapping[str, Any]


class Journal:
    """Entries in one SQLite file; it may be used from any thread.

    Parameters
    ----------
    path : str or Path
        Made when it is not there.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self._open()
        except sqlite3.Error as error:
            raise ModelFormatError(
                f"{self.path}: cannot be opened as the journal of what is taught ({error}). "
                "The model's folder must be writable, and the file one that dxml serve made."
            ) from error

    def _open(self) -> None:
        self._connection = sqlite3.connect(
            self.path, timeout=30, check_same_thread=False, isolation_level=None
        )
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS lessons (number INTEGER PRIMARY KEY AUTOINCREMENT, "
            "time REAL NOT NULL, action TEXT NOT NULL, content TEXT NOT NULL)"
        )
        [version] = self._connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise ModelFormatError(
                f"{self.path}: written by a newer dxml (version {version} of the journal, known "
                f"is {VERSION}). Upgrade dxml."
            )
        if version < VERSION:
            self._connection.execute(f"PRAGMA user_version={VERSION}")

    def append(self, action: Action, content: Mapping[str, Any]) -> int:
        """Commit an entry to the disk; its number."""
        row = (time.time(), action, json.dumps(content))  # ASCII, whatever the texts hold
        with self._lock:
            done = self._connection.execute(
                "INSERT INTO lessons (time, action, content) VALUES (?, ?, ?)", row
            )
            return int(done.lastrowid or 0)

    def last(self) -> int:
        """The number of the last entry; 0 where there is none."""
        with self._lock:
            [last] = self._connection.execute("SELECT max(number) FROM lessons").fetchone()
        return int(last or 0)

    def after(self, number: int) -> list[Entry]:
        """The first entries after this one, a thousand at most."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT number, action, content FROM lessons WHERE number > ? "
                "ORDER BY number LIMIT ?",
                (number, PAGE),
            ).fetchall()
        return [Entry(number, action, json.loads(content)) for number, action, content in rows]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
