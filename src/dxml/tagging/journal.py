"""The journal: everything taught, in the order it was taught, in SQLite beside the model.

A lesson is committed, and on the disk (WAL, ``synchronous=FULL``), before it is answered; a process
that is killed at any moment finds it again when it starts. Several processes may write to one
journal; each asks for what came after the last entry it has applied, so all apply the same lessons
in the same order.

Lessons are applied on top of the model that is in the folder, also after another one was put there.
A model that has taken lessons up says of which journal and up to which entry, and only what came
later is applied to it. Where another folder took the place of the model's, its journal takes over
the lessons of the old one (`Journal.take_over`). What later entries have made void can be dropped
(`Journal.compact`): the rest leads any model to the same texts and labels.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dxml.exceptions import ModelFormatError

__all__ = ["JOURNAL", "Action", "Entry", "Journal"]

JOURNAL = "lessons.sqlite"
"""The journal's name in a model's folder."""
VERSION = 2
PAGE = 1000  # entries read at a time

Action = Literal["learn", "forget", "unlabel", "reload"]


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

    Attributes
    ----------
    identity : str
        Of this journal and no other: the numbers of its entries mean nothing elsewhere.
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
        [version] = self._connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise ModelFormatError(
                f"{self.path}: written by a newer dxml (version {version} of the journal, known "
                f"is {VERSION}). Upgrade dxml."
            )
        if version < VERSION:  # else opening it leaves the file as it is
            self._make()
        [self.identity] = self._connection.execute("SELECT name FROM identity").fetchone()
        self._file = _file_at(self.path)

    def in_place(self) -> bool:
        """Whether the file at the path is still the one that is open."""
        return _file_at(self.path) == self._file

    def _make(self) -> None:
        """The tables, or those that an older version had not."""
        with self._transaction() as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS lessons (number INTEGER PRIMARY KEY AUTOINCREMENT, "
                "time REAL NOT NULL, action TEXT NOT NULL, content TEXT NOT NULL)"
            )
            connection.execute("CREATE TABLE IF NOT EXISTS identity (name TEXT NOT NULL)")
            if connection.execute("SELECT count(*) FROM identity").fetchone() == (0,):
                connection.execute("INSERT INTO identity VALUES (?)", (secrets.token_hex(16),))
            connection.execute(f"PRAGMA user_version={VERSION}")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Inside, no other process writes; all of it is kept, or nothing."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

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

    def take_over(self, other: Journal, after: int = 0) -> int:
        """Append the lessons of another journal, with their times, that are not here yet.

        It may be a copy of this one: then those after the last entry that both have.

        Parameters
        ----------
        after : int
            The last entry of the other that need not be taken over.

        Returns
        -------
        Entries that were taken over.
        """
        with other._lock:
            theirs = other._connection.execute(
                "SELECT number, time, action, content FROM lessons "
                "WHERE number > ? AND action != 'reload' ORDER BY number",
                (after,),
            ).fetchall()
        with self._transaction() as connection:
            numbered, known = set(), set()
            for number, *entry in connection.execute(
                "SELECT number, time, action, content FROM lessons"
            ):
                numbered.add((number, entry[0]))
                known.add(_digest(*entry))
            common = [row[0] for row in theirs if row[:2] in numbered]
            shared = max(common, default=0) if other.identity == self.identity else 0
            new = [row[1:] for row in theirs if row[0] > shared and _digest(*row[1:]) not in known]
            connection.executemany(
                "INSERT INTO lessons (time, action, content) VALUES (?, ?, ?)", new
            )
        return len(new)

    def size(self) -> int:
        """Bytes of all entries, as they lie in the file."""
        with self._lock:
            [pages] = self._connection.execute("PRAGMA page_count").fetchone()
            [free] = self._connection.execute("PRAGMA freelist_count").fetchone()
            [page] = self._connection.execute("PRAGMA page_size").fetchone()
        return int((pages - free) * page)

    def has_lessons_after(self, number: int) -> bool:
        """Whether anything was taught after this entry; wishes to reload teach nothing."""
        with self._lock:
            [found] = self._connection.execute(
                "SELECT EXISTS (SELECT 1 FROM lessons WHERE number > ? AND action != 'reload')",
                (number,),
            ).fetchone()
        return bool(found)

    def compact(self) -> int:
        """Drop what later entries have made void: texts taught again or forgotten, old reloads.

        Entries keep their numbers, so processes that share the journal need not know.

        Returns
        -------
        Entries that went away.
        """
        gone, settled, reloads = 0, set[str](), 0
        with self._transaction() as connection:
            newest_first = connection.execute(
                "SELECT number, action, content FROM lessons ORDER BY number DESC"
            ).fetchall()
            for number, action, content in newest_first:
                left = _still_valid(action, json.loads(content), settled, reloads)
                reloads += action == "reload"
                if left is None:
                    connection.execute("DELETE FROM lessons WHERE number = ?", (number,))
                    gone += 1
                elif (text := json.dumps(left)) != content:
                    change = "UPDATE lessons SET content = ? WHERE number = ?"
                    connection.execute(change, (text, number))
        with self._lock, contextlib.suppress(sqlite3.OperationalError):  # busy: another time
            self._connection.execute("VACUUM")
        return gone

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()


def _file_at(path: Path) -> tuple[int, int] | None:
    """Which file it is, whatever its name."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _digest(time: float, action: str, content: str) -> tuple[float, str, bytes]:
    """Of an entry and no other."""
    return time, action, hashlib.sha256(content.encode()).digest()


def _still_valid(
    action: Action, content: dict[str, Any], settled: set[str], reloads: int
) -> dict[str, Any] | None:
    """What is left of an entry, given the ids that later ones settle; it adds its own to them."""
    if action == "reload":
        return None if reloads else content
    if action == "learn":
        kept = [i for i, id in enumerate(content["ids"]) if id not in settled]
        settled.update(content["ids"])
        return {name: [rows[i] for i in kept] for name, rows in content.items()} if kept else None
    if content["id"] in settled:
        return None
    if action == "forget":
        settled.add(content["id"])
    return content
