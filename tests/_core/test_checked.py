"""A file that passed its checks is not read through again, until anything about it changes."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from dxml._core import checked
from dxml._core.checked import forget_oldest
from dxml._core.storage import read_folder, write_folder
from dxml.exceptions import ModelFormatError

LONG_AGO = time.time() - 1000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model of ten ids below 10, and no lower limit to what is remembered."""
    monkeypatch.setenv("DXML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(checked, "LARGE", 0)
    monkeypatch.setattr(checked, "SETTLED", 0.0)
    return write_folder(tmp_path / "m", {"method": "x"}, {"ids": np.arange(10, dtype=np.int32)})


def file_of(folder: Path) -> Path:
    (file,) = folder.glob("*.safetensors")
    return file


def overwrite(file: Path, value: int) -> None:
    """Change the last id and set the time of change back."""
    before = file.stat()
    with file.open("r+b") as opened:
        opened.seek(-4, os.SEEK_END)
        opened.write(np.int32(value).tobytes())
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def accept(folder: Path) -> None:
    arrays = read_folder(folder)[1]
    arrays.ids("ids", 10, below=10)
    arrays.accept()


def marks(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "cache" / "checked").glob("*"))


def test_what_was_accepted_is_not_looked_at_again(folder: Path, tmp_path: Path) -> None:
    accept(folder)
    arrays = read_folder(folder)[1]
    assert arrays.ids("ids", 10, below=3).tolist() == list(range(10))  # 9 is not below 3
    with pytest.raises(ModelFormatError, match="'ids' must be 4 long, is 10 long"):
        arrays.ids("ids", 4, below=10)  # shapes and kinds are compared all the same
    assert len(marks(tmp_path)) == 1


def test_what_was_only_read_is_not_remembered(folder: Path, tmp_path: Path) -> None:
    read_folder(folder)
    assert not marks(tmp_path)
    with pytest.raises(ModelFormatError, match="must hold numbers up to 2, and holds 9"):
        read_folder(folder)[1].ids("ids", 10, below=3)


def test_a_file_that_was_written_to_is_read_through(folder: Path) -> None:
    accept(folder)
    overwrite(file_of(folder), 11)
    with pytest.raises(ModelFormatError, match="not what was written \\(by its CRC-32\\)"):
        read_folder(folder)


def test_a_copy_is_read_through(folder: Path, tmp_path: Path) -> None:
    accept(folder)
    shutil.copytree(folder, tmp_path / "copy", copy_function=shutil.copy2)
    with pytest.raises(ModelFormatError, match="must hold numbers up to 2"):
        read_folder(tmp_path / "copy")[1].ids("ids", 10, below=3)


def test_a_file_that_has_just_been_written_is_not_remembered(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the grain of its times it could change without a trace."""
    monkeypatch.setattr(checked, "SETTLED", 1e6)
    accept(folder)
    assert not marks(tmp_path)


def test_a_small_file_is_not_remembered(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checked, "LARGE", 1 << 20)
    accept(folder)
    assert not marks(tmp_path)


def test_a_cache_that_cannot_be_written_is_done_without(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, where a folder should be")
    accept(folder)
    with pytest.raises(ModelFormatError, match="must hold numbers up to 2"):
        read_folder(folder)[1].ids("ids", 10, below=3)


def test_the_oldest_marks_go(tmp_path: Path) -> None:
    for i, name in enumerate("bca"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (LONG_AGO + i, LONG_AGO + i))
    forget_oldest(tmp_path, 2)
    assert {path.name for path in tmp_path.iterdir()} == {"c", "a"}
