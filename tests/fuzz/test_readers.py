"""Readers and damaged files: inputs that once crashed one, bombs, pickles; the fuzzer itself."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, Phase, given, settings

from dxml.data import read
from dxml.exceptions import DataFormatError, DxmlError
from dxml.text import _files, read_table

from . import readers
from .lines import hammer
from .more_targets import TARGETS
from .near_valid import near_valid
from .reader_targets import Target, zipped
from .readers import Counter

CRASHES = sorted((Path(__file__).parent / "crashes").iterdir())
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


@pytest.mark.parametrize("path", CRASHES, ids=lambda path: path.name)
def test_what_once_crashed_a_reader(path: Path) -> None:
    with pytest.raises(DxmlError):
        TARGETS[path.name.partition(".")[0].replace("-", " ")].run(path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_sound_files_are_accepted(name: str) -> None:
    target = TARGETS[name]
    whole = [data for data in target.inputs() if data[0] == 0 or target.pack is None]
    assert len(whole) >= 1
    for data in whole:
        target.run(data)


@pytest.mark.parametrize("name", TARGETS)
def test_files_that_are_nearly_sound(name: str) -> None:
    @settings(
        max_examples=15,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(near_valid(TARGETS[name]))
    def accepted_or_refused(data: bytes) -> None:
        try:
            TARGETS[name].run(data)
        except DxmlError:
            pass

    accepted_or_refused()


def test_a_planted_crash_is_found_once_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "WORK", tmp_path)

    def broken(path: Path) -> None:
        if b"x" in path.read_bytes():
            raise KeyError("x")
        raise DataFormatError("no")

    target = Target("x.csv", broken, TARGETS["csv"].seeds)
    monkeypatch.setitem(TARGETS, "csv", target)
    counter = Counter("csv")
    for data in (b"\x00a", b"\x00x", b"\x00xx"):
        readers.attempt(target, counter, data)
    figures = counter.figures()
    assert (figures["executions"], figures["accepted"], len(figures["crashes"])) == (3, 0, 1)
    assert (tmp_path / "crashes" / figures["crashes"][0]).read_bytes() == b"\x00x"


@pytest.mark.thorough
def test_compiled_loops_stay_within_their_arrays() -> None:
    accepted, refused, wrong = hammer(20_000)
    assert wrong == 0 and accepted > 1000 and refused > 1000
    assert accepted + refused == 20_000


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("lines", [True, False], ids=["lines", "one line"])
def test_an_archive_that_expands_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, lines: bool
) -> None:
    monkeypatch.setattr(_files, "EXPANDED", 1 << 15)
    monkeypatch.setattr(_files, "BLOCK", 1 << 12)
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(COMPRESS[suffix](b"text\n" + (b"\n" if lines else b"z") * (1 << 18)))
    with pytest.raises(DataFormatError, match="expands to over .* MB, more than 200 times its"):
        read_table(path)


def test_a_zip_archive_that_expands_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_files, "EXPANDED", 1 << 20)
    content = zipped({"data.npy": bytes(1 << 22)}, zipfile.ZIP_DEFLATED)
    for name, open_it in (("x.npz", lambda at: read(f"{at},{at}")), ("x.xlsx", read_table)):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataFormatError, match=f"{name}: the archive expands to over 4 MB"):
            open_it(path)


def test_an_archive_that_asks_for_too_much_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes of an xz archive may ask for 4 GB to unpack it with."""

    def refused(self: object, size: int = -1) -> bytes:
        raise MemoryError

    path = tmp_path / "a.csv.xz"
    path.write_bytes(COMPRESS[".xz"](b"text\nherring\n"))
    monkeypatch.setattr("lzma.LZMAFile.read", refused)
    with pytest.raises(DataFormatError, match="damaged .it asks for more memory than there is"):
        read_table(path)


def test_what_compresses_well_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "EXPANDED", 1 << 12)
    path = tmp_path / "a.csv.gz"
    rows = np.random.default_rng(0).integers(0, 10**9, 20_000)
    path.write_bytes(gzip.compress(b"text\n" + b"\n".join(b"%d" % row for row in rows)))
    assert len(read_table(path)) == 20_000


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.svm"])
def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(_files, "LONGEST_LINE", 1 << 16)
    monkeypatch.setattr(_files, "BLOCK", 1 << 10)
    path = tmp_path / name
    path.write_bytes(b"text\n" * (name == "a.csv") + b"1" * (1 << 18))
    with pytest.raises(DataFormatError, match="line [12]: the line is longer than 0 MB. Break it"):
        read(path) if name == "a.svm" else read_table(path)


def test_a_header_without_end(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b" " * (3 << 20))
    with pytest.raises(DataFormatError, match="line 1: the first line is longer than 1 MB"):
        read(path)


class Payload:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("member", ["data", "indices", "indptr", "shape", "format"])
def test_npz_never_unpickles(tmp_path: Path, member: str) -> None:
    made = tmp_path / "made"
    pickle.loads(pickle.dumps(Payload(made)))
    assert made.exists(), "the payload works"
    made.unlink()
    sp.save_npz(tmp_path / "Y.npz", sp.csr_matrix(np.eye(2, dtype=bool)))
    with np.load(tmp_path / "Y.npz") as archive:
        parts = dict(archive)
    parts[member] = np.array([Payload(made)], dtype=object)
    np.savez(tmp_path / "X.npz", **parts)
    with pytest.raises(DataFormatError, match="X.npz: expected a sparse matrix of numbers"):
        read(tmp_path)
    assert not made.exists()
