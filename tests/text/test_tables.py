"""Tables of texts and labels in every form, and every way they can be wrong."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import tempfile
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dxml.exceptions import DataFormatError, ParameterError
from dxml.text import TextTable, read_table
from dxml.text import _files as text_files

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
FILES = {
    "a.jsonl": '{"id": 7, "title": "Käse", "body": "Milch", "tags": ["food", "cow"]}\n'
    '\n{"id": "x", "title": "Wal", "body": null, "tags": []}\n',
    "a.csv": 'id,title,body,tags\r\n7,Käse,"Milch",food; cow;\r\n\r\nx,Wal,,\r\n',
    "semicolons.csv": "id;title;body;tags\n7;Käse;Milch;food|cow\nx;Wal;;\n",
    "a.tsv": "\nid\ttitle\tbody\ttags\n7\tKäse\tMilch\t['food', 'cow']\nx\tWal\t\t[]",
}
TABLE = TextTable(("Käse\nMilch", "Wal"), (("food", "cow"), ()), ("7", "x"))


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("name", FILES)
def test_every_text_format_gives_the_same_table(tmp_path: Path, name: str, suffix: str) -> None:
    path = write(tmp_path / f"{name}{suffix}", COMPRESS[suffix](FILES[name].encode()))
    assert read_table(path, ["title", "body"], "tags", "id") == TABLE
    assert read_table(str(path), "title") == TextTable(("Käse", "Wal"))


def test_a_column_says_what_rows_belong_to() -> None:
    rows = {"text": ["a", "b", "c"], "from": ["x", 7, None], "tags": ["t"] * 3}
    table = read_table(rows, "text", "tags", group="from")
    assert table.groups == ("x", "7", "") and table.take([2, 0]).groups == ("", "x")
    assert read_table(rows, "text").groups is None
    with pytest.raises(DataFormatError, match="source"):
        read_table(rows, "text", group="source")
    with pytest.raises(DataFormatError, match="column 'from', found a float, 0.5"):
        read_table(rows | {"from": ["x", 0.5, None]}, "text", group="from")
    with pytest.raises(DataFormatError, match="there are 1 texts but 2 groups"):
        TextTable(("a",), groups=("x", "y"))


def test_what_a_table_says_of_itself() -> None:
    assert len(TABLE) == 2
    assert TABLE.titles == ("Käse", "Wal")
    assert repr(TABLE) == "TextTable(2 texts, 2 labels)"
    assert repr(TextTable(("a",), skipped=3)) == "TextTable(1 texts, 3 bad rows skipped)"
    assert TABLE.take([1]) == TextTable(("Wal",), ((),), ("x",))
    assert TextTable(("a", "b")).take([1, 0, 1]) == TextTable(("b", "a", "b"))
    with pytest.raises(DataFormatError, match="there are 1 texts but 2 ids. Give one for each"):
        TextTable(("a",), ids=("1", "2"))


def test_the_format_may_be_said(tmp_path: Path) -> None:
    path = write(tmp_path / "records", '{"text": "a"}')
    assert read_table(path, format="jsonl").texts == ("a",)
    message = "records: the format cannot be told from the suffix ''. Say format=, one of jsonl, "
    with pytest.raises(DataFormatError, match=message):
        read_table(path)
    with pytest.raises(ParameterError, match="unknown format 'jsnl'; did you mean 'jsonl'"):
        read_table(path, format="jsnl")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cells", "separator", "expected"),
    [
        (["a; b|c", "d|e"], None, (("a", "b|c"), ("d|e",))),
        (["a|b", "c"], None, (("a", "b"), ("c",))),
        (["Cancer, Lung", "Ear"], None, (("Cancer, Lung",), ("Ear",))),
        (["a,b,,a", ""], ",", (("a", "b"), ())),
        (['["a", "b;c"]', "d"], None, (("a", "b;c"), ("d",))),
        (["['a', 'it\\'s']", "[x]"], ",", (("['a'", "'it\\'s']"), ("[x]",))),
        (["['a', 'it\\'s']", "  "], None, (("a", "it's"), ())),
        ([["a", " b ", "a", ""], ("c",)], ";", (("a", "b"), ("c",))),
        ([["Rivers, Climate"], ["Ear"]], ",", (("Rivers", "Climate"), ("Ear",))),
        ([["Rivers, Climate"], ["Ear"]], None, (("Rivers, Climate",), ("Ear",))),
        ([[3, 17], 5], None, (("3", "17"), ("5",))),
        ([4.0, None], None, (("4",), ())),
    ],
)
def test_labels_are_lists_or_texts_with_a_separator(
    cells: list[object], separator: str | None, expected: object
) -> None:
    table = {"text": [""] * len(cells), "tags": cells}
    assert read_table(table, labels="tags", label_separator=separator).labels == expected


NAMES = st.characters(exclude_characters=';|"[]\r\n\0', codec="utf-8")
LABELS = st.lists(st.text(NAMES).map(str.strip))


@given(st.lists(st.tuples(st.text(), LABELS), max_size=5))
def test_json_lines_and_csv_hold_any_text(rows: list[tuple[str, list[str]]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open(folder / "a.jsonl", "w", encoding="utf-8") as file:
            for text, labels in rows:
                print(json.dumps({"text": text, "labels": labels}), file=file)
        with open(folder / "a.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerow(["text", "labels"])
            writer.writerows((text, json.dumps(labels)) for text, labels in rows)
        expected = read_table({"text": [r[0] for r in rows], "labels": [r[1] for r in rows]},
                              labels="labels")  # fmt: skip
        composed = [unicodedata.normalize("NFC", text) for text, _ in rows]
        assert expected.texts == tuple(text if text.strip() else "" for text in composed)
        assert rows == [] or read_table(folder / "a.jsonl", labels="labels") == expected
        assert read_table(folder / "a.csv", labels="labels") == expected


def test_a_long_field_and_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = csv.field_size_limit()
    long = "word " * 40_000
    path = write(tmp_path / "a.csv", f'text\n"{long}"\n"two\nlines"\n')
    assert read_table(path).texts == (long, "two\nlines")
    assert csv.field_size_limit() == limit
    monkeypatch.setattr(text_files, "BLOCK", 3)
    path = write(tmp_path / "b.jsonl", '{"text": "Grüße ☃"}\n{"text": "𝔘"}')
    assert read_table(path).texts == ("Grüße ☃", "𝔘")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "utf-8-sig"])
def test_other_encodings(tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "BLOCK", 5)
    path = write(tmp_path / "a.tsv", "text\ttags\nKäse\ta;b\nÖl\tc\n".encode(encoding))
    table = read_table(path, labels="tags", encoding=encoding)
    assert table == TextTable(("Käse", "Öl"), (("a", "b"), ("c",)))


@pytest.mark.parametrize("mark", ["\ufeff".encode("utf-16-le"), "\ufeff".encode("utf-16-be")])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_file_in_utf_16_says_so(tmp_path: Path, name: str, mark: bytes) -> None:
    little = mark.startswith(b"\xff")
    lines = {"a.csv": "text\r\nKäse\r\n", "a.jsonl": '{"text": "Käse"}\n'}[name]
    path = write(tmp_path / name, mark + lines.encode("utf-16-le" if little else "utf-16-be"))
    message = r"line 1: expected UTF-8, found the byte order mark of UTF-16. Say encoding='utf-16'"
    for skip in (False, True):
        with pytest.raises(DataFormatError, match=message):
            read_table(path, skip_bad_rows=skip)
    assert read_table(path, encoding="utf-16").texts == ("Käse",)
    write(path, lines.encode("utf-32"))
    assert read_table(path, encoding="UTF32").texts == ("Käse",)


@pytest.mark.parametrize("cut", [1, 3])
def test_a_file_that_ends_inside_a_character(tmp_path: Path, cut: int) -> None:
    path = write(tmp_path / "a.csv", "text\nÖl\n☃".encode()[:-cut] if cut == 1 else b"text\nab\xc3")
    with pytest.raises(DataFormatError, match=r"line [23]: byte 0x.. is not UTF-8"):
        read_table(path)
    write(path, "text\nÖl☃\n".encode("utf-16-le")[:-cut])
    message = r"line 2: bytes that are not UTF-16-LE \(truncated data\). Say which encoding"
    with pytest.raises(DataFormatError, match=message):
        read_table(path, encoding="utf-16-le", skip_bad_rows=True)


HINT = r"\. Or leave such rows out with skip_bad_rows=True\.$"
BAD: list[tuple[str, str | bytes, str]] = [
    (
        "a.jsonl",
        b'{"text": "a"}\n{"text": "K\xe4se"}\n{"text": "b"}\n',
        r"a.jsonl line 2: byte 0xe4 is not UTF-8. Say which encoding .* encoding='cp1252'",
    ),
    (
        "a.jsonl",
        '{"text": "a"}\n\n{"text": "no\n{"text": "b"}',
        r"a.jsonl line 3: expected one JSON object in the line, found .* \(.*\). Write each",
    ),
    (
        "a.jsonl",
        '{"text": "a"}\n["x", 1]\n{"text": "b"}\n',
        r"line 2: expected a JSON object such as {...}, found a list, '\[\"x\", 1\]'",
    ),
    (
        "a.jsonl",
        '{"text": "a"}\n{"text": ["x"]}\n{"text": "b"}\n',
        r"line 2: expected text in column 'text', found a list, \['x'\]. Correct the cell",
    ),
    (
        "a.jsonl",
        '{"text": "a", "tags": "t"}\n{"text": "x", "tags": [{"no": 1}]}\n{"text": "b"}\n',
        r"line 2: expected a text or a whole number in column 'tags', found a dict, {'no': 1}",
    ),
    (
        "a.jsonl",
        '{"text": "a", "tags": "t"}\n{"text": "x", "tags": true}\n{"text": "b"}\n',
        r"line 2: expected a text or a whole number in column 'tags', found a bool, True",
    ),
    (
        "a.jsonl",
        '{"text": "a", "tags": "t"}\n{"text": "x", "tags": "[no list]"}\n{"text": "b"}\n',
        r"line 2: expected a list of labels in column 'tags', found a str, '\[no list\]'",
    ),
    (
        "a.csv",
        'text,tags\n"a",\nx,y,z\nb,\n',
        r"a.csv line 3: expected 2 fields as in the header, found 3. Put fields that hold a ','",
    ),
    (
        "a.tsv",
        'text\ttags\n"a\r\n"\t\nx\nb\t\n',
        r"line 4: expected 2 fields as in the header, found 1. Put fields that hold a '\\t'",
    ),
    (
        "a.csv",
        b"text,tags\na,\nK\xe4se,\nb,\n",
        r"line 3: byte 0xe4 is not UTF-8",
    ),
    (
        "a.csv",
        'text,tags\na,\n"x" y,\nb,\n',
        r"line 3: the double quotes are wrong \(.*\). Write a quote inside a quoted field twice",
    ),
    (
        "a.csv",
        'text,tags\na,\nb,\n"x,\ny,\n',
        r"line 4: a field starts with a double quote that is never closed. Close it",
    ),
    (
        "a.csv",
        "text,tags\na,\nx,\ry,\nb,\n",
        r"line 3: the line ends in a bare carriage return. Save the file with line feeds",
    ),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD, ids=range(len(BAD)))
def test_a_bad_row_is_an_error_or_skipped(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    path = write(tmp_path / name, content)
    labels = "tags" if b"tags" in path.read_bytes() else None
    with pytest.raises(DataFormatError, match=f"{message}(.|\n)*{HINT}"):
        read_table(path, labels=labels)
    table = read_table(path, labels=labels, skip_bad_rows=True)
    assert [text.strip() for text in table.texts] == ["a", "b"]
    assert table.skipped == len(table.problems) == 1
    with pytest.raises(DataFormatError, match=message):
        raise DataFormatError(table.problems[0])


def test_rows_keep_their_numbers_where_others_are_skipped(tmp_path: Path) -> None:
    lines = ["no", '{"text": "b"}', "", '{"text": 3}', '{"text": "d"}', "no"]
    path = write(tmp_path / "a.jsonl", "\n".join(lines))
    table = read_table(path, skip_bad_rows=True)
    assert (table.texts, table.rows, table.skipped) == (("b", "d"), (1, 3), 3)  # blanks are no rows
    assert table.names == (1, 3) and table.take([1]).names == (3,)
    path = write(tmp_path / "a.csv", 'text,id\nx\n"two\nlines",p\n"x" y,q\nb,r\n')
    assert read_table(path, skip_bad_rows=True).names == (1, 3)
    assert read_table(path, id="id", skip_bad_rows=True).names == ("p", "r")
    frame = {"text": ["a", 1, "c"]}
    assert read_table(frame, skip_bad_rows=True).rows == (0, 2)
    whole = read_table({"text": ["a", "c"]}, skip_bad_rows=True)
    assert whole.rows is None and list(whole.names) == [0, 1]


def test_only_the_first_few_problems_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "a"}\n' + "no\n" * 20)
    table = read_table(path, skip_bad_rows=True)
    assert (table.skipped, len(table.problems)) == (20, 5)
    write(path, "no\n" * 20)
    with pytest.raises(DataFormatError, match=r"none of 20 rows is good. .*a.jsonl line 1: "):
        read_table(path, skip_bad_rows=True)


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"txt": "a"}\n{"tags": []}\n', "a.jsonl: there is no column 'text'; did you "
         "mean 'txt'?"),
        ("a.jsonl", '{"a": "a"}\n' * 2000 + '{"text": ""}', "there is no column 'text'; known: a"),
        ("a.csv", "\nid,body\n1,a\n", "a.csv line 2: there is no column 'text'; known: body, id"),
        (
            "a.tsv",
            f"{'w' * 70}\t<http://x.org>\n",
            f"known: <http://x.org>, {'w' * 60}…. Name the columns with text=, labels= and id=. If "
            "these are texts, the line with the names of the columns is missing.",
        ),
        ("a.csv", "text,text\n1,a\n", "line 1: there is more than one column 'text'. Rename all"),
        ("a.csv", '"x" y,\n1,a\n', "line 1: the double quotes are wrong"),
        ("a.csv", b"text,K\xe4se\n1,a\n", "line 1: byte 0xe4 is not UTF-8"),
        ("a.csv", "\n\n", "line 2: expected a line with the columns' names, found blank lines"),
        ("a.csv", "", "the file is empty"),
        ("a.csv.gz", "text\na\n", "a.csv.gz line 1: the gz archive is truncated or damaged"),
        ("a.csv", gzip.compress(b"text\na"), "expected text, found a gzip archive. Name"),
    ],
    ids=range(11),
)  # fmt: skip
def test_what_is_wrong_with_the_whole_file_is_never_skipped(
    tmp_path: Path, name: str, content: str | bytes, message: str, skip: bool
) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(DataFormatError, match=message.replace("?", r"\?")):
        read_table(path, skip_bad_rows=skip)


def test_a_json_field_may_be_left_out_here_and_there(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ndjson", '{"tags": ["x"]}\n{"text": "b"}\n')
    assert read_table(path, labels="tags") == TextTable(("", "b"), (("x",), ()))


def test_an_unknown_encoding_and_no_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text\na\n")
    with pytest.raises(ParameterError, match="unknown encoding 'utf9'. Python's names are meant"):
        read_table(path, encoding="utf9")
    for name in ("base64", "rot13", "zlib", "a\0b"):  # Python knows some, which are none of text
        with pytest.raises(ParameterError, match="unknown encoding"):
            read_table(path, encoding=name)
    with pytest.raises(DataFormatError, match=r"bytes that are no text \(UTF-16 stream does not"):
        read_table(path, encoding="utf-16")
    with pytest.raises(DataFormatError, match=r"b.csv: there is no such file"):
        read_table(tmp_path / "b.csv")


def test_progress_hears_of_every_byte(tmp_path: Path, heard: Any) -> None:
    path = write(tmp_path / "a.csv.xz", lzma.compress(b"text\n" + b"abc\n" * 1000))
    assert len(read_table(path, progress=heard)) == 1000
    size = path.stat().st_size
    assert (heard.stages, heard.done) == ([("read a.csv.xz", size, "bytes")], size)


@pytest.mark.parametrize(
    "row",
    [
        r'{"t": "a \ud800", "l": ["x"], "i": "1"}',
        r'{"t": "a", "l": ["x", "\udfff"], "i": "1"}',
        r'{"t": "a", "l": "x;\ud83d", "i": "1"}',
        r'{"t": "a", "l": "[\"\ud800\"]", "i": "1"}',
        r'{"t": "a", "l": ["x"], "i": "\udc00\ud800"}',
    ],
)
def test_half_a_character_is_refused(tmp_path: Path, row: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(r'{"t": "\ud83d\ude00", "l": ["é"], "i": "0"}' + "\n" + row + "\n")
    with pytest.raises(DataFormatError, match=r"line 2: expected characters in column '[tli]'"):
        read_table(path, "t", "l", "i")
    table = read_table(path, "t", "l", "i", skip_bad_rows=True)
    assert (table.texts, table.labels, table.skipped) == (("\U0001f600",), (("é",),), 1)


@pytest.mark.parametrize("depth", [50, 3000, 50_000])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "whole.jsonl", "a.json"])
def test_lists_within_lists_are_no_labels(tmp_path: Path, name: str, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    content = {
        "a.csv": f't,l\nfish,"{deep}"\nsoup,food\n',
        "a.jsonl": f'{{"t": "fish", "l": "{deep}"}}\n{{"t": "soup", "l": "food"}}\n',
        "whole.jsonl": f'{{"t": "fish", "l": {deep}}}\n{{"t": "soup", "l": "food"}}\n',
        "a.json": f'[{{"t": "fish", "l": "{deep}"}}, {{"t": "soup", "l": "food"}}]',
    }
    path = write(tmp_path / name, content[name].encode())
    with pytest.raises(DataFormatError, match=r"(line|row) [12]: expected"):
        read_table(path, "t", "l")
    assert read_table(path, "t", "l", skip_bad_rows=True).labels == (("food",),)


def test_half_a_character_in_a_frame_is_refused() -> None:
    with pytest.raises(DataFormatError, match=r"found half of one, '\\ud800'"):
        read_table({"t": ["a\ud800"]}, "t")


def test_a_json_array_is_a_table(tmp_path: Path) -> None:
    """In a file, packed or not, on one line or many."""
    rows = [{"t": "Fish", "l": ["sea"]}, {"t": "Soup", "l": ["food", "salt"]}]
    for name, text in (("a.json", json.dumps(rows)), ("b.jsonl", json.dumps(rows, indent=1))):
        (tmp_path / name).write_text(f"\n {text}", "utf-8")
        table = read_table(tmp_path / name, "t", "l")
        assert table.texts == ("Fish", "Soup") and table.labels == (("sea",), ("food", "salt"))
    (tmp_path / "c.json").write_text('[{"t": "Fish"}, 3, "Soup"]', "utf-8")
    with pytest.raises(DataFormatError, match="c.json row 2: expected a JSON object .* a int"):
        read_table(tmp_path / "c.json", "t")
    assert read_table(tmp_path / "c.json", "t", skip_bad_rows=True).skipped == 1
    (tmp_path / "c.json").write_text('[{"t": "Fish"', "utf-8")
    with pytest.raises(DataFormatError, match="c.json: expected a JSON array"):
        read_table(tmp_path / "c.json", "t")
    (tmp_path / "c.json").write_text('[{"x": "Fish"}]', "utf-8")
    with pytest.raises(DataFormatError, match="there is no column 't'"):
        read_table(tmp_path / "c.json", "t")


def test_cells_are_in_the_normal_form() -> None:
    table = read_table({"t": ["cafe\u0301"], "l": ["cafe\u0301; the\u0301"]}, "t", "l")
    assert table.texts == ("café",) and table.labels == (("café", "thé"),)
