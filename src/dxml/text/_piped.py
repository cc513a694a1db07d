"""Whether what comes by standard input is a table of fields between marks, or a text.

A first line that names the wanted columns is a table's. A table with other columns is told from a
text by its form: the first line holds short names without spaces around them, and the lines below
have as many fields. A list in a sentence has a space after each comma.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Literal

from dxml.exceptions import DataFormatError, advise
from dxml.text._bad_rows import check_columns

__all__ = ["PEEKED", "format_of_header", "refuse_other_table"]

PEEKED = 50  # lines by which a table is told
LEAST_SHARE = 0.75  # of the rows that must have as many fields as the first line
LONGEST_NAME = 40  # characters of a column's name
MARKS: tuple[tuple[str, Literal["tsv", "csv"]], ...] = (("\t", "tsv"), (",", "csv"), (";", "csv"))


def format_of_header(line: str, columns: tuple[str, ...]) -> Literal["tsv", "csv"] | None:
    """That of a table whose first line names these columns and others; None: it is no such line."""
    for mark, format in MARKS:
        fields = [field.strip().strip('"') for field in line.split(mark)]
        if len(fields) > 1 and columns and set(columns) <= set(fields):
            return format
    return None


def refuse_other_table(lines: Sequence[str], columns: tuple[str, ...], where: str) -> None:
    """Raise an error where the first lines are those of a table without these columns."""
    if not (found := _columns_of(lines)):
        return
    option = advise("lines=True", "--lines")
    try:
        check_columns(f"{where} seems to be a table", columns, found)
    except DataFormatError as error:
        raise DataFormatError(
            f"{error} If it is one text, put it into a file .txt; with {option} each line is one."
        ) from None


def _columns_of(lines: Sequence[str]) -> list[str] | None:
    """The names of a table's columns; None: these lines are none of a table.

    >>> _columns_of(["id,remarks", "1,fish", "2,soup"])
    ['id', 'remarks']
    >>> _columns_of(["Fish, soup", "salt, pepper"]) is None
    True
    """
    written = [line.removesuffix("\r") for line in lines if line.strip()]
    for mark, _ in MARKS:
        header, *rows = _fields(written, mark)
        alike = sum(len(row) == len(header) for row in rows)
        if rows and alike >= LEAST_SHARE * len(rows) and _are_names(header):
            return header
    return None


def _fields(lines: Sequence[str], mark: str) -> list[list[str]]:
    """Those of each row; one row without any where the lines cannot be cut."""
    try:
        return list(csv.reader(lines, delimiter=mark)) or [[]]
    except csv.Error:
        return [[]]


def _are_names(fields: Sequence[str]) -> bool:
    """Whether these may be the names of two or more columns."""
    short = all(0 < len(field) <= LONGEST_NAME and field == field.strip() for field in fields)
    return len(fields) > 1 and short and len(set(fields)) == len(fields)
