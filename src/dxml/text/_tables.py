"""Read texts and their labels from a table: a file, a data frame or a dict of lists.

>>> table = read_table({"title": ["Fish", "Soup"], "tags": ["sea; food", "food"]}, "title", "tags")
>>> table.texts, table.labels
(('Fish', 'Soup'), (('sea', 'food'), ('food',)))
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dxml._core.validation import is_missing
from dxml.exceptions import DataFormatError
from dxml.progress import SILENT, Progress
from dxml.text._bad_rows import PlainText, Problems, Row
from dxml.text._frames import read_excel, read_frame
from dxml.text._parquet import read_parquet
from dxml.text._plain import is_plain, read_plain
from dxml.text._rows import TableFormat, read_rows, recognise

__all__ = [
    "Cells",
    "TableFormat",
    "TextTable",
    "WrongType",
    "open_rows",
    "read_blocks",
    "read_table",
    "split_labels",
]

SEPARATORS = (";", "|")
"""Label separators, tried in this order where a cell holds all labels and none is given."""

_ID = "id"  # of plain texts, where no column of ids is asked for
_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class TextTable:
    """A table of texts with their labels and ids.

    Attributes
    ----------
    texts : tuple of str
        A missing text is an empty string.
    labels : tuple of tuples of str, or None
        The labels of each row without repeats, in their order; None where no column was given.
    ids : tuple of str, or None
        The ids in the table; None where no column was given.
    skipped : int
        Number of bad rows left out.
    problems : tuple of str
        Messages about the first of them.
    rows : tuple of int, or None
        The number of each row in the table, from 0 and counting bad rows; None where no row was
        left out.
    groups : tuple of str, or None
        What each row belongs to, "" where its cell is empty; None where no column was given.
    """

    texts: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...] | None = None
    ids: tuple[str, ...] | None = None
    skipped: int = 0
    problems: tuple[str, ...] = ()
    rows: tuple[int, ...] | None = None
    groups: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        columns = {"labels": self.labels, "ids": self.ids, "groups": self.groups}
        for what, column in columns.items():
            if column is not None and len(column) != len(self.texts):
                raise DataFormatError(
                    f"there are {len(self.texts)} texts but {len(column)} {what}. "
                    "Give one for each text."
                )

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        skipped = f", {self.skipped} bad rows skipped" if self.skipped else ""
        known = "" if self.labels is None else f", {len(set().union(*self.labels))} labels"
        return f"TextTable({len(self)} texts{known}{skipped})"

    def take(self, rows: Iterable[int]) -> TextTable:
        """The rows with these numbers, from 0, in that order."""
        rows = list(rows)
        return replace(
            self,
            texts=tuple(self.texts[row] for row in rows),
            labels=None if self.labels is None else tuple(self.labels[row] for row in rows),
            ids=None if self.ids is None else tuple(self.ids[row] for row in rows),
            rows=None if self.rows is None else tuple(self.rows[row] for row in rows),
            groups=None if self.groups is None else tuple(self.groups[row] for row in rows),
        )

    @property
    def names(self) -> Sequence[int | str]:
        """The rows' ids, or else their numbers in the table, from 0."""
        return self.ids or self.rows or range(len(self))

    @property
    def titles(self) -> tuple[str, ...]:
        """The first line of each text."""
        return tuple(text.partition("\n")[0] for text in self.texts)


