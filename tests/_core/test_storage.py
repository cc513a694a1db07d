"""A model folder: exact, atomic, and clear about damage."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core import storage as _storage
from dxml._core.storage import (
    FORMAT,
    is_unfinished,
    pack_csr,
    read_config,
    read_folder,
    sealed,
    write_folder,
)
from dxml.exceptions import ModelFormatError

ARRAYS = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "ids": np.array([3, 1], np.int32),
    "none": np.empty((0, 4), np.float32),
}


def test_round_trip_is_exact_and_memory_mapped(tmp_path: Path) -> None:
    write_folder(tmp_path / "m", {"method": "x", "note": "ℓ"}, ARRAYS)
    config, arrays = read_folder(tmp_path / "m")
    assert config["method"] == "x" and config["note"] == "ℓ" and config["format"] == FORMAT
    w = arrays.floats("w", 2, 3)
    assert isinstance(w.base, np.memmap)
    assert np.array_equal(w, ARRAYS["w"]) and arrays.floats("none", 0, 4).shape == (0, 4)
    assert arrays.ids("ids", 2, below=4).tolist() == [3, 1]
    w[:] = 0
    again = read_folder(tmp_path / "m")[1].floats("w", 2, 3)
    assert np.array_equal(again, ARRAYS["w"]), "the file was changed"


def test_safetensors_itself_can_read_the_arrays(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    write_folder(tmp_path, {}, ARRAYS)
    (file,) = tmp_path.glob("*.safetensors")
    assert np.array_equal(load_file(file)["w"], ARRAYS["w"])
    assert file.stat().st_mode == (tmp_path / "config.json").stat().st_mode


def test_sparse_matrices_pack(tmp_path: Path) -> None:
    labels = sp.csr_matrix(np.array([[1, 0], [0, 0], [1, 1]], dtype=bool))
    values = sp.csr_matrix(np.array([[0.5, 0], [0, 2]], dtype=np.float32))
    write_folder(tmp_path, {}, {**pack_csr("Y", labels), **pack_csr("X", values)})
    _, arrays = read_folder(tmp_path)
    assert (arrays.csr("Y", 3, 2, truth=True) != labels).nnz == 0
    assert np.array_equal(arrays.csr("X", 2, 2).toarray(), values.toarray())


def test_a_new_model_replaces_the_old_and_its_file(tmp_path: Path) -> None:
    write_folder(tmp_path, {"turn": 1}, ARRAYS)
    write_folder(tmp_path, {"turn": 2}, {"w": ARRAYS["w"] + 1})
    config, arrays = read_folder(tmp_path)
    assert config["turn"] == 2 and arrays.floats("w", 2, 3)[0, 0] == 1
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        ".lock",
        next(tmp_path.glob("arrays-*")).name,
        "config.json",
    ]


SAVE = """
import os, sys
import numpy as np
from dxml._core.storage import write_folder
sys.stdin.readline()
for turn in range(30):
    write_folder(sys.argv[1], {"turn": turn, "by": os.getpid()}, {"by": np.array([os.getpid()])})
