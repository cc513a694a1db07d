"""Tables of texts on the command line: their options, and reading them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dxml.exceptions import DataFormatError, ParameterError

if TYPE_CHECKING:
    from dxml.progress import Progress
    from dxml.tagging._tagger import Columns
    from dxml.tagging._thesaurus import Thesaurus
    from dxml.text import TextTable

__all__ = [
    "ENCODING",
    "GROUP",
    "ID",
    "LABELS",
    "LABEL_INFO",
    "LANGUAGE",
    "LEARN_DESCRIPTIONS",
    "LINES",
    "PANEL",
    "SEPARATOR",
    "SKIP",
    "STRICT",
    "TEXT",
    "LabelTable",
    "Reading",
    "outside",
]

SHOWN = 5  # labels outside the vocabulary that are named

PANEL = "A table of texts"
"""What the help calls options that only tables have."""

TEXT = typer.Option(
    [],
    "--text",
    metavar="COLUMN",
    help="The texts; repeat it to join. A tagger knows its own.",
    rich_help_panel=PANEL,
)
LABELS = typer.Option(
    None,
    "--labels",
    metavar="COLUMN",
    help="Their labels: a list, or a text.",
    rich_help_panel=PANEL,
)
ID = typer.Option(
    None, "--id", metavar="COLUMN", help="What names the rows.", rich_help_panel=PANEL
)
GROUP = typer.Option(
    None,
    "--group",
    metavar="COLUMN",
    help="What rows belong to, such as a source; held out whole.",
    rich_help_panel=PANEL,
)
SEPARATOR = typer.Option(
    None,
    "--label-separator",
    metavar="TEXT",
    help="Between labels; by default ; or |.",
    rich_help_panel=PANEL,
)
LABEL_INFO = typer.Option(
    None,
    "--label-info",
    metavar="FILE",
    help="Labels: a table, or a SKOS vocabulary.",
    rich_help_panel=PANEL,
)
LANGUAGE = typer.Option(
    None,
    "--language",
    metavar="TAG",
    help="Of the labels' names, such as en, or en,de.",
    rich_help_panel=PANEL,
)
STRICT = typer.Option(
    False,
    "--strict",
    help="Refuse labels that --label-info lacks.",
    rich_help_panel=PANEL,
)
LEARN_DESCRIPTIONS = typer.Option(
    False,
    "--learn-descriptions",
    help="Learn the descriptions of rare labels.",
    rich_help_panel=PANEL,
)
LINES = typer.Option(
    False, "--lines", help="Each line of plain text is a text.", rich_help_panel=PANEL
)
ENCODING = typer.Option(
    "utf-8", "--encoding", metavar="NAME", help="Of the file.", rich_help_panel=PANEL
)
SKIP = typer.Option(
    False, "--skip-bad-rows", help="Leave out rows that cannot be read.", rich_help_panel=PANEL
)


@dataclass(frozen=True)
class Reading:
    """How a table is to be read, as it was asked for."""

    text: list[str]
    labels: str | None = None
    id: str | None = None
    label_separator: str | None = None
    encoding: str = "utf-8"
    skip_bad_rows: bool = False
    lines: bool = False
    group: str | None = None

    @property
    def asked(self) -> bool:
        """Whether an option was given that only a table has."""
        return bool(self.text or self.labels or self.id or self.label_separator)

    def refuse(self, model: Path, method: str) -> None:
        """A model of features reads no tables."""
        if self.asked or self.skip_bad_rows:
            raise ParameterError(
                f"{model} holds a model of method {method!r}, which takes features, not texts: "
                "leave --text, --labels, --id, --label-separator and --skip-bad-rows out, or train "
                "a tagger with dxml train --text."
            )

    def columns(self, known: Columns | None) -> Columns:
        """The columns that were asked for, and else those that the model was trained on."""
        from dxml.tagging._tagger import Columns

        text = tuple(self.text) or (known.text if known else ())
        if not text:
            raise ParameterError("say which column has the texts, such as --text abstract.")
        return Columns(
            text,
            self.labels or (known.labels if known else None),
            self.id or (known.id if known else None),
            self.label_separator or (known.label_separator if known else None),
        )

    def read_blocks(self, data: str, columns: Columns, size: int) -> Iterator[TextTable]:
        """The texts of a table of any length, up to `size` rows at a time.

        A column of ids that only the model names need not be there. Bad rows that are skipped are
        counted on standard error, at the end.
        """
        from dxml.text._tables import read_blocks

        skipped, said = 0, ""
        for table in read_blocks(
            Path(data),
            columns.text,
            columns.id,
            id_if_there=self.id is None,
            size=size,
            lines=self.lines,
            encoding=self.encoding,
            skip_bad_rows=self.skip_bad_rows,
        ):
            yield table
            skipped, said = table.skipped, next(iter(table.problems), "")
        if skipped:
            _echo_skipped(skipped, said)

    def read(
        self, data: str, columns: Columns, progress: Progress, *, distinct_ids: bool = True
    ) -> TextTable:
        """The table; bad rows that are skipped are counted on standard error."""
        from dxml.text import read_table

        table = read_table(
            Path(data),
            columns.text,
            columns.labels,
            columns.id,
            id_if_there=self.id is None,
            distinct_ids=distinct_ids,
            group=self.group,
            encoding=self.encoding,
            label_separator=columns.label_separator,
            skip_bad_rows=self.skip_bad_rows,
            progress=progress,
        )
        if table.skipped:
            _echo_skipped(table.skipped, table.problems[0])
        return table

    def read_labelled(
        self, data: str, columns: Columns, progress: Progress, *, distinct_ids: bool = True
    ) -> TextTable:
        """As `read`; labels must be there, and rows."""
        if columns.labels is None:
            raise ParameterError("say which column has the labels, such as --labels subjects.")
        table = self.read(data, columns, progress, distinct_ids=distinct_ids)
        if not len(table):
            raise DataFormatError(f"{data}: the table has no rows. Check the path.")
        return table


def _echo_skipped(count: int, example: str) -> None:
    bad = "1 bad row" if count == 1 else f"{count:,} bad rows"
    typer.echo(f"{bad} skipped; {example}", err=True)


@dataclass(frozen=True)
class LabelTable:
    """What is known of the labels, and whether it is to be learnt."""

    path: Path | None
    learn: bool
    language: str | None = None
    strict: bool = False

    def read(self, reading: Reading) -> Thesaurus | None:
        """The table, encoded and separated like that of the texts."""
        from dxml.tagging._vocabulary import read_thesaurus

        if self.path is None:
            if self.learn:
                raise ParameterError("--learn-descriptions needs --label-info FILE.")
            if self.language:
                raise ParameterError("--language needs --label-info FILE.")
            return None
        return read_thesaurus(
            self.path,
            encoding=reading.encoding,
            separator=reading.label_separator,
            language=self.language,
        )

    def remarks(self, known: Thesaurus | None) -> list[str]:
        """What was noticed when the vocabulary was read."""
        return [] if known is None else [f"{self.path}: {remark}" for remark in known.remarks]


def outside(known: Thesaurus | None, rows: Iterable[Iterable[str]], where: object) -> list[str]:
    """The labels that a vocabulary lacks, in words: a line, or none."""
    strange = {} if known is None else known.outside(rows)
    if not strange:
        return []
    named = ", ".join(f"{name!r} ({n:,})" for name, n in list(strange.items())[:SHOWN])
    more = ", …" if len(strange) > SHOWN else ""
    what = "1 label is" if len(strange) == 1 else f"{len(strange):,} labels are"
    return [f"{what} not in {where}: {named}{more}"]
