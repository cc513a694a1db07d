"""A file is the former one until the new one is whole."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dxml._core import files
from dxml._core.files import replace_text, replacing, replacing_folder


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


def test_a_full_disk_names_the_file_that_was_to_be_written(tmp_path: Path) -> None:
    path, full = tmp_path / "file.txt", (errno.ENOSPC, "No space left on device")
    for named in ((), (str(tmp_path / ".file.txt.0123456789ab.partial"),)):
        with pytest.raises(OSError, match="No space") as stop, replacing(path):
            raise OSError(*full, *named)
        assert stop.value.filename == str(path)
    with pytest.raises(OSError, match="No space") as stop, replacing_folder(path):
        raise OSError(*full, "another")
    assert stop.value.filename == "another"


def test_an_old_folder_that_stays_is_named_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data"
    path.mkdir()

    def refused(folder: Path, **_: object) -> None:
        raise OSError(errno.EIO, "Input/output error", "inner name")

    monkeypatch.setattr(shutil, "rmtree", refused)
    with pytest.raises(OSError, match="Input/output error") as stop:
        files.replace_folder(_folder(tmp_path / ".data.partial"), path)
    assert stop.value.filename == str(tmp_path / ".data.partial")


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


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


def test_a_folder_is_replaced_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "data"
    for number in range(2):
        with replacing_folder(path) as beside:
            (beside / f"file {number}").touch()
            assert path.exists() == bool(number)
        assert [file.name for file in path.iterdir()] == [f"file {number}"]
    assert list(tmp_path.iterdir()) == [path]


def test_names_change_places_in_one_step_or_in_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    real = os.rename
    monkeypatch.setattr(os, "rename", lambda *paths: (names.append(paths), real(*paths)))
    for number in range(3):
        new, path = tmp_path / "new", tmp_path / "path"
        new.mkdir()
        (new / str(number)).touch()
        files.replace_folder(new, path)
        assert [file.name for file in path.iterdir()] == [str(number)]
        assert list(tmp_path.iterdir()) == [path]
        if number == 1:
            assert not names, "one call of the system"
            monkeypatch.setattr(files, "_exchange", _cannot)
    assert len(names) == 2


def _cannot(*paths: Path) -> None:
    raise OSError("this system cannot")


KILLED = """
import os, signal, sys
from pathlib import Path
from dxml._core.files import replacing, replacing_folder

with replacing_folder(Path(sys.argv[1])) as folder, replacing(Path(sys.argv[2])) as file:
    (folder / "inside").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_goes_with_the_next(tmp_path: Path) -> None:
    folder, file = tmp_path / "a [1]*", tmp_path / "b?.txt"
    subprocess.run([sys.executable, "-c", KILLED, folder, file], check=False)
    assert len(list(tmp_path.iterdir())) == 2
    with replacing(file) as living, replacing_folder(folder):
        living.write_text("living")
        replace_text(file, "other")
        assert living.exists(), "what somebody is writing stays"
    assert sorted(tmp_path.iterdir()) == [folder, file]
    assert file.read_text() == "living"
