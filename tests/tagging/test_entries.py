"""Entries of a journal as a file has them: those that no dxml writes are damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dxml.exceptions import ModelFormatError
from dxml.tagging._journal import Journal

LEARN = {"texts": ["a"], "labels": [["x"]], "ids": ["1"]}
NO_ENTRIES: dict[str, tuple[object, object, object]] = {
    "no JSON": ("forget", '{"id": "a"', 1.0),
    "JSON in a blob that is no text": ("forget", b"\xff", 1.0),
    "deep JSON": ("forget", "[" * 100_000, 1.0),
    "no object": ("forget", "[]", 1.0),
    "an action that there is not": ("burn", '{"id": "a"}', 1.0),
    "no time": ("forget", '{"id": "a"}', "soon"),
    "a time without end": ("forget", '{"id": "a"}', 1e300),
    "an id that is a number": ("forget", '{"id": 1}', 1.0),
    "no label": ("unlabel", '{"id": "1"}', 1.0),
    "texts that are none": ("learn", json.dumps({**LEARN, "texts": [1]}), 1.0),
    "fewer ids": ("learn", json.dumps({**LEARN, "ids": []}), 1.0),
    "labels in no list": ("learn", json.dumps({**LEARN, "labels": ["x"]}), 1.0),
    "nothing to learn": ("learn", '{"texts": [], "labels": [], "ids": []}', 1.0),
    "another change": ("relabel", '{"how": "burn", "labels": ["x"], "into": null}', 1.0),
    "no new name": ("relabel", '{"how": "rename", "labels": ["x"], "into": null}', 1.0),
}


@pytest.mark.parametrize("name", NO_ENTRIES)
def test_an_entry_that_no_dxml_writes(tmp_path: Path, name: str) -> None:
    path = tmp_path / "j.sqlite"
    journal = Journal(path)
    journal.append("learn", LEARN)
    action, content, time = NO_ENTRIES[name]
    insert = "INSERT INTO lessons (time, action, content) VALUES (?, ?, ?)"
    journal._connection.execute(insert, (time, action, content))
    for read in (lambda: journal.after(0), journal.lessons, lambda: journal.newest(None, 5)):
        with pytest.raises(ModelFormatError, match=r"j\.sqlite: .* is damaged \(entry 2") as caught:
            read()
        assert "Put back a copy of it, or move it away" in str(caught.value)
    with pytest.raises(ModelFormatError, match="entry 2"):
        journal.compact()
    assert len(journal.newest(2, 5)) == 1  # what is whole is there
    journal.close()
