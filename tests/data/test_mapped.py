"""A folder of plain arrays: made of text piece by piece, read without reading it."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from dxml.data import Dataset, _mapped, make_planted, open_data, read, recognise, write
from dxml.data._formats import convert, read_blocks
from dxml.data._mapped import write_mapped
from dxml.exceptions import DataFormatError
from dxml.joint import Joint
from dxml.text import _files as files

DATA = make_planted(300, 50, 9, labels_per_point=1.2, features_per_point=7, random_state=2)


def same(first: Dataset, second: Dataset) -> bool:
    return all(
        a.shape == b.shape and a.dtype == b.dtype and (a != b).nnz == 0
        for a, b in ((first.X, second.X), (first.Y, second.Y))
    )


def is_mapped(array: np.ndarray) -> bool:
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base  # type: ignore[assignment]
    return False


@pytest.mark.parametrize("source", ["t.txt.gz", "t.svm", "t_X.txt,t_Y.txt", "npz"])
def test_every_format_becomes_the_same_folder(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ",".join(str(tmp_path / part) for part in source.split(","))
    write(DATA, path)
    monkeypatch.setattr(files, "BLOCK", 500)  # bytes: a few points
    assert convert(path, tmp_path / "t.dxml") == 300
    found = read(tmp_path / "t.dxml")
    assert same(found, DATA) and found.name == "t"
    assert all(is_mapped(a) for a in (found.X.data, found.X.indices, found.X.indptr, found.Y.data))
    assert recognise(tmp_path / "t.dxml") == "mapped"
    assert same(open_data(str(tmp_path / "t.dxml")), DATA)
    write(found, tmp_path / "again.txt")
    assert same(read(tmp_path / "again.txt"), DATA)


def test_points_without_anything(tmp_path: Path) -> None:
    empty = Dataset(csr_matrix((3, 4), dtype=np.float32), csr_matrix((3, 2), dtype=bool))
    write(empty, tmp_path / "e.dxml")
    assert same(read(tmp_path / "e.dxml"), empty)


def test_a_folder_is_written_over_whole_or_not_at_all(tmp_path: Path) -> None:
    write(DATA, tmp_path / "t.dxml")

    def breaks_off():  # type: ignore[no-untyped-def]
        yield DATA.X[:5], DATA.Y[:5]
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write_mapped(tmp_path / "t.dxml", breaks_off())
    with pytest.raises(DataFormatError, match="features of 5 points and labels of 4"):
        write_mapped(tmp_path / "t.dxml", [(DATA.X[:5], DATA.Y[:4])])
    assert same(read(tmp_path / "t.dxml"), DATA)
    assert [path.name for path in tmp_path.iterdir()] == ["t.dxml"], "something was left behind"
    write(DATA.take(np.arange(4)), tmp_path / "t.dxml")
    assert read(tmp_path / "t.dxml").n_samples == 4
    (tmp_path / "other.dxml").mkdir()
    with pytest.raises(DataFormatError, match="exists and holds no data set"):
        write(DATA, tmp_path / "other.dxml")


def test_damage_is_named(tmp_path: Path) -> None:
    def damaged(name: str, change: bytes | None) -> str:
        write(DATA, tmp_path / "t.dxml")
        path = tmp_path / "t.dxml" / name
        if change is None:
            path.unlink()
        else:
            path.write_bytes(change)
        with pytest.raises(DataFormatError) as error:
            read(tmp_path / "t.dxml")
        return str(error.value)

    write(DATA, tmp_path / "t.dxml")
    indices = np.fromfile(tmp_path / "t.dxml" / "X.indices", np.int32)
    indices[7] = 50
    values = np.full(len(indices), np.nan, np.float32)
    header = json.loads((tmp_path / "t.dxml" / "data.json").read_text())
    assert "X.data is missing" in damaged("X.data", None)
    assert "X.data has 3 bytes" in damaged("X.data", b"abc")
    assert "indices or row boundaries lead out of it" in damaged("X.indices", indices.tobytes())
    assert "X must be finite, got NaN at row 0" in damaged("X.data", values.tobytes())
    assert "damaged" in damaged("data.json", b"{")
    newer = json.dumps({**header, "format": 3}).encode()
    assert "newer dxml" in damaged("data.json", newer)


@pytest.mark.parametrize("block", [7, 1 << 20])
def test_more_values_than_short_numbers_count(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where 300 labels are few and the features' 2,000 values are too many."""
    monkeypatch.setattr(_mapped, "BLOCK", block)
    monkeypatch.setattr(_mapped, "SHORT", 1000)
    write_mapped(tmp_path / "t.dxml", [(DATA.X[:120], DATA.Y[:120]), (DATA.X[120:], DATA.Y[120:])])
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "t.dxml").iterdir()}
    assert (sizes["X.indptr"], sizes["Y.indptr"]) == (8 * 301, 4 * 301)
    assert json.loads((tmp_path / "t.dxml" / "data.json").read_text())["format"] == 2
    found = read(tmp_path / "t.dxml")
    assert same(found, DATA)
    settings = {"candidates": "nearest", "width": 0, "C": 1.0, "max_iter": 2}
    one, other = (
        Joint(**settings).fit(data.X, data.Y).predict_topk(DATA.X, 3) for data in (found, DATA)
    )
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_array_equal(one.scores, other.scores)


def peak_of(source: Path, target: Path, points: int) -> int:
    """Bytes that are held at once, at most, to convert, open and read in blocks."""
    tracemalloc.start()
    try:
        assert convert(source, target) == points
        assert sum(X.shape[0] for X in read_blocks(target, 3000, 50)) == points
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_data(tmp_path: Path) -> None:
    block = make_planted(4000, 3000, 50, features_per_point=60, random_state=0)
    write(block, tmp_path / "block.svm")
    text = (tmp_path / "block.svm").read_bytes()
    for times in (4, 16):
        (tmp_path / f"{times}.svm").write_bytes(text * times)
    peaks = [
        peak_of(tmp_path / f"{times}.svm", tmp_path / f"{times}.dxml", 4000 * times)
        for times in (4, 16)
    ]
    held = sum(file.stat().st_size for file in (tmp_path / "16.dxml").iterdir())
    assert peaks[1] < 1.2 * peaks[0] and peaks[1] < held, (peaks, held)
    (last,) = list(read_blocks(tmp_path / "16.dxml", 3000, 50))[-1:]
    assert (last[-100:] != block.X[-100:]).nnz == 0
