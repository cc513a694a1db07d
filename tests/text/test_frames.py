"""Parquet files and frames."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from dxml.exceptions import DataFormatError
from dxml.text import TextTable, _parquet, read_table

COLUMNS: dict[str, list[Any]] = {
    "id": [1, 2, 3],
    "text": ["Käse", None, ""],
    "tags": [["food", "cow"], [], None],
}
TABLE = TextTable(("Käse", "", ""), (("food", "cow"), (), ()), ("1", "2", "3"))


class Series:
    """A column as polars has it."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def to_list(self) -> list[Any]:
        return self.values


class Frame:
    """A frame as polars has it."""

    columns = tuple(COLUMNS)

    def __getitem__(self, name: str) -> Series:
        return Series(COLUMNS[name])


def test_frames_by_their_looks() -> None:
    for frame in (COLUMNS, Frame()):
        assert read_table(frame, labels="tags", id="id") == TABLE
        assert read_table(frame, "text").labels is None
    with pytest.raises(DataFormatError, match=r"the table: there is no column 'txt'; did you mean"):
        read_table(Frame(), "txt")


def test_a_pandas_frame() -> None:
    pandas = importlib.import_module("pandas")
    frame = pandas.DataFrame(COLUMNS, index=[5, 5, 6])
    assert read_table(frame, labels="tags", id="id") == TABLE
    frame["text"] = frame["text"].astype("string")  # missing is then pandas.NA
    frame["tags"] = ["food;cow", float("nan"), None]
    assert read_table(frame, labels="tags", id="id") == TABLE
    twice = pandas.DataFrame([["a", "b"]], columns=["text", "text"])
    with pytest.raises(DataFormatError, match="the table: there is more than one column 'text'"):
        read_table(twice)


def test_frames_that_are_wrong() -> None:
    message = r"the table's row 1: expected text in column 'text', found a int, 3. Correct the cell"
    with pytest.raises(DataFormatError, match=message):
        read_table({"text": ["a", 3]})
    assert read_table({"text": ["a", 3]}, skip_bad_rows=True).skipped == 1
    message = "expected a path, a frame or a dict of lists, found a list. Put the texts into a dict"
    with pytest.raises(DataFormatError, match=message):
        read_table(["a", "b"])
    with pytest.raises(DataFormatError, match="the columns have different lengths: text 2, tags 1"):
        read_table({"text": ["a", "b"], "tags": ["x"]}, labels="tags")
    with pytest.raises(DataFormatError, match="in column 'id', found a NoneType, None"):
        read_table({"text": ["a"], "id": [None]}, id="id")


def test_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: Any) -> None:
    pyarrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    table = pyarrow.table({**COLUMNS, "unused": [b"\xff"] * 3})
    assert read_table(table, labels="tags", id="id") == TABLE
    path = tmp_path / "a.parquet"
    parquet.write_table(table, path)
    monkeypatch.setattr(_parquet, "_BATCH", 2)
    assert read_table(path, labels="tags", id="id", progress=heard) == TABLE
    assert heard.stages == [("read a.parquet", 3, "rows")] and heard.done == 3
    with pytest.raises(DataFormatError, match="a.parquet: there is no column 'tag'; did you mean"):
        read_table(path, labels="tag")
    message = "a.parquet row 1: expected text in column 'id', found a int, 1"
    with pytest.raises(DataFormatError, match=message):
        read_table(path, "id")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataFormatError, match=r"expected a Parquet file, found something else or"):
        read_table(path)


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    path = tmp_path / "a.pq"
    path.write_bytes(b"PAR1")
    monkeypatch.setattr(_parquet, "import_module", missing)
    message = r"reading Parquet needs pyarrow. Install it with: pip install 'dxml\[parquet\]'."
    with pytest.raises(DataFormatError, match=message):
        read_table(path)
    with pytest.raises(DataFormatError, match=r"Parquet file is compressed inside. Unpack the .gz"):
        read_table(tmp_path / "a.parquet.gz")
    with pytest.raises(DataFormatError, match=r"b.pq: there is no such file"):
        read_table(tmp_path / "b.pq")


def test_an_excel_sheet_is_a_table(tmp_path: Path) -> None:
    """Its first sheet; numbers are what one sees in the cell, empty rows and cells are nothing."""
    book = openpyxl.Workbook()
    for row in (["id", "title", "year"], [7.0, "Fish", 1984], [], ["b", 1984, "a; b"], ["c"]):
        book.active.append(row)
    book.create_sheet("other").append(["title"])
    book.save(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx", "title", "year", "id")
    assert table.texts == ("Fish", "1984", "") and table.ids == ("7", "b", "c")
    assert table.labels == (("1984",), ("a", "b"), ())
    with pytest.raises(DataFormatError, match="t.xlsx: there is no column 'tilte'; did you mean"):
        read_table(tmp_path / "t.xlsx", "tilte")
    (tmp_path / "t.xlsx").write_text("title\n", "utf-8")
    with pytest.raises(DataFormatError, match="expected an Excel file"):
        read_table(tmp_path / "t.xlsx", "title")


def test_without_openpyxl_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataFormatError, match=r"pip install 'dxml\[excel\]'"):
        read_table(tmp_path / "t.xlsx", "title")