def read_table(
    source: Any,
    text: str | Sequence[str] = "text",
    labels: str | None = None,
    id: str | None = None,
    *,
    id_if_there: bool = False,
    distinct_ids: bool = False,
    group: str | None = None,
    format: TableFormat | None = None,
    lines: bool = False,
    encoding: str = "utf-8",
    label_separator: str | None = None,
    skip_bad_rows: bool = False,
    progress: Progress = SILENT,
) -> TextTable:
    """Read texts and labels from a file or a frame.

    Parameters
    ----------
    source : path, frame or dict of lists
        A file of JSON lines, a JSON array, CSV, TSV, Excel or Parquet; text files may end in .gz,
        .bz2 or .xz too. A field of JSON lines may be missing here and there, but not in all of the
        first 1,000. A frame is one of pandas or polars, or an Arrow table. A file .txt, a folder of
        such files and ``"-"``, standard input, are texts without a table; their ids are the names
        of the files.
    text : str or sequence of str
        The column with the text; several columns are joined by line feeds.
    labels : str, optional
        The column with the labels; not needed for prediction. A cell is a list or a string: a JSON
        or Python list in brackets, or labels with a separator between them.
    id : str, optional
        A column that names the rows.
    id_if_there : bool
        Whether `id` is left out where the first row has no such column.
    distinct_ids : bool
        Whether a row whose id an earlier row has is a bad row. A row without an id is then called
        by its place, such as "line 9".
    group : str, optional
        A column that says what each row belongs to, such as a source.
    format : {"jsonl", "csv", "tsv", "parquet", "excel"}, optional
        Needed only where the suffix is not that of a known format.
    lines : bool
        Whether each line of plain text is a text by itself.
    encoding : str
        Of a text file.
    label_separator : str, optional
        By default ';' if any cell of the column contains it, else '|' if any does, else none: a
        cell is then one label. With a separator given, brackets are part of a label.
    skip_bad_rows : bool
        Leave out rows that cannot be read, and count them in `skipped`, instead of raising an
        error. `rows` then has the numbers of the rows that were read.
    progress : Progress
        Counts the bytes read, or the rows of a Parquet file.

    Raises
    ------
    DataFormatError
        The message has the file, the line, what was expected, what was found and what to do.
    """
    texts = (text,) if isinstance(text, str) else tuple(text)
    optional = (id,) if id is not None and id_if_there else ()
    sure = (labels, None if optional else id, group)
    wanted = (*texts, *(name for name in sure if name is not None))
    problems = Problems(skip_bad_rows)
    rows = open_rows(
        source,
        wanted,
        optional,
        format=format,
        lines=lines,
        encoding=encoding,
        problems=problems,
        progress=progress,
    )
    columns: Cells | None = None
    good: list[int] = []
    plain: list[str] = []
    for where, row in rows:
        if columns is None:
            id = None if optional and id not in row else id
            columns = Cells(texts, labels, id, label_separator is None, distinct_ids, group)
        number = len(good) + problems.count
        if isinstance(row, PlainText):
            plain.append(row["id"])
            row = row.as_row(where, texts[0], labels, id or _ID)
        try:
            columns.add(row, where)
            good.append(number)
        except WrongType as error:
            problems.add(where, str(error))
    columns = columns or Cells(texts, labels, id, listed=False)
    if problems.count and not columns.texts:
        raise DataFormatError(f"none of {problems.count} rows is good. {problems.messages[0]}")
    return TextTable(
        texts=tuple(columns.texts),
        labels=None if labels is None else split_labels(columns.labels, label_separator),
        ids=tuple(plain) or (None if id is None else tuple(columns.ids)),
        skipped=problems.count,
        problems=tuple(problems.messages),
        rows=tuple(good) if problems.count else None,
        groups=None if group is None else tuple(columns.groups),
    )


def read_blocks(
    source: str | Path,
    text: str | Sequence[str],
    id: str | None = None,
    *,
    id_if_there: bool = False,
    size: int = 2048,
    lines: bool = False,
    encoding: str = "utf-8",
    skip_bad_rows: bool = False,
) -> Iterator[TextTable]:
    """The texts of a file of any length, up to `size` rows at a time; ``-`` is standard input.

    Parameters are those of `read_table`, but for

    id_if_there : bool
        Whether `id` is left out where the first row has no such column.

    Each table's `rows` has the numbers of its rows in the file, and `skipped` counts all bad rows
    so far; the last table may have no rows, where bad ones came last.
    """
    texts = (text,) if isinstance(text, str) else tuple(text)
    wanted = texts if id is None or id_if_there else (*texts, id)
    problems, done = Problems(skip_bad_rows), 0
    optional = (id,) if id is not None and id_if_there else ()
    rows = open_rows(source, wanted, optional, lines=lines, encoding=encoding, problems=problems)
    columns: Cells | None = None
    good: list[int] = []

    def block() -> TextTable:
        found = columns or Cells(texts, None, named, listed=False)
        ids = None if named is None else tuple(found.ids)
        said = problems.count, tuple(problems.messages)
        return TextTable(tuple(found.texts), None, ids, *said, tuple(good))

    named, told = id, 0
    for where, row in rows:
        if isinstance(row, PlainText):
            named = named or _ID
            row = row.as_row(where, texts[0], None, named)
        if columns is None:
            if done == 0 and id_if_there and named not in row:
                named = None
            columns = Cells(texts, None, named, listed=False)
        number = done + len(good) + problems.count
        try:
            columns.add(row, where)
            good.append(number)
        except WrongType as error:
            problems.add(where, str(error))
        if len(good) == size:
            yield block()
            columns, good, done, told = None, [], done + size, problems.count
    if problems.count and not good and not done:
        raise DataFormatError(f"none of {problems.count} rows is good. {problems.messages[0]}")
    if good or problems.count > told:
        yield block()


def open_rows(
    source: Any,
    wanted: tuple[str, ...],
    optional: tuple[str, ...] = (),
    *,
    format: TableFormat | None = None,
    lines: bool = False,
    encoding: str = "utf-8",
    problems: Problems | None = None,
    progress: Progress = SILENT,
) -> Iterator[tuple[str, Row]]:
    """The rows of a file, a frame or a dict of lists, each with its location for error messages.

    All `wanted` columns must exist, `optional` ones may. A row may have other columns too.
    """
    if not isinstance(source, str | Path):
        return read_frame(source, wanted, optional)
    path = Path(source)
    if format is None and is_plain(source):
        return read_plain(path, lines=lines, encoding=encoding, progress=progress)
    chosen = recognise(path, format)
    if chosen == "excel":
        return read_excel(path, wanted)
    if chosen == "parquet":
        return read_parquet(path, wanted, optional, progress)
    return read_rows(
        path,
        chosen,
        columns=wanted,
        lines=lines,
        encoding=encoding,
        problems=problems,
        progress=progress,
    )


