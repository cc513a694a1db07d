"""Tables of texts on the command line: their options, and reading them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dxml.exceptions import DataFormatError, ParameterError

if TYPE_CHECKING:
    from dxml._progress import Progress
    from dxml.tagger import Columns
    from dxml.text import TextTable
    from dxml.thesaurus import Thesaurus

__all__ = [
    "ENCODING",
    "ID",
    "LABELS",
    "LABEL_INFO",
    "SEPARATOR",
    "SKIP",
    "TEXT",
    "LabelTable",
    "Reading",
]

TEXT = typer.Option(
    [],
    "--text",
    metavar="COLUMN",
    help="DATA is a table of texts (JSON lines, CSV, TSV or Parquet) and this column has them; "
    "may be repeated, the texts are then joined. With a trained tagger: its own by default.",
)
LABELS = typer.Option(
    None, "--labels", metavar="COLUMN", help="Of a table: the labels, a list or a separated text."
)
ID = typer.Option(None, "--id", metavar="COLUMN", help="Of a table: what names the rows.")
SEPARATOR = typer.Option(
    None,
    "--label-separator",
    metavar="TEXT",
    help="Of a table: what stands between labels; ; or | are found by themselves.",
)
LABEL_INFO = typer.Option(
    None,
    "--label-info",
    metavar="FILE",
    help="A table of the labels: name, and description and parents if known; kept in the model.",
)
ENCODING = typer.Option("utf-8", "--encoding", help="Of a table: how its text is encoded.")
SKIP = typer.Option(
    False, "--skip-bad-rows", help="Of a table: leave out rows that cannot be read, and say so."
)

_IN_PYTHON = {"skip_bad_rows=True": "--skip-bad-rows", "encoding='cp1252'": "--encoding cp1252"}


def _as_options(message: str) -> str:
    """A message of the library in the words of the command line."""
    for python, option in _IN_PYTHON.items():
        message = message.replace(python, option)
    return message


@dataclass(frozen=True)
class Reading:
    """How a table is to be read, as it was asked for."""

    text: list[str]
    labels: str | None = None
    id: str | None = None
    label_separator: str | None = None
    encoding: str = "utf-8"
    skip_bad_rows: bool = False

    @property
    def asked(self) -> bool:
        """Whether an option was given that only a table has."""
        return bool(self.text or self.labels or self.id or self.label_separator)

    def refuse(self, model: Path, method: str) -> None:
        """A model of features reads no tables."""
        if self.asked:
            raise ParameterError(
                f"{model} holds a model of method {method!r}, which takes features, not texts: "
                "leave --text, --labels, --id and --label-separator out, or train a tagger with "
                "dxml train --text."
            )

    def columns(self, known: Columns | None) -> Columns:
        """The columns that were asked for, and else those that the model was trained on."""
        from dxml.tagger import Columns

        text = tuple(self.text) or (known.text if known else ())
        if not text:
            raise ParameterError("say which column has the texts, such as --text abstract.")
        return Columns(
            text,
            self.labels or (known.labels if known else None),
            self.id or (known.id if known else None),
            self.label_separator or (known.label_separator if known else None),
        )

    def has_column(self, data: str, name: str | None) -> bool:
        """Whether the first row of a table has it; what is wrong with the table `read` says."""
        from dxml.text.tables import open_rows

        if name is None:
            return False
        try:
            _, row = next(iter(open_rows(Path(data), (), (name,), encoding=self.encoding)))
        except (DataFormatError, OSError, StopIteration):
            return False
        return name in row

    def read(self, data: str, columns: Columns, progress: Progress) -> TextTable:
        """The table; what is wrong with it is said in the words of the command line."""
        from dxml.text import read_table

        try:
            table = read_table(
                Path(data),
                columns.text,
                columns.labels,
                columns.id,
                encoding=self.encoding,
                label_separator=columns.label_separator,
                skip_bad_rows=self.skip_bad_rows,
                progress=progress,
            )
        except DataFormatError as error:
            raise DataFormatError(_as_options(str(error))) from error
        if table.skipped:
            bad = "1 bad row" if table.skipped == 1 else f"{table.skipped:,} bad rows"
            typer.echo(f"{bad} skipped; {_as_options(table.problems[0])}", err=True)
        return table

    def read_labelled(self, data: str, columns: Columns, progress: Progress) -> TextTable:
        """As `read`; the labels must be there."""
        if columns.labels is None:
            raise ParameterError("say which column has the labels, such as --labels subjects.")
        return self.read(data, columns, progress)


@dataclass(frozen=True)
class LabelTable:
    """What is known of the labels, and whether it is to be learnt."""

    path: Path | None
    learn: bool

    def read(self, reading: Reading) -> Thesaurus | None:
        """The table, encoded and separated like that of the texts."""
        from dxml.thesaurus import read_thesaurus

        if self.path is None:
            if self.learn:
                raise ParameterError("--learn-descriptions needs --label-info FILE.")
            return None
        return read_thesaurus(
            self.path, encoding=reading.encoding, separator=reading.label_separator
        )
