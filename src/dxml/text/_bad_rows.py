"""Rows that are plain text, rows that cannot be read, and columns that are not there."""

from __future__ import annotations

from typing import Any

from dxml.exceptions import DataFormatError, advise, did_you_mean

__all__ = ["PlainText", "Problems", "Row", "check_columns"]

Row = dict[str, Any]
_MAX_MESSAGES = 5  # messages kept about skipped rows


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


LONG_NAME = 60  # characters, from which on the name of a column is rather a text


def _shortened(name: str) -> str:
    return name if len(name) <= LONG_NAME else f"{name[:LONG_NAME]}…"


def check_columns(where: str, wanted: tuple[str, ...], present: list[str]) -> None:
    """Every wanted column must be there, and once."""
    for name in wanted:
        if name not in present:
            shown = [_shortened(each) for each in present]
            hint = did_you_mean(name, shown)
            found = f" Found: {', '.join(sorted(shown))}" if hint.endswith("?") else ""
            header = any(len(each) > LONG_NAME for each in present)
            options = advise("text=, labels= and id=", "--text, --labels and --id")
            raise DataFormatError(
                f"{where}: there is no column {name!r}{hint}{found}. "
                f"Name the columns with {options}."
                + " If these are texts, the line with the names of the columns is missing."
                * header
            )
        if present.count(name) > 1:
            raise DataFormatError(
                f"{where}: there is more than one column {name!r}. Rename all but one."
            )
