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

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Literal, cast, get_args

from dxml.exceptions import DataFormatError, ParameterError, advise, did_you_mean
from dxml.progress import SILENT, Progress
from dxml.text._bad_rows import PlainText, Problems, Row
from dxml.text._decoding import check_mark, decoder_of, lines_of, undecoded
from dxml.text._files import STDIN, TextFile, open_text, plain_suffix
from dxml.text._json_rows import array_rows, json_rows
from dxml.text._piped import PEEKED, format_of_header, refuse_other_table
from dxml.text._separated import separated_rows

__all__ = ["TableFormat", "read_rows", "read_text", "recognise"]

TableFormat = Literal["jsonl", "csv", "tsv", "parquet", "excel"]
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

_JSON_STARTS = (b"[", b"[{", b'["', b"[]", b"{", b'{"', b"{}")
"""First characters by which standard input is told from text such as "[Sic] transit"."""


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

    The file must have all `columns`; single JSON lines may lack some. Standard input that neither
    begins as JSON does nor with a line that names the columns is plain text; a table with other
    columns is an error.
    """
    problems = Problems() if problems is None else problems
    decoder = decoder_of(encoding)
    with open_text(path, progress) as file:
        check_mark(file, encoding)
        first, source, found = file.first_characters(), str(file.path), lines_of(file, decoder)
        if format != "jsonl":
            yield from separated_rows(file, found, format, columns, encoding, problems)
        elif str(path) == STDIN and first not in _JSON_STARTS:
            yield from _piped_rows(file, found, columns, lines, encoding, problems)
        elif first.startswith(b"["):
            yield from array_rows("\n".join(found), source, problems, columns, encoding)
        else:
            numbered = ((file.line, line) for line in found)
            yield from json_rows(numbered, source, columns, encoding, problems)


def _piped_rows(
    file: TextFile,
    found: Iterator[str],
    columns: tuple[str, ...],
    lines: bool,
    encoding: str,
    problems: Problems,
) -> Iterator[tuple[str, Row]]:
    """The rows of standard input that is no JSON: those of a table, or texts."""
    head = [] if lines else list(islice(found, 1))
    if head and (told := format_of_header(head[0], columns)):
        yield from separated_rows(file, chain(head, found), told, columns, encoding, problems)
        return
    if head:
        head += islice(found, PEEKED - 1)
        refuse_other_table(head, columns, str(file.path))
    yield from plain_rows(file, chain(head, found), STDIN, lines, encoding)


def read_text(
    path: Path, name: str, lines: bool, encoding: str, progress: Progress = SILENT
) -> Iterator[tuple[str, Row]]:
    """A file of plain text as one text, or each of its lines as one; an empty file is one too."""
    if not path.stat().st_size:
        yield str(path), PlainText(text="", id=name)
        return
    decoder = decoder_of(encoding)
    with open_text(path, progress) as file:
        check_mark(file, encoding)
        yield from plain_rows(file, lines_of(file, decoder), name, lines, encoding)


def plain_rows(
    file: TextFile, found: Iterator[str], name: str, lines: bool, encoding: str
) -> Iterator[tuple[str, Row]]:
    whole = []
    for line in found:
        if problem := undecoded(line, encoding):
            file.fail(problem, file.line)
        if not lines:
            whole.append(line)
        elif line.strip():
            yield f"{file.path} line {file.line}", PlainText(text=line, id=f"{name}:{file.line}")
    if not lines:
        yield str(file.path), PlainText(text="\n".join(whole).strip("\n"), id=name)
