"""Excel files and data frames → rows (a dict of columns each)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

from dxml.exceptions import DataFormatError
from dxml.text._bad_rows import Row, check_columns
from dxml.text._files import check_archive, check_file

__all__ = ["read_excel", "read_frame"]


def read_excel(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, Row]]:
    """The rows of the first sheet of an Excel file; cells come as they would be read: as texts."""
    check_file(path)
    try:
        openpyxl = import_module("openpyxl")
    except ImportError:
        raise DataFormatError(
            f"{path}: reading Excel needs openpyxl. Install it with: pip install 'dxml[excel]'."
        ) from None
    check_archive(path)
    rows = _sheet_rows(openpyxl, path)
    header = [_as_text(cell) or "" for cell in next(rows, ())]
    check_columns(str(path), columns, header)
    for number, cells in enumerate(rows, start=2):
        if any(cell is not None for cell in cells):
            yield f"{path} row {number}", dict(zip(header, map(_as_text, cells), strict=False))


def _sheet_rows(openpyxl: Any, path: Path) -> Iterator[tuple[Any, ...]]:
    """The cells of the first sheet, row by row."""
    try:
        with closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book:
            yield from book.worksheets[0].iter_rows(values_only=True)
    except Exception as error:  # openpyxl has no error of its own for most damage
        raise DataFormatError(
            f"{path}: expected an Excel file (.xlsx), found something else or a damaged one "
            f"({error}). Save it again."
        ) from error


def _as_text(cell: Any) -> str | None:
    """A cell as its reader sees it: 1984 and not 1984.0."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return None if cell is None else str(cell)


def read_frame(
    frame: Any, columns: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Iterator[tuple[str, Row]]:
    """The rows of a frame (pandas, polars, an Arrow table), or of a dict of lists."""
    names = getattr(frame, "column_names", getattr(frame, "columns", None))
    if names is None and not isinstance(frame, dict):
        raise DataFormatError(
            f"expected a path, a frame or a dict of lists, found a {type(frame).__name__}. "
            "Put the texts into a dict, such as {'text': [...]}."
        )
    present = [str(name) for name in (frame if names is None else names)]
    check_columns("the table", columns, present)
    columns = (*columns, *(name for name in optional if name in present))
    values = [_as_list(frame[name]) for name in columns]
    if len(set(map(len, values))) > 1:
        sizes = ", ".join(
            f"{name} {len(column)}" for name, column in zip(columns, values, strict=True)
        )
        raise DataFormatError(f"the columns have different lengths: {sizes}. Give one cell a row.")
    for number, row in enumerate(zip(*values, strict=True)):
        yield f"the table's row {number}", dict(zip(columns, row, strict=True))


def _as_list(column: Any) -> list[Any]:
    for method in ("to_list", "to_pylist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)
