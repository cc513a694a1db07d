"""The journal: all lessons in their order, in an SQLite file in the model's folder.

A lesson is committed to the disk (WAL, ``synchronous=FULL``) before the request is answered, so it
survives when the process is killed. Several processes may share a journal. Each applies the entries
after the last one it has applied, so all apply the same lessons in the same order.

Lessons are applied to the model in the folder, also after that was replaced. A saved model records
the journal and the last entry that were applied to it, and only later entries are applied again.
Where the whole folder was replaced, the new journal copies the lessons of the old one
(`Journal.take_over`). `Journal.compact` drops entries that later ones have made void; the remaining
ones give any model the same texts and labels.
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
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dxml.exceptions import ModelFormatError
from dxml.tagging._entries import Action, Entry, read_entry

__all__ = ["JOURNAL", "Action", "Entry", "Journal", "Share"]

JOURNAL = "lessons.sqlite"
"""The journal's name in a model's folder."""
VERSION = 3
PAGE = 1000  # entries read at a time

_SHARES = (
    "CREATE TABLE IF NOT EXISTS shares (name TEXT PRIMARY KEY, points INTEGER NOT NULL, "
    "labels INTEGER NOT NULL, bytes INTEGER NOT NULL)"
)

_MAY_PASS = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
}
"""What the disk or other programs are to blame for, and not the file."""


@dataclass(frozen=True)
class Share:
    """How much somebody has taught: texts, labels that were new, and bytes of the journal."""

    name: str
    points: int = 0
    labels: int = 0
    bytes: int = 0

    def __add__(self, more: Share) -> Share:
        """Both together."""
        return Share(
            self.name,
            self.points + more.points,
            self.labels + more.labels,
            self.bytes + more.bytes,
        )


class Journal:
    """Entries in one SQLite file; it may be used from any thread.

    Parameters
    ----------
    path : str or Path
        Created where it does not exist.

    Attributes
    ----------
    identity : str
        Random name of this journal. Numbers of entries are valid together with it only.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self._open()
        except ModelFormatError:
            raise
        except (sqlite3.Error, ValueError) as error:  # a name in it may be no UTF-8
            raise ModelFormatError(
                f"{self.path}: cannot be opened as the journal of what is taught ({error}). "
                "The model's folder must be writable, and the file one that dxml serve made."
            ) from error

    def _open(self) -> None:
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_file()):
            raise ModelFormatError(f"{self.path}: is a link, or no file. Remove it.")
        self._connection = sqlite3.connect(
            self.path, timeout=30, check_same_thread=False, isolation_level=None
        )
        weakref.finalize(self, self._connection.close)  # where nobody closes it
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise
        self._file = _file_at(self.path)

    def _prepare(self) -> None:
        """Check the version, and make what is missing."""
        self._connection.execute("PRAGMA trusted_schema=OFF")
        more = "SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger')"
        if (found := self._connection.execute(more).fetchone()) is not None:
            raise ModelFormatError(
                f"{self.path}: has a view or trigger, {found[0]!r:.80}, that no dxml makes: it may "
                "never end, or change what is written. Remove the file, or make it anew."
            )
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        [version] = self._connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise ModelFormatError(
                f"{self.path}: written by a newer dxml (version {version} of the journal, known "
                f"is {VERSION}). Upgrade dxml."
            )
        if version < VERSION:  # opening a current journal writes nothing
            self._make()
        found = self._connection.execute("SELECT name FROM identity").fetchone()
        if found is None or not isinstance(found[0], str):
            raise ValueError("it has no name")
        self.identity: str = found[0]

    def in_place(self) -> bool:
        """Whether the file at the path is still the one that is open."""
        return _file_at(self.path) == self._file

    def _make(self) -> None:
        """Create the tables that do not exist yet."""
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
    def _whole(self) -> Iterator[None]:
        """Inside, damage of the file is an error that names it."""
        try:
            yield
        except ModelFormatError:
            raise
        except (sqlite3.Error, ValueError) as error:
            code = getattr(error, "sqlite_errorcode", -1) & 0xFF
            if isinstance(error, sqlite3.ProgrammingError) or code in _MAY_PASS:
                raise
            raise ModelFormatError(
                f"{self.path}: the journal of what is taught is damaged ({error}). Put back a copy "
                "of it, or move it away: what was taught since the model was saved is lost then."
            ) from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction, rolled back on an exception."""
        with self._whole(), self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                if self._connection.in_transaction:  # a full disk has ended it already
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def append(self, action: Action, content: Mapping[str, Any], share: Share | None = None) -> int:
        """Commit an entry to the disk; returns its number.

        Where a share is given, its bytes are those of the entry, and all of it is added to what is
        known of who taught it, in the same transaction.
        """
        row = (time.time(), action, json.dumps(content))  # ASCII can store lone surrogates
        with self._transaction() as connection:
            insert = "INSERT INTO lessons (time, action, content) VALUES (?, ?, ?)"
            number = int(connection.execute(insert, row).lastrowid or 0)
            if share is not None:
                connection.execute(_SHARES)
                connection.execute(
                    "INSERT INTO shares VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
                    "points = points + excluded.points, labels = labels + excluded.labels, "
                    "bytes = bytes + excluded.bytes",
                    (share.name, share.points, share.labels, len(row[2])),
                )
        return number

    def share(self, name: str) -> Share:
        """What somebody has taught since the journal was compacted."""
        with self._whole(), self._lock:
            try:
                row = self._connection.execute(
                    "SELECT points, labels, bytes FROM shares WHERE name = ?", (name,)
                ).fetchone()
            except sqlite3.OperationalError:  # nobody has a share yet
                row = None
            return Share(name) if row is None else Share(name, *map(int, row))

    def last(self) -> int:
        """The number of the last entry; 0 where there is none."""
        with self._whole(), self._lock:
            [last] = self._connection.execute("SELECT max(number) FROM lessons").fetchone()
        return int(last or 0)

    def after(self, number: int) -> list[Entry]:
        """The first entries after this one, a thousand at most."""
        with self._whole(), self._lock:
            rows = self._connection.execute(
                "SELECT number, action, content, time FROM lessons WHERE number > ? "
                "ORDER BY number LIMIT ?",
                (number, PAGE),
            ).fetchall()
            return [read_entry(*row) for row in rows]

    def lessons(self) -> list[Entry]:
        """All entries but requests to reload, in their order."""
        found: list[Entry] = []
        number = 0
        while entries := self.after(number):
            found += [entry for entry in entries if entry.action != "reload"]
            number = entries[-1].number
        return found

    def newest(self, before: int | None, limit: int) -> list[Entry]:
        """The last lessons, newest first; `before` leaves out those from this number on."""
        with self._whole(), self._lock:
            rows = self._connection.execute(
                "SELECT number, action, content, time FROM lessons "
                "WHERE action != 'reload' AND (:before IS NULL OR number < :before) "
                "ORDER BY number DESC LIMIT :limit",
                {"before": before, "limit": limit},
            ).fetchall()
            return [read_entry(*row) for row in rows]

    def count(self) -> int:
        """How many lessons there are; requests to reload do not count."""
        with self._whole(), self._lock:
            [n] = self._connection.execute(
                "SELECT count(*) FROM lessons WHERE action != 'reload'"
            ).fetchone()
        return int(n)

    def remove(self, number: int) -> None:
        """Take an entry out; processes that have applied it must reload."""
        with self._whole(), self._lock:
            self._connection.execute("DELETE FROM lessons WHERE number = ?", (number,))

    def take_over(self, other: Journal, after: int = 0) -> int:
        """Copy the lessons of another journal that this one lacks, with their times.

        Where one is a copy of the other, these are the lessons after the last common entry.

        Parameters
        ----------
        after : int
            Entries of the other journal up to this number are left out.

        Returns
        -------
        Number of entries copied.
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
        with self._whole(), self._lock:
            [pages] = self._connection.execute("PRAGMA page_count").fetchone()
            [free] = self._connection.execute("PRAGMA freelist_count").fetchone()
            [page] = self._connection.execute("PRAGMA page_size").fetchone()
        return int((pages - free) * page)

    def has_lessons_after(self, number: int) -> bool:
        """Whether there are lessons after this entry; requests to reload do not count."""
        with self._whole(), self._lock:
            [found] = self._connection.execute(
                "SELECT EXISTS (SELECT 1 FROM lessons WHERE number > ? AND action != 'reload')",
                (number,),
            ).fetchone()
        return bool(found)

    def compact(self) -> int:
        """Drop void entries: texts taught again or forgotten later, and old requests to reload.

        The others keep their numbers, so processes that share the journal are not affected. What
        each has taught is counted from here on.

        Returns
        -------
        Number of entries dropped.
        """
        gone, settled, reloads = 0, set[str](), 0
        with self._transaction() as connection:
            connection.execute("DROP TABLE IF EXISTS shares")
            newest_first = connection.execute(
                "SELECT number, action, content, time FROM lessons ORDER BY number DESC"
            ).fetchall()
            for row in newest_first:
                entry = read_entry(*row)
                left = _still_valid(entry.action, dict(entry.content), settled, reloads)
                reloads += entry.action == "reload"
                if left is None:
                    connection.execute("DELETE FROM lessons WHERE number = ?", (entry.number,))
                    gone += 1
                elif (text := json.dumps(left)) != row[2]:
                    change = "UPDATE lessons SET content = ? WHERE number = ?"
                    connection.execute(change, (text, entry.number))
        with self._lock, contextlib.suppress(sqlite3.OperationalError):  # while others write
            self._connection.execute("VACUUM")
        return gone

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()


def _file_at(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file at a path; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _digest(time: float, action: str, content: str) -> tuple[float, str, bytes]:
    """A key that is equal for equal entries only."""
    return time, action, hashlib.sha256(content.encode()).digest()


def _still_valid(
    action: Action, content: dict[str, Any], settled: set[str], reloads: int
) -> dict[str, Any] | None:
    """The part of an entry that later ones have not made void, or None.

    `settled` has the ids that later entries teach or forget; those of this entry are added.
    """
    if action == "reload":
        return None if reloads else content
    if action == "learn":
        kept = [i for i, id in enumerate(content["ids"]) if id not in settled]
        settled.update(content["ids"])
        return {name: [rows[i] for i in kept] for name, rows in content.items()} if kept else None
    if action == "relabel":
        return content
    if content["id"] in settled:
        return None
    if action == "forget":
        settled.add(content["id"])
    return content
