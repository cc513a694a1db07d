"""Text files → rows (a dict of columns each), and messages about rows that cannot be read.

========  ============================  =====================================================
format    suffix                        a row
========  ============================  =====================================================
jsonl     .jsonl .ndjson .json          a line: one JSON object; or all in one JSON array
csv       .csv                          columns named in the first line; fields quoted with "
                                        where they hold a comma; or all with ; for the comma
tsv       .tsv .tab                     the same with a tab for the comma
parquet   .parquet .pq                  read by `dxml.text._frames`
excel     .xlsx .xlsm                   likewise: the first sheet, columns named in its first row
========  ============================  =====================================================

Text files may also be compressed: .gz, .bz2, .xz. Blank lines are skipped.
"""

from __future__ import annotations

import codecs
import csv
import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast, get_args

from dxml.exceptions import DataFormatError, ParameterError, advise, did_you_mean
from dxml.progress import SILENT, Progress
from dxml.text._files import STDIN, TextFile, open_text, plain_suffix

__all__ = [
    "PlainText",
    "Problems",
    "Row",
    "TableFormat",
    "array_rows",
    "check_columns",
    "json_rows",
    "read_rows",
    "read_text",
    "recognise",
]

TableFormat = Literal["jsonl", "csv", "tsv", "parquet", "excel"]
Row = dict[str, Any]
_SUFFIXES: dict[str, TableFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "excel",
    ".xlsm": "excel",
}
_UNDECODED = re.compile("[\udc80-\udcff]")  # how "surrogateescape" decodes an invalid byte
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ROWS_TO_CHECK = 1000  # JSON lines in which every requested column must occur at least once
_MAX_MESSAGES = 5  # messages kept about skipped rows


class Problems:
    """Bad rows: the first raises an error, or all are counted and a few messages kept."""

    def __init__(self, skip: bool = False) -> None:
        self.skip = skip
        self.count = 0
        self.messages: list[str] = []

    def add(self, where: str, what: str) -> None:
        """Raise ``{where}: {what}.``, or count it."""
        message = f"{where}: {what}."
        if not self.skip:
            option = advise("skip_bad_rows=True", "--skip-bad-rows")
            raise DataFormatError(f"{message} Or leave such rows out with {option}.")
        self.count += 1
        if len(self.messages) < _MAX_MESSAGES:
            self.messages.append(message)


def recognise(path: Path, format: str | None = None) -> TableFormat:
    """The format that was given, or else the one of the file's suffix."""
    known = get_args(TableFormat)
    if format is None:
        if str(path) == STDIN:
            return "jsonl"
        suffix = plain_suffix(path)
        if suffix in _SUFFIXES:
            return _SUFFIXES[suffix]
        remedy = advise(
            f"Say format=, one of {', '.join(known)}.",
            "The name of a table of texts ends in .jsonl, .json, .csv, .tsv, .xlsx or .parquet; "
            "texts that are no table are files .txt, a folder of them, or - for standard input.",
        )
        raise DataFormatError(
            f"{path}: the format cannot be told from the suffix {suffix!r}. {remedy}"
        )
    if format not in known:
        raise ParameterError(f"unknown format {format!r}{did_you_mean(format, known)}")
    return cast(TableFormat, format)


def read_rows(
    path: Path,
    format: TableFormat = "jsonl",
    *,
    columns: tuple[str, ...] = (),
    lines: bool = False,
    encoding: str = "utf-8",
    problems: Problems | None = None,
    progress: Progress = SILENT,
) -> Iterator[tuple[str, Row]]:
    """The good rows of a file, each with its location for error messages (file and line).

    The file must have all `columns`; single JSON lines may lack some. Standard input that is no
    JSON is plain text.
    """
    problems = Problems() if problems is None else problems
    decoder = _decoder(encoding)
    with open_text(path, progress) as file:
        _check_mark(file, encoding)
        first, source, found = file.first_character(), str(file.path), _lines(file, decoder)
        if format != "jsonl":
            yield from _separated_rows(file, found, format, columns, encoding, problems)
        elif first == b"[":
            yield from array_rows("\n".join(found), source, problems, columns, encoding)
        elif first == b"{" or str(path) != STDIN:
            numbered = ((file.line, line) for line in found)
            yield from json_rows(numbered, source, columns, encoding, problems)
        else:
            yield from _plain_rows(file, found, STDIN, lines, encoding)


