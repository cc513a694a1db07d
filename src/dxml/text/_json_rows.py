"""JSON, an object a line or all in one array → rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from dxml.exceptions import DataFormatError
from dxml.text._bad_rows import PlainText, Problems, Row, check_columns
from dxml.text._decoding import undecoded

__all__ = ["array_rows", "json_rows"]

_ROWS_TO_CHECK = 1000  # JSON lines in which every requested column must occur at least once


def array_rows(
    text: str,
    source: str,
    problems: Problems,
    columns: tuple[str, ...] = (),
    encoding: str = "utf-8",
) -> Iterator[tuple[str, Row]]:
    """The objects of a JSON array; a text among them is a row with the column ``text``.

    Where all are texts they are plain texts, which stand for any column.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = undecoded(text, encoding) or f"expected a JSON array ({error}). Correct it"
        raise DataFormatError(f"{source}: {problem}.") from None
    seen: set[str] = set()
    plain = all(isinstance(row, str) for row in found)
    for number, row in enumerate(found, start=1):
        where = f"{source} row {number}"
        if isinstance(row, str):
            row = PlainText(text=row, id=str(number - 1)) if plain else {"text": row}
        if not isinstance(row, dict):
            kind = type(row).__name__
            problems.add(where, f"expected a JSON object such as {{...}}, found a {kind}")
        elif wrong := undecoded("".join(map(str, row.values())), encoding):
            problems.add(where, wrong)
        else:
            seen.update(row)
            yield where, row
    if seen and not plain:
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
    if problem := undecoded(line, encoding):
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
