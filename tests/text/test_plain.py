"""Texts that are no table: files, folders, standard input."""

from __future__ import annotations

import gzip
import io
import lzma
from pathlib import Path

import pytest

from dxml.exceptions import DataFormatError
from dxml.progress import SILENT, StageTimer
from dxml.text import TextTable, read_table
from dxml.text._plain import is_plain


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two texts, one of them compressed and further down, and files that are none."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "fish.txt").write_text("Fish\nin the sea\n", "utf-8")
    (tmp_path / "sub" / "soup.md.gz").write_bytes(gzip.compress("Süppe".encode()))
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / ".hidden.txt").write_text("no", "utf-8")
    (tmp_path / "table.csv").write_text("text\nno\n", "utf-8")
    return tmp_path


def typed(monkeypatch: pytest.MonkeyPatch, whole: str, /, **options: object) -> TextTable:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(whole.encode())))
    return read_table("-", **options)  # type: ignore[arg-type]


def test_what_is_plain(folder: Path) -> None:
    assert all(map(is_plain, (folder, "a.txt", Path("b.txt.xz"))))
    assert not any(map(is_plain, ("-", "a.csv", "a.jsonl.gz", {"text": []})))


def test_each_file_of_a_folder_is_a_text_and_its_path_the_id(folder: Path) -> None:
    table = read_table(folder, ("title", "abstract"), id="nr")  # columns that a model knows
    assert table.ids == ("empty.txt", "fish.txt", "sub/soup.md.gz")
    assert table.texts == ("", "Fish\nin the sea", "Süppe")
    assert read_table(folder / "fish.txt").texts == ("Fish\nin the sea",)


def test_names_may_be_in_capitals(tmp_path: Path) -> None:
    """As some programs and systems write them: none is left out without a word."""
    (tmp_path / "FISH.TXT").write_text("Fish", "utf-8")
    (tmp_path / "Soup.Md.GZ").write_bytes(gzip.compress(b"Soup"))
    assert read_table(tmp_path).ids == ("FISH.TXT", "Soup.Md.GZ")
    assert read_table(tmp_path).texts == ("Fish", "Soup")
    (tmp_path / "TABLE.CSV.XZ").write_bytes(lzma.compress(b"title,tags\nSea,a;b\n"))
    table = read_table(tmp_path / "TABLE.CSV.XZ", text="title", labels="tags")
    assert table.texts == ("Sea",) and table.labels == (("a", "b"),)


def test_reading_a_folder_is_one_step(folder: Path) -> None:
    timer = StageTimer(SILENT)
    read_table(folder, progress=timer)
    assert list(timer.seconds) == [f"read {folder.name}"], "not one a file"


def test_each_line_may_be_a_text(folder: Path) -> None:
    table = read_table(folder / "fish.txt", lines=True)
    assert table.texts == ("Fish", "in the sea") and table.ids == ("fish.txt:1", "fish.txt:2")


def test_standard_input_is_a_text_lines_or_json(monkeypatch: pytest.MonkeyPatch) -> None:
    assert typed(monkeypatch, "Fish\nand soup\n").texts == ("Fish\nand soup",)
    assert typed(monkeypatch, "Fish\n\nand soup\n", lines=True).ids == ("-:1", "-:3")
    rows = typed(monkeypatch, '{"t": "Fish", "l": ["a"]}\n\n{"t": "Soup", "l": []}\n', text="t")
    assert rows.texts == ("Fish", "Soup") and rows.ids is None
    array = typed(monkeypatch, ' [{"t": "Fish", "l": "a;b"}, {"t": "Soup"}]', text="t", labels="l")
    assert array.texts == ("Fish", "Soup") and array.labels == (("a", "b"), ())
    assert typed(monkeypatch, '["Fish", "Soup"]').texts == ("Fish", "Soup")


@pytest.mark.parametrize("text", ["[Sea fish.]", "[1] Fish", "{sic} fish", "[\nFish]"])
def test_text_in_brackets_is_no_json(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert typed(monkeypatch, text + "\n").texts == (text,)
    assert typed(monkeypatch, f"{text}\nSoup", lines=True).texts[-1] == "Soup"
    with pytest.raises(DataFormatError, match="expected a JSON array"):
        typed(monkeypatch, '["Fish" and soup]')


def test_what_is_wrong_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataFormatError, match="standard input is empty"):
        typed(monkeypatch, "")
    with pytest.raises(DataFormatError, match="standard input line 2: expected one JSON object"):
        typed(monkeypatch, '{"text": "a"}\n{"text"\n')
    with pytest.raises(DataFormatError, match="there is no column 'text'; did you mean 'texts'"):
        typed(monkeypatch, '{"texts": "a"}')
    with pytest.raises(DataFormatError, match="standard input row 1: plain text has no labels"):
        typed(monkeypatch, '["Fish", "Soup"]', labels="tags")
    mixed = typed(monkeypatch, '["Fish", {"text": "Soup", "id": "a"}]')
    assert mixed.texts == ("Fish", "Soup") and mixed.ids is None
    with pytest.raises(DataFormatError, match="fish.txt: plain text has no labels"):
        read_table(folder / "fish.txt", labels="tags")
    (folder / "bad.txt").write_bytes(b"th\xe9")
    with pytest.raises(DataFormatError, match="bad.txt line 1: byte 0xe9 is not UTF-8"):
        read_table(folder)
    with pytest.raises(DataFormatError, match="the folder holds no texts"):
        (folder / "none").mkdir()
        read_table(folder / "none")
