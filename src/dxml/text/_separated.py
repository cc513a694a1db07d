"""Fields between commas, semicolons or tabs → rows."""

from __future__ import annotations

import csv
import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dxml.exceptions import DataFormatError
from dxml.text._bad_rows import Problems, Row, check_columns
from dxml.text._decoding import undecoded
from dxml.text._files import TextFile

__all__ = ["separated_rows"]


@contextmanager
def _long_fields() -> Iterator[None]:
    """Within this context the csv module accepts fields longer than 128 KiB."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def separated_rows(
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
    return fields, None if fields is None else undecoded("".join(fields), encoding)


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