def check_columns(where: str, wanted: tuple[str, ...], present: list[str]) -> None:
    """Every wanted column must be there, and once."""
    for name in wanted:
        if name not in present:
            raise DataFormatError(
                f"{where}: there is no column {name!r}{did_you_mean(name, present)}"
            )
        if present.count(name) > 1:
            raise DataFormatError(
                f"{where}: there is more than one column {name!r}. Rename all but one."
            )


def _decoder(encoding: str) -> codecs.IncrementalDecoder:
    try:
        return codecs.getincrementaldecoder(encoding)("surrogateescape")
    except LookupError:
        raise ParameterError(
            f"unknown encoding {encoding!r}. Python's names are meant, such as utf-8 or cp1252."
        ) from None


def _check_mark(file: TextFile, encoding: str) -> None:
    """Raise an error for a UTF-16 byte order mark where another encoding is expected."""
    two_bytes_or_more = codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    if file.starts_with(_UTF16_MARKS) and not two_bytes_or_more:
        option = advise("encoding='utf-16'", "--encoding utf-16")
        file.fail(f"expected {encoding.upper()}, found the byte order mark of UTF-16. Say {option}")


def _decoded(file: TextFile, decoder: codecs.IncrementalDecoder) -> Iterator[str]:
    """The file's text, block by block."""
    try:
        for block in file.blocks():
            yield decoder.decode(block)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        file.fail(
            f"bytes that are not {error.encoding.upper()} ({error.reason}). "
            f"Say which encoding the file has with {advise('encoding=', '--encoding')}"
        )


def _lines(file: TextFile, decoder: codecs.IncrementalDecoder) -> Iterator[str]:
    """Lines without line feeds; `file.line` is the number of the last one yielded."""
    pieces = [""]  # of the current line
    for text in _decoded(file, decoder):
        first, *others = text.split("\n")
        pieces.append(first)
        for other in others:
            file.line += 1
            yield "".join(pieces)
            pieces = [other]
    if last := "".join(pieces):
        file.line += 1
        yield last


def _undecoded(text: str, encoding: str) -> str | None:
    """An error message for text with a byte that is invalid in `encoding`, else None."""
    if text.isascii() or not (found := _UNDECODED.search(text)):
        return None
    byte = ord(found.group()) - 0xDC00
    example = advise("encoding='cp1252'", "--encoding cp1252")
    return (
        f"byte 0x{byte:02x} is not {encoding.upper()}. "
        f"Say which encoding the file has, such as {example} (Western Windows)"
    )


class PlainText(Row):
    """A row that stands for any column of texts, as it is all there is."""

    def as_row(self, where: str, text: str, labels: str | None, id: str) -> Row:
        """With text and id in the columns that are asked for."""
        if labels is not None:
            raise DataFormatError(
                f"{where}: plain text has no labels, and so no column {labels!r}. "
                "Give a table, such as a CSV file."
            )
        return {text: self["text"], id: self["id"]}


def read_text(
    path: Path, name: str, lines: bool, encoding: str, progress: Progress = SILENT
) -> Iterator[tuple[str, Row]]:
    """A file of plain text as one text, or each of its lines as one; an empty file is one too."""
    if not path.stat().st_size:
        yield str(path), PlainText(text="", id=name)
        return
    decoder = _decoder(encoding)
    with open_text(path, progress) as file:
        _check_mark(file, encoding)
        yield from _plain_rows(file, _lines(file, decoder), name, lines, encoding)


def _plain_rows(
    file: TextFile, found: Iterator[str], name: str, lines: bool, encoding: str
) -> Iterator[tuple[str, Row]]:
    whole = []
    for line in found:
        if problem := _undecoded(line, encoding):
            file.fail(problem, file.line)
        if not lines:
            whole.append(line)
        elif line.strip():
            yield f"{file.path} line {file.line}", PlainText(text=line, id=f"{name}:{file.line}")
    if not lines:
        yield str(file.path), PlainText(text="\n".join(whole).strip("\n"), id=name)


