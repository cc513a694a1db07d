"""Earlier versions of a model folder: kept, shared, given back, whatever happens meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dxml._core import versions
from dxml._core.storage import read_config, read_folder, verify_folder, write_folder
from dxml._core.versions import keeping, list_versions, restore_version
from dxml.exceptions import ModelFormatError, ParameterError

LARGE = np.arange(5_000, dtype=np.int64)


def save(folder: Path, n: int, large: Any = LARGE) -> None:
    """A model that says it is the n-th; `large` is what all have in common."""
    arrays = {"large": large, "own": np.full(1000, n, dtype=np.float32)}
    write_folder(folder, {"method": "m", "n": n}, arrays)


def step(folder: Path, n: int, **settings: Any) -> None:
    with keeping(folder, f"made {n}", **settings):
        save(folder, n)


def state(folder: Path) -> tuple[int, float, int]:
    config, arrays = read_folder(folder)
    verify_folder(folder)
    return config["n"], float(arrays.floats("own", 1000)[0]), int(arrays.counts("large", None)[-1])


def size_of(folder: Path) -> int:
    """Bytes on the disk, each file counted once."""
    files = {path.stat().st_ino: path.stat().st_size for path in folder.rglob("*.safetensors")}
    return sum(files.values())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "m", 1)
    return tmp_path / "m"


def test_a_version_that_a_failing_disk_left_goes_with_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version cannot be removed either; what is told is what happened first."""

    def refused(version: Path) -> None:
        raise OSError(30, "Read-only file system", str(version))

    with monkeypatch.context() as patch:
        patch.setattr(versions, "_remove", refused)
        with pytest.raises(OSError, match="No space left"), keeping(folder, "made 2"):
            raise OSError(28, "No space left on device")
    assert len(list_versions(folder)) == 1
    step(folder, 3)
    assert [each.note for each in list_versions(folder)] == ["made 3"]
    assert state(folder) == (3, 3.0, LARGE[-1])


def test_versions_are_kept_and_given_back(folder: Path) -> None:
    for n in (2, 3, 4):
        step(folder, n)
    assert [(each.number, each.note) for each in list_versions(folder)] == [
        (1, "made 2"),
        (2, "made 3"),
        (3, "made 4"),
    ]
    for number in (1, 3, 2):
        before = read_config(folder / "versions" / f"{number:04d}")["arrays"]["sha256"]
        restore_version(folder, number)
        assert state(folder) == (number, number, 4_999)
        assert read_config(folder)["arrays"]["sha256"] == before
    assert list_versions(folder)[-1].note == "restored version 2"
    assert list_versions(folder)[-3].note == "restored version 1"


def test_what_is_the_same_is_on_the_disk_once(folder: Path) -> None:
    alone = size_of(folder)
    for n in range(2, 6):
        step(folder, n)
    assert size_of(folder) < alone + 4 * 5000, "4,000 bytes of a version are its own"
    assert all(each.size < 6000 for each in list_versions(folder))
    changed = LARGE + 1
    with keeping(folder, "all is new"):
        save(folder, 6, changed)
    assert size_of(folder) < 2 * alone + 5 * 5000
    restore_version(folder, 3)
    assert state(folder) == (3, 3, 4_999)


def test_only_so_many_are_kept(folder: Path) -> None:
    for n in range(2, 9):
        step(folder, n, most=3)
    assert [each.number for each in list_versions(folder)] == [5, 6, 7]
    step(folder, 9, most=0)
    assert [each.number for each in list_versions(folder)] == [5, 6, 7]
    for number in (5, 6, 7):
        restore_version(folder, number, most=9)
        assert state(folder)[0] == number
    with pytest.raises(ParameterError, match="there is no version 2. Kept are: 5, 6, 7, 8, 9, 10"):
        restore_version(folder, 2)


def test_a_model_that_is_replaced_by_others_takes_nothing_along(folder: Path) -> None:
    step(folder, 2)
    save(folder, 3, LARGE + 5)  # by a program that keeps no versions
    restore_version(folder, 1)
    assert state(folder) == (1, 1, 4_999)


def test_what_fails_leaves_no_version(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError), keeping(folder, "fails"):
        raise ZeroDivisionError
    assert list_versions(folder) == [] and state(folder)[0] == 1


def test_damage_is_noticed(folder: Path) -> None:
    step(folder, 2)
    [rest] = (folder / "versions" / "0001").glob("rest-*")
    content = bytearray(rest.read_bytes())
    content[-1] ^= 1
    rest.write_bytes(content)
    with pytest.raises(ModelFormatError, match="damaged, its arrays are not what was kept"):
        restore_version(folder, 1)
    rest.unlink()
    with pytest.raises(ModelFormatError, match="a part of the version is missing"):
        restore_version(folder, 1)
    for wrong in ("{", "[" * 100_000):
        (folder / "versions" / "0001" / "version.json").write_text(wrong)
        with pytest.raises(ModelFormatError, match="the version is damaged"):
            list_versions(folder)
    assert state(folder)[0] == 2


