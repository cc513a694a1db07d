"""The journal, and processes that share one."""

from __future__ import annotations

import logging
import sqlite3
import time
from pathlib import Path

import pytest

from dxml.exceptions import ModelFormatError
from dxml.service.engine import Engine, Wanted
from dxml.service.store import Entry, Journal

from .conftest import client_of, names_of

SOUP = {"texts": ["herring soup"] * 2, "labels": [["Fish soup"]] * 2, "ids": ["a", "b"]}


def first_name(engine: Engine, text: str) -> str:
    [rows] = engine.rank([Wanted([text], 1)])
    assert isinstance(rows, list)
    return rows[0][0][0]


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


def test_two_workers_see_each_others_lessons(model: Path) -> None:
    with client_of(model) as one, client_of(model) as two:
        assert one.post("/learn", json=SOUP).json()["new_labels"] == ["Fish soup"]
        assert names_of(two, "soup of herring") == ["Fish soup"]
        assert two.get("/labels?query=soup").json()["total"] == 1
        assert two.delete("/points/a").status_code == 204
        assert one.delete("/points/a").status_code == 404
        assert one.delete("/points/b").status_code == 204
        assert "Fish soup" not in names_of(two, "soup of herring", top=10)
        assert two.get("/health").json() == one.get("/health").json()


def test_a_worker_that_starts_later_knows_the_same(model: Path) -> None:
    first = Engine(model)
    for i in range(5):  # lessons of their own are learnt together when replayed
        first.learn(["herring soup"], [["Fish soup"]], [f"taught {i % 4}"])
    first.forget("doc/3")
    second = Engine(model)
    assert (second.applied, second.served.n_points) == (6, 83) == (6, first.served.n_points)
    assert first_name(second, "soup of herring") == "Fish soup"
    first.close()
    second.close()


def test_a_lesson_that_cannot_be_applied_is_left_out(
    model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine(model)
    engine.journal.append("learn", {"texts": ["x"], "labels": [[""]], "ids": ["bad"]})
    engine.journal.append("learn", SOUP)
    engine.journal.append("forget", {"id": "never there"})
    with caplog.at_level(logging.ERROR):
        assert first_name(engine, "soup of herring") == "Fish soup"
    assert "entry 1 of the journal was left out" in caplog.text
    assert engine.applied == 3
    engine.close()


def test_a_reload_reaches_the_other_workers(model: Path) -> None:
    one, two = Engine(model), Engine(model)
    before = two.served
    one.reload()
    two.catch_up()
    deadline = time.monotonic() + 10
    while two.served is before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert two.served is not before
    after = one.served
    assert one.catch_up() is after  # its own wish is not one for itself
    with two._loading:
        pass
    one.close()
    two.close()
