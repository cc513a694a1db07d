"""The journal: what was taught, in its order, on the disk."""

from __future__ import annotations

import gc
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from dxml.exceptions import ModelFormatError
from dxml.tagging._journal import Entry, Journal


def test_entries_come_back_in_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    assert (journal.last(), journal.after(0)) == (0, [])
    assert journal.append("forget", {"id": "größe \ud83d\ude00"}) == 1
    assert journal.append("forget", {"id": "b"}) == 2
    other = Journal(tmp_path / "j.sqlite")
    assert other.last() == 2
    assert other.after(1) == [Entry(2, "forget", {"id": "b"})]
    journal.close()
    other.close()


def test_a_commit_is_on_the_disk(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    connection = journal._connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    journal.close()


def test_a_full_disk_is_what_the_error_says(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    journal._connection.execute("PRAGMA max_page_count = 6")
    with pytest.raises(sqlite3.OperationalError, match="database or disk is full"):
        journal.append("forget", {"id": "a" * 100_000})
    assert journal.append("forget", {"id": "b"}) == 1
    journal.close()


def test_looking_into_a_journal_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    journal = Journal(path)
    assert not journal.has_lessons_after(0)
    number = journal.append("forget", {"id": "a"})
    for _ in range(3):
        journal.append("reload", {"by": "one"})
    journal.close()
    before = path.stat().st_mtime_ns, path.read_bytes()
    again = Journal(path)
    assert again.has_lessons_after(number - 1) and not again.has_lessons_after(number)
    again.close()
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before


def test_files_that_are_no_journal(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, but long enough to be looked at " * 20)
    with pytest.raises(ModelFormatError, match="cannot be opened as the journal"):
        Journal(tmp_path / "text")
    with pytest.raises(ModelFormatError, match="folder must be writable"):
        Journal(tmp_path / "nowhere" / "j.sqlite")
    newer = sqlite3.connect(tmp_path / "newer")
    newer.execute("PRAGMA user_version=9")
    newer.close()
    with pytest.raises(ModelFormatError, match="written by a newer dxml"):
        Journal(tmp_path / "newer")


def lesson(*ids: str, label: str = "Fish soup") -> dict[str, list[Any]]:
    return {"texts": ["herring soup"] * len(ids), "labels": [[label]] * len(ids), "ids": list(ids)}


def test_void_entries_are_dropped(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    journal.append("learn", lesson("a", "b", "c"))
    journal.append("unlabel", {"id": "a", "label": "Fish soup"})  # void: a is taught again
    journal.append("reload", {"by": "one"})  # void: there is a later one
    journal.append("forget", {"id": "b"})
    journal.append("forget", {"id": "a"})  # void: a is taught again
    journal.append("learn", lesson("a", label="Soup"))
    journal.append("unlabel", {"id": "c", "label": "Fish soup"})
    journal.append("reload", {"by": "two"})
    assert journal.compact() == 3
    left = [
        Entry(1, "learn", lesson("c")),
        Entry(4, "forget", {"id": "b"}),
        Entry(6, "learn", lesson("a", label="Soup")),
        Entry(7, "unlabel", {"id": "c", "label": "Fish soup"}),
        Entry(8, "reload", {"by": "two"}),
    ]
    assert journal.after(0) == left
    assert journal.compact() == 0 and journal.after(0) == left
    assert journal.append("learn", lesson("c")) == 9
    assert journal.compact() == 2 and [entry.number for entry in journal.after(0)] == [4, 6, 8, 9]
    journal.close()


def test_a_journal_of_the_first_version_is_taken_on(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / "j.sqlite")
    old.execute(
        "CREATE TABLE lessons (number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, "
        "action TEXT NOT NULL, content TEXT NOT NULL)"
    )
    old.execute("INSERT INTO lessons VALUES (7, 0, 'forget', '{\"id\": \"a\"}')")
    old.execute("PRAGMA user_version=1")
    old.commit()
    old.close()
    one, two = Journal(tmp_path / "j.sqlite"), Journal(tmp_path / "j.sqlite")
    assert one.after(0) == [Entry(7, "forget", {"id": "a"})]
    assert one.identity == two.identity and len(one.identity) == 32
    other = Journal(tmp_path / "other.sqlite")
    assert other.identity != one.identity
    for journal in (one, two, other):
        journal.close()


def test_a_file_that_is_refused_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def kept(*given: Any, **more: Any) -> sqlite3.Connection:
        opened.append(connect(*given, **more))
        return opened[-1]

    (tmp_path / "text").write_text("no journal, but long enough to be looked into " * 9)
    monkeypatch.setattr(sqlite3, "connect", kept)
    with pytest.raises(ModelFormatError, match="cannot be opened as the journal"):
        Journal(tmp_path / "text")
    [connection] = opened
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_a_journal_that_nobody_closes_is_closed_when_it_goes(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "lessons.sqlite")
    connection = journal._connection
    del journal
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_links_and_pipes_are_not_opened(tmp_path: Path) -> None:
    """A folder from elsewhere may have one in the journal's place: tables would be made there."""
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE own (x)")
    connection.close()
    before = other.read_bytes()
    (tmp_path / "link.sqlite").symlink_to(other)
    (tmp_path / "dangling.sqlite").symlink_to(tmp_path / "made.sqlite")
    os.mkfifo(tmp_path / "pipe.sqlite")
    for name in ("link", "dangling", "pipe"):
        with pytest.raises(ModelFormatError, match=f"{name}.sqlite: is a link, or no file"):
            Journal(tmp_path / f"{name}.sqlite")
    assert other.read_bytes() == before and not (tmp_path / "made.sqlite").exists()


ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"


@pytest.mark.parametrize(
    "more",
    [
        f"ALTER TABLE identity RENAME TO kept; CREATE VIEW identity AS SELECT ({ENDLESS}) AS name",
        "CREATE TRIGGER gone AFTER INSERT ON entry BEGIN DELETE FROM entry; END",
    ],
)
def test_views_and_triggers_are_refused(tmp_path: Path, more: str) -> None:
    """One may never end, and another remove each lesson once it is acknowledged."""
    journal = Journal(tmp_path / "j.sqlite")
    [(table,)] = journal._connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%content%'"
    )
    journal.close()
    connection = sqlite3.connect(tmp_path / "j.sqlite")
    connection.executescript(more.replace("entry", table))
    connection.close()
    with pytest.raises(ModelFormatError, match="has a view or trigger"):
        Journal(tmp_path / "j.sqlite")


LEARN = {"texts": ["a"], "labels": [["x"]], "ids": ["1"]}


def test_a_journal_whose_pages_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    journal = Journal(path)
    for number in range(200):
        journal.append("learn", {**LEARN, "texts": [f"{number} " * 50]})
    journal._connection.execute("PRAGMA journal_mode=DELETE")
    journal.close()
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    path.write_bytes(content)
    journal = Journal(path)
    with pytest.raises(ModelFormatError, match=r"j\.sqlite: the journal of .* is damaged"):
        journal.lessons()
    journal.close()


def test_a_journal_without_its_name(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    journal._connection.execute("DELETE FROM identity")
    journal.close()
    with pytest.raises(ModelFormatError, match="cannot be opened as the journal.*it has no name"):
        Journal(tmp_path / "j.sqlite")