"""


def test_writers_at_once_leave_a_model_that_one_of_them_wrote(tmp_path: Path) -> None:
    """Before there was a lock, one of them deleted the arrays of the other."""
    write_folder(tmp_path, {"by": 0}, {"by": np.array([0])})
    command = [sys.executable, "-c", SAVE, str(tmp_path)]
    writers = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(3)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.close()
    read = 0
    while any(writer.poll() is None for writer in writers):
        config, arrays = read_folder(tmp_path)
        assert arrays.counts("by", 1).tolist() == [config["by"]]
        read += 1
    assert [writer.wait() for writer in writers] == [0, 0, 0] and read > 0
    assert read_folder(tmp_path)[0]["turn"] == 29
    assert sorted(path.suffix for path in tmp_path.iterdir()) == ["", ".json", ".safetensors"]


def test_a_reader_follows_a_model_that_is_replaced_under_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path, {"turn": 1}, ARRAYS)
    read, turns = _storage.read_config, iter([2, 3])

    def read_then_replace(folder: Path) -> dict[str, Any]:
        config = read(folder)
        for turn in turns:
            write_folder(tmp_path, {"turn": turn}, ARRAYS)
            break
        return config

    monkeypatch.setattr(_storage, "read_config", read_then_replace)
    assert read_folder(tmp_path)[0]["turn"] == 3


def test_what_killed_saves_left_goes_with_the_next(tmp_path: Path) -> None:
    write_folder(tmp_path, {"turn": 1}, ARRAYS)
    left = ["arrays-0123456789ab.safetensors", "config.json.partial", ".tmpAbC123"]
    left += ["arrays-0123456789ab.safetensors.0123456789ab.partial", "config.json.ab.partial"]
    kept = ["lessons.sqlite", "notes.txt"]
    for name in left + kept:
        (tmp_path / name).write_text("x")
    write_folder(tmp_path, {"turn": 2}, ARRAYS)
    names = {path.name for path in tmp_path.iterdir()}
    assert not names & set(left) and names >= set(kept)
    assert read_folder(tmp_path)[0]["turn"] == 2


def test_a_folder_with_the_rest_of_a_killed_save_may_be_written_to(tmp_path: Path) -> None:
    assert is_unfinished(tmp_path)
    for name in (".lock", "arrays-0123456789ab.safetensors.0123456789ab.partial"):
        (tmp_path / name).touch()
    assert is_unfinished(tmp_path)
    (tmp_path / "thesis.txt").touch()
    assert not is_unfinished(tmp_path)


def test_a_planted_link_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "m").mkdir()
    monkeypatch.setattr("dxml._core.storage.secrets.token_hex", lambda n: "0123456789ab")
    for name in ("arrays-0123456789ab.safetensors", "config.json"):
        (tmp_path / "m" / f"{name}.0123456789ab.partial").symlink_to(tmp_path / "mine")
    with pytest.raises(FileExistsError):
        write_folder(tmp_path / "m", {}, ARRAYS)
    (tmp_path / "m" / ".lock").unlink()
    (tmp_path / "m" / ".lock").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        write_folder(tmp_path / "m", {}, ARRAYS)
    assert (tmp_path / "mine").read_text() == "mine"


def test_files_and_names_are_flushed_before_the_old_ones_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path, {}, ARRAYS)
    (old,) = tmp_path.glob("arrays-*")
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def flush(file: int) -> None:
        assert old.exists()
        events.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "file")
        fsync(file)

    def rename(source: Path, target: Path) -> None:
        events.append(target.suffix)
        replace(source, target)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(os, "replace", rename)
    write_folder(tmp_path, {}, ARRAYS)
    assert events == ["file", ".safetensors", "folder", "file", ".json", "folder"]
    assert not old.exists()


@pytest.mark.parametrize("fatal", [1, 2])
def test_a_crash_leaves_the_old_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fatal: int
) -> None:
    write_folder(tmp_path, {"turn": 1}, ARRAYS)
    calls = []

    def crash(source: object, target: object) -> None:
        calls.append(target)
        if len(calls) == fatal:
            raise OSError("power cut")
        original(source, target)  # type: ignore[arg-type]

    original = os.replace
    monkeypatch.setattr("dxml._core.storage.os.replace", crash)
    with pytest.raises(OSError, match="power cut"):
        write_folder(tmp_path, {"turn": 2}, {"w": ARRAYS["w"] + 1})
    config, arrays = read_folder(tmp_path)
    assert config["turn"] == 1 and np.array_equal(arrays.floats("w", 2, 3), ARRAYS["w"])
    assert not list(tmp_path.glob("*.partial"))


def _edit(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    del config["sha256"]
    path.write_bytes(sealed(config | changes))


def test_damage_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=r"no model here \(config.json is missing\)"):
        read_folder(tmp_path)
    write_folder(tmp_path, {}, ARRAYS)
    _edit(tmp_path, format=FORMAT + 1)
    newer = f"format {FORMAT + 1} is newer than this dxml can read"
    with pytest.raises(ModelFormatError, match=newer):
        read_folder(tmp_path)
    for wrong in ("one", True, 0, None):
        _edit(tmp_path, format=wrong)
        with pytest.raises(ModelFormatError, match=r"not a dxml model \(no format number\)"):
            read_folder(tmp_path)
    (file,) = tmp_path.glob("*.safetensors")
    entry = {"file": file.name, "bytes": file.stat().st_size}
    for entries in ({}, [], entry | {"file": f"../m/{file.name}"}, entry | {"bytes": True}):
        _edit(tmp_path, format=FORMAT, arrays=entries)
        with pytest.raises(ModelFormatError, match="the entry 'arrays' is missing or damaged"):
            read_folder(tmp_path)
    (tmp_path / "config.json").write_text("[" * 100_000)
    with pytest.raises(ModelFormatError, match="damaged, not valid JSON"):
        read_folder(tmp_path)
    (tmp_path / "config.json").write_text("{half")
    with pytest.raises(ModelFormatError, match="damaged, not valid JSON"):
        read_folder(tmp_path)


def test_damaged_arrays_are_named(tmp_path: Path) -> None:
    write_folder(tmp_path, {}, ARRAYS)
    (file,) = tmp_path.glob("*.safetensors")
    content = file.read_bytes()
    file.write_bytes(content[:-3])
    with pytest.raises(ModelFormatError, match="expected .* bytes, got .* the file is damaged"):
        read_folder(tmp_path)
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ModelFormatError, match=f"{file.name}: damaged, its content is not what"):
        read_folder(tmp_path)
    _edit(tmp_path, arrays={"file": file.name, "bytes": len(content)})
    file.write_bytes(b"\xff" * len(content))
    with pytest.raises(ModelFormatError, match="damaged, not a safetensors file"):
        read_folder(tmp_path)
    file.unlink()
    with pytest.raises(ModelFormatError, match="which is not there. Copy the whole folder"):
        read_folder(tmp_path)


def test_a_config_that_is_too_long_is_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path, {}, {"x": np.zeros(3)})
    size = (tmp_path / "config.json").stat().st_size
    monkeypatch.setattr(_storage, "LONGEST_CONFIG", size)
    read_config(tmp_path)
    monkeypatch.setattr(_storage, "LONGEST_CONFIG", size - 1)
    with pytest.raises(ModelFormatError, match=r"config\.json: longer than 0 MB"):
        read_config(tmp_path)


@pytest.mark.parametrize("piece", [b"[],", b'{"a":{}},', b'"ab",', b"1.5,"])
def test_a_config_of_too_many_values_is_not_parsed(
    tmp_path: Path, piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three bytes each may become an object of seventy."""
    write_folder(tmp_path / "m", {"method": "m"}, {"x": np.zeros(3)})
    path = tmp_path / "m" / "config.json"
    text = b'{"format": 4, "a": [' + piece * (_storage.MOST_VALUES // 2 + 1) + b"0" + b"], "
    path.write_bytes(text + b'"b": [' + b"0," * (_storage.MOST_VALUES // 2) + b"0]}")
    monkeypatch.setattr(_storage.json, "loads", lambda text: pytest.fail("it was parsed"))
    with pytest.raises(ModelFormatError, match=r"config\.json: has more than 8,388,608 values"):
        read_folder(tmp_path / "m")


def test_names_that_hold_brackets_and_commas_are_one_value_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_storage, "MOST_VALUES", 100)
    names = ['[a, {b}, "c"] \\' * 10] * 50
    write_folder(tmp_path / "m", {"method": "m", "names": names}, {})
    assert read_config(tmp_path / "m")["names"] == names


def test_what_could_not_be_read_again_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "m", {"method": "m"}, {"x": np.zeros(3)})
    before = sorted(path.name for path in (tmp_path / "m").iterdir())
    monkeypatch.setattr(_storage, "LONGEST_CONFIG", 2_000)
    with pytest.raises(ModelFormatError, match="longer than 0 MB. Give labels and features short"):
        write_folder(tmp_path / "m", {"method": "m", "names": ["a" * 100] * 100}, {})
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == before
    monkeypatch.setattr("dxml._core.tensors.LONGEST_HEADER", 20)
    with pytest.raises(ModelFormatError, match="a model of 1 arrays is too much for a folder"):
        write_folder(tmp_path / "m", {"method": "m"}, {"a": np.zeros(1, np.float32)})


def test_every_changed_bit_of_a_config_is_found(tmp_path: Path) -> None:
    """But where it is no JSON any more, or the format is another number: those are found first."""
    write_folder(tmp_path, {"note": "words"}, ARRAYS)
    path = tmp_path / "config.json"
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 2]) + content[place + 1 :])
        with pytest.raises(ModelFormatError):
            read_config(tmp_path)
    path.write_bytes(content.replace(b"words", b"other"))
    with pytest.raises(ModelFormatError, match="damaged or edited, its content is not what was"):
        read_config(tmp_path)
    path.write_bytes(content)
    assert read_config(tmp_path)["note"] == "words"