def array_rows(
    text: str,
    source: str,
    problems: Problems,
    columns: tuple[str, ...] = (),
    encoding: str = "utf-8",
) -> Iterator[tuple[str, Row]]:
    """The objects of a JSON array; a text in it is a row with the column ``text``."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = _undecoded(text, encoding) or f"expected a JSON array ({error}). Correct it"
        raise DataFormatError(f"{source}: {problem}.") from None
    seen: set[str] = set()
    for number, row in enumerate(found, start=1):
        where = f"{source} row {number}"
        if isinstance(row, str):
            row = {"text": row}
        if not isinstance(row, dict):
            kind = type(row).__name__
            problems.add(where, f"expected a JSON object such as {{...}}, found a {kind}")
        elif wrong := _undecoded("".join(map(str, row.values())), encoding):
            problems.add(where, wrong)
        else:
            seen.update(row)
            yield where, row
    if seen:
        check_columns(source, columns, sorted(seen))


def json_rows(
    lines: Iterable[tuple[int, str]],
    source: str,
    columns: tuple[str, ...],
    encoding: str,
    problems: Problems,
) -> Iterator[tuple[str, Row]]:
    """The objects of numbered lines."""
    seen: set[str] = set()
    n_rows = 0
    for line_number, line in lines:
        if not line.strip():
            continue
        where = f"{source} line {line_number}"
        row, problem = _parse_json(line, encoding)
        if row is None:
            problems.add(where, problem)
            continue
        n_rows += 1
        if n_rows <= _ROWS_TO_CHECK:
            seen.update(row)
        if n_rows == _ROWS_TO_CHECK:
            check_columns(source, columns, sorted(seen))
        yield where, row
    if 0 < n_rows < _ROWS_TO_CHECK:
        check_columns(source, columns, sorted(seen))


def _parse_json(line: str, encoding: str) -> tuple[Row | None, str]:
    """(the object in the line, or None; what is wrong with it)."""
    if problem := _undecoded(line, encoding):
        return None, problem
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        what = f"expected one JSON object in the line, found {line[:40]!a} ({error})"
        return None, f"{what}. Write each object on a line of its own"
    if not isinstance(found, dict):
        kind = type(found).__name__
        what = f"expected a JSON object such as {{...}}, found a {kind}, {line[:40]!a}"
        return None, f"{what}. Write each object on a line of its own"
    return found, ""


@contextmanager
def _long_fields() -> Iterator[None]:
    """Within this context the csv module accepts fields longer than 128 KiB."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _separated_rows(
    file: TextFile,
    lines: Iterator[str],
    format: str,
    columns: tuple[str, ...],
    encoding: str,
    problems: Problems,
) -> Iterator[tuple[str, Row]]:
    first = next((line for line in lines if line.strip()), "")
    before = file.line - 1  # blank lines above the header
    separator = "\t" if format == "tsv" else ";" if ";" in first and "," not in first else ","
    fed = (f"{line}\n" for line in itertools.chain([first], lines))
    reader = csv.reader(fed, delimiter=separator, strict=True)
    header: list[str] = []
    while True:
        where = f"{file.path} line {before + reader.line_num + 1}"
        fields, problem = _next_fields(reader, encoding)
        if fields is None:
            return
        if not header:
            header = _checked_header(where, fields, problem, columns)
        elif problem:
            problems.add(where, problem)
        elif len(fields) == len(header):
            yield where, dict(zip(header, fields, strict=True))
        elif fields:
            problems.add(
                where,
                f"expected {len(header)} fields as in the header, found {len(fields)}. "
                f"Put fields that hold a {separator!r} or a line end between double quotes",
            )


def _next_fields(reader: Iterator[list[str]], encoding: str) -> tuple[list[str] | None, str | None]:
    """(the next row, or None after the last; what is wrong with it)."""
    try:
        with _long_fields():
            fields = next(reader, None)
    except csv.Error as error:
        return [], _quoting(str(error))
    return fields, None if fields is None else _undecoded("".join(fields), encoding)


def _quoting(error: str) -> str:
    if "unexpected end" in error:
        return "a field starts with a double quote that is never closed. Close it"
    if "new-line" in error:
        return "the line ends in a bare carriage return. Save the file with line feeds"
    return f"the double quotes are wrong ({error}). Write a quote inside a quoted field twice"


def _checked_header(
    where: str, fields: list[str], problem: str | None, columns: tuple[str, ...]
) -> list[str]:
    if problem or not fields:
        problem = problem or "expected a line with the columns' names, found blank lines only"
        raise DataFormatError(f"{where}: {problem}.")
    header = [name.strip() for name in fields]
    check_columns(where, columns, header)
    return header
