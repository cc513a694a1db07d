"""Parquet files that hold far more than their bytes, and those that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dxml.exceptions import DataFormatError
from dxml.text import read_table
from dxml.text._parquet import read_parquet

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")
BIG = "x" * 1_000_000


def repeated(values: list[Any], n: int) -> Any:
    """The first of some values n times, stored once."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array(values))


@pytest.mark.parametrize(
    "texts",
    [
        repeated([BIG], 5_000),
        repeated([BIG.encode()], 5_000),
        pa.nulls(50_000_000, pa.string()),
    ],
    ids=["a long text", "long bytes", "nothing"],
)
def test_a_file_that_expands_without_end(tmp_path: Path, texts: Any) -> None:
    """50 KB of it would be gigabytes: it is refused before they are made."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": texts}), path)
    assert path.stat().st_size < 1_000_000
    rows = read_parquet(path, ("text",))
    with pytest.raises(DataFormatError, match="a.parquet: the file expands to over .* MB, more th"):
        for _ in rows:
            pass


def test_one_row_that_is_too_long_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dxml.text._files.EXPANDED", 1 << 20)
    path = tmp_path / "a.parquet"
    listed = pa.ListArray.from_arrays([0, 1, 2, 3], repeated([BIG], 3))
    for texts in (repeated([BIG], 3), listed):
        pq.write_table(pa.table({"text": texts}), path, compression="zstd")
        with pytest.raises(DataFormatError, match="expands to over 2 MB"):
            next(read_parquet(path, ("text",)))


def test_what_repeats_is_read(tmp_path: Path) -> None:
    """Texts, missing ones, labels as lists and as text, ids, other columns."""
    path = tmp_path / "a.parquet"
    table = pa.table(
        {
            "text": ["herring", None, "soup", "herring"] * 600,
            "labels": [["sea", "fish"], [], ["kitchen"], None] * 600,
            "id": list(range(2400)),
            "kind": repeated(["same"], 2400),
            "deep": [{"a": [["b"]]}] * 2400,
        }
    )
    pq.write_table(table, path, row_group_size=700)
    found = read_table(path, text="text", labels="labels", id="id")
    assert found.texts == ("herring", "", "soup", "herring") * 600
    assert found.labels == (("sea", "fish"), (), ("kitchen",), ()) * 600
    assert found.ids == tuple(map(str, range(2400)))
    every = [row for _, row in read_parquet(path, ("deep", "kind"))]
    assert every == [{"deep": {"a": [["b"]]}, "kind": "same"}] * 2400