def _with_header(folder: Path, header: object, body: bytes = b"\0" * 64) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (file,) = folder.glob("*.safetensors")
    file.write_bytes(len(text).to_bytes(8, "little") + text + body)
    _edit(folder, arrays={"file": file.name, "bytes": file.stat().st_size})


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ([], "the header is no JSON object"),
        (b"[" * 100_000, "(recursion|[Ss]tack overflow)"),  # the latter from Python 3.14 on
        ({"a": {"dtype": "F32", "shape": [2**62], "data_offsets": [0, 2**64]}}, "does not fit"),
        ({"a": {"dtype": "F32", "shape": [100], "data_offsets": [0, 400]}}, "does not fit"),
        ({"a": {"dtype": "F32", "shape": [-1, -4], "data_offsets": [0, 16]}}, "not made of whole"),
        ({"a": {"dtype": "F32", "shape": [4], "data_offsets": [-16, 0]}}, "not made of whole"),
        ({"a": {"dtype": "F32", "shape": [4], "data_offsets": [2, 18]}}, "a multiple of its numb"),
        ({"a": {"dtype": "F99", "shape": [4], "data_offsets": [0, 16]}}, "F99"),
        ({"a": None}, "not subscriptable"),
    ],
)
def test_a_header_that_lies_is_refused(tmp_path: Path, header: object, said: str) -> None:
    write_folder(tmp_path, {}, ARRAYS)
    _with_header(tmp_path, header)
    with pytest.raises(ModelFormatError, match=f"not a safetensors file .*{said}"):
        read_folder(tmp_path)