def test_without_hard_links_there_are_copies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*paths: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(versions.os, "link", none)
    step(folder, 2)
    step(folder, 3)
    restore_version(folder, 1)
    assert state(folder) == (1, 1, 4_999)


KILLED = """
import os, shutil, sys
from pathlib import Path
import numpy as np
from dxml._core.storage import write_folder
from dxml._core.versions import keeping, restore_version

folder, what = Path(sys.argv[1]), sys.argv[2]
for moment in range(1, 500):
    copy = folder.with_name(f"{what}-{moment}")
    shutil.copytree(folder, copy)
    if os.fork() == 0:
        left = moment
        def dying(function):
            def call(*arguments, **settings):
                global left
                left -= 1
                if left == 0:
                    os._exit(9)
                return function(*arguments, **settings)
            return call
        for name in ("open", "link", "replace", "rename", "unlink", "mkdir", "rmdir", "fsync"):
            setattr(os, name, dying(getattr(os, name)))
        if what == "restore":
            restore_version(copy, 2, most=2)
        else:
            arrays = {"large": np.arange(5_000), "own": np.full(1000, 4, dtype=np.float32)}
            with keeping(copy, "made 4", most=2):
                write_folder(copy, {"method": "m", "n": 4}, arrays)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.wait()[1]) == 0:
        print(moment)
        sys.exit()
"""


@pytest.mark.thorough
@pytest.mark.parametrize(("what", "made"), [("keep", 4), ("restore", 2)])
def test_a_kill_at_any_moment_leaves_all_readable(folder: Path, what: str, made: int) -> None:
    for n in (2, 3):
        step(folder, n)
    command = [sys.executable, "-c", KILLED, str(folder), what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    moments = int(done.stdout)
    assert moments > 15
    found = set()
    for moment in range(1, moments):
        copy = folder.with_name(f"{what}-{moment}")
        now = state(copy)[0]
        assert now in (3, made)
        found.add(now)
        for each in list_versions(copy):
            config, arrays = versions._read(copy / "versions" / f"{each.number:04d}")
            assert config["n"] == arrays["own"][0], "and its checksum is compared"
        step(copy, 7)
        assert state(copy)[0] == 7
        assert not list(copy.rglob("*.partial"))
    assert found == {3, made}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of somebody's, to which a model folder from elsewhere may have links."""
    (tmp_path / "own" / "0001").mkdir(parents=True)
    (tmp_path / "own" / "pictures").mkdir()
    (tmp_path / "own" / "pictures" / "one.png").write_text("a picture")
    (tmp_path / "own" / "letter.txt").write_text("a letter")
    (tmp_path / "own" / "0001" / "notes.txt").write_text("notes")
    return tmp_path / "own"


def _all(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


def test_a_link_in_place_of_the_versions_is_refused(folder: Path, elsewhere: Path) -> None:
    """What is no version there would be removed: all that somebody has."""
    before = _all(elsewhere)
    (folder / "versions").symlink_to(elsewhere)
    with pytest.raises(ModelFormatError, match="versions: is a link"):
        step(folder, 2)
    with pytest.raises(ModelFormatError, match="versions: is a link"):
        list_versions(folder)
    assert _all(elsewhere) == before and read_config(folder)["n"] == 1


def test_a_link_in_place_of_a_version_is_not_followed(folder: Path, elsewhere: Path) -> None:
    step(folder, 2)
    before = _all(elsewhere)
    (folder / "versions" / "0007").symlink_to(elsewhere / "0001")
    (folder / "versions" / "0008").symlink_to(elsewhere / "pictures")
    assert [version.number for version in list_versions(folder)] == [1]
    step(folder, 3)
    assert _all(elsewhere) == before
    assert [version.number for version in list_versions(folder)] == [1, 2]


@pytest.mark.parametrize("what", ["link", "pipe", "long"])
def test_a_record_that_is_no_file_or_never_ends_is_refused(folder: Path, what: str) -> None:
    step(folder, 2)
    record = folder / "versions" / "0001" / "version.json"
    kept = record.with_name("kept")
    record.rename(kept)
    if what == "link":
        record.symlink_to(kept)
    elif what == "pipe":
        os.mkfifo(record)
    else:
        record.write_bytes(b" " * (versions.LONGEST_RECORD + 1) + kept.read_bytes())
    with pytest.raises(ModelFormatError, match=r"version.json: is (a link|no file)|longer than"):
        list_versions(folder)


@pytest.mark.parametrize(
    "name", ["../../../own.safetensors", "/tmp/own.safetensors", "config.json"]
)
def test_a_record_that_names_other_files_is_refused(folder: Path, name: str) -> None:
    step(folder, 2)
    record = folder / "versions" / "0001" / "version.json"
    content = json.loads(record.read_text("utf-8"))
    content["arrays"]["own"] = name
    record.write_text(json.dumps(content), "utf-8")
    with pytest.raises(ModelFormatError, match="the version is damaged .*names no file of arrays"):
        restore_version(folder, 1)
