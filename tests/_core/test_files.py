"""A file is the former one until the new one is whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dxml._core.files import replace_text, replacing


def test_a_file_is_replaced_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "file.txt"
    replace_text(path, "first ä\n")
    with replacing(path) as beside:
        beside.write_text("second")
        assert path.read_text("utf-8") == "first ä\n" and beside.parent == path.parent
    assert path.read_text() == "second" and list(path.parent.iterdir()) == [path]


def test_a_failed_block_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("first")
    with pytest.raises(KeyboardInterrupt), replacing(path) as beside:
        beside.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "first" and list(tmp_path.iterdir()) == [path]


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    with replacing(path) as outer:
        outer.write_text("last")
        replace_text(path, "inner")
        assert path.read_text() == "inner"
    assert path.read_text() == "last"


def test_others_may_read_it_as_any_new_file(tmp_path: Path) -> None:
    replace_text(tmp_path / "replaced", "")
    (tmp_path / "plain").write_text("")
    modes = [os.stat(tmp_path / name).st_mode for name in ("replaced", "plain")]
    assert modes[0] == modes[1]