def test_a_header_longer_than_the_file_takes_no_memory(tmp_path: Path) -> None:
    write_folder(tmp_path, {}, ARRAYS)
    (file,) = tmp_path.glob("*.safetensors")
    file.write_bytes((2**62).to_bytes(8, "little") + file.read_bytes()[8:])
    _edit(tmp_path, arrays={"file": file.name, "bytes": file.stat().st_size})
    with pytest.raises(ModelFormatError, match="the header cannot be 4611686018427387904 bytes"):
        read_folder(tmp_path)


@pytest.mark.parametrize("which", ["config.json", "arrays-*.safetensors"])
def test_links_pipes_and_folders_are_not_read(tmp_path: Path, which: str) -> None:
    write_folder(tmp_path / "m", {}, ARRAYS)
    (path,) = (tmp_path / "m").glob(which)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelFormatError, match=f"{path.name}: is a link. Copy the file itself"):
        read_folder(tmp_path / "m")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ModelFormatError, match=f"{path.name}: is no file"):
        read_folder(tmp_path / "m")
    path.unlink()
    path.mkdir()
    with pytest.raises(ModelFormatError, match=f"{path.name}: is no file"):
        read_folder(tmp_path / "m")


def test_a_file_in_the_way_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_text("mine")
    with pytest.raises(ModelFormatError, match="a model is saved as a folder, and this is a file"):
        write_folder(path, {}, ARRAYS)
    assert path.read_text() == "mine"


def test_a_full_disk_is_an_error_of_the_system(tmp_path: Path) -> None:
    write_folder(tmp_path, {"n": 1}, {"a": np.arange(3)})
    before = sorted(each.name for each in tmp_path.iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(OSError, match="File too large") as stop:
            write_folder(tmp_path, {"n": 2}, {"a": np.zeros(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert stop.value.filename == str(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == before
    assert read_folder(tmp_path)[0]["n"] == 1