class WrongType(Exception):
    """A cell that is neither text nor labels."""


class Cells:
    """Collects and checks the cells of the text, label, id and group columns, row by row."""

    def __init__(
        self,
        text: tuple[str, ...],
        label: str | None,
        id: str | None,
        listed: bool,
        distinct: bool = False,
        group: str | None = None,
    ) -> None:
        self._names = (text, label, id, group)
        self._listed, self._distinct = listed, distinct
        self._first: dict[str, int] = {}
        self.texts: list[str] = []
        self.labels: list[str | tuple[str, ...]] = []
        self.ids: list[str] = []
        self.groups: list[str] = []

    def add(self, row: dict[str, Any], where: str = "") -> None:
        """Add the cells of a row at a place; a bad row raises WrongType and adds nothing."""
        names, label, id, group = self._names
        parts = [_text(name, row.get(name)) for name in names]
        labels = () if label is None else _labels(label, row.get(label), self._listed)
        own = "" if group is None or is_missing(row.get(group)) else _scalar(group, row[group])
        name = "" if id is None else self._id(id, row.get(id), where)
        self.texts.append("\n".join(part for part in parts if part.strip()))
        self.labels.append(labels)
        self.ids.append(name)
        self.groups.append(own)

    def _id(self, column: str, value: Any, where: str) -> str:
        if not self._distinct:
            return _scalar(column, value)
        missing = is_missing(value) or (isinstance(value, str) and not value.strip())
        name = " ".join(where.split()[-2:]) if missing else _scalar(column, value)
        first = self._first.setdefault(name, len(self.texts))
        if first < len(self.texts):
            raise WrongType(
                f"the id {name!r} in column {column!r} stands in row {first + 1} of the table too. "
                "Give every text another id"
            )
        return name


def _fail(column: str, expected: str, value: Any) -> WrongType:
    found = f"{type(value).__name__}, {value!r:.40}"
    return WrongType(f"expected {expected} in column {column!r}, found a {found}. Correct the cell")


def _characters(column: str, value: str) -> str:
    """In Unicode's normal form; an é of two characters is the é of one.

    Halves of characters, which JSON and frames can hold, but no UTF-8 file or answer, are refused.
    """
    if value.isascii():
        return value
    if found := _HALF.search(value):
        raise WrongType(
            f"expected characters in column {column!r}, found half of one, {found.group()!a} "
            "without the other half of its pair. Correct the cell"
        )
    return unicodedata.normalize("NFC", value)


def _text(column: str, value: Any) -> str:
    if isinstance(value, str):
        return _characters(column, value)
    if is_missing(value):
        return ""
    raise _fail(column, "text", value)


def _scalar(column: str, value: Any) -> str:
    if isinstance(value, str):
        return _characters(column, value)
    whole = hasattr(value, "__index__") or (isinstance(value, float) and value.is_integer())
    if whole and not isinstance(value, bool):
        return str(int(value))
    raise _fail(column, "a text or a whole number", value)


def _labels(column: str, value: Any, listed: bool) -> str | tuple[str, ...]:
    """A list of labels, or a string to be split once the separator is known.

    `listed` says whether a string in brackets is a list.
    """
    if isinstance(value, str):
        text = value.strip()
        if not (listed and text.startswith("[") and text.endswith("]")):
            return _characters(column, value)
        value = _parse_list(column, text)
    if is_missing(value):
        return ()
    if hasattr(value, "tolist"):  # numpy's arrays and numbers
        value = value.tolist()
    if not isinstance(value, list | tuple):
        value = [value]
    found = (_scalar(column, label).strip() for label in value)
    return tuple(dict.fromkeys(label for label in found if label))


def _parse_list(column: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise _fail(column, "a list of labels", text) from None


def split_labels(
    cells: list[str | tuple[str, ...]], separator: str | None
) -> tuple[tuple[str, ...], ...]:
    """Every cell as a tuple of labels. A separator that is given also splits those of lists."""
    given = separator
    if separator is None:
        texts = [cell for cell in cells if isinstance(cell, str)]
        found = (mark for mark in SEPARATORS if any(mark in text for text in texts))
        separator = next(found, None)

    def labels(cell: str | tuple[str, ...]) -> tuple[str, ...]:
        if isinstance(cell, tuple):
            if given is None:
                return cell
            parts = [part for label in cell for part in label.split(given)]
        else:
            parts = [cell] if separator is None else cell.split(separator)
        stripped = (part.strip() for part in parts)
        return tuple(dict.fromkeys(part for part in stripped if part))

    return tuple(map(labels, cells))
