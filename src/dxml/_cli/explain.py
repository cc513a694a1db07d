"""``dxml explain``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dxml._cli._model import open_tagger
from dxml._cli._options import MODEL
from dxml._cli._tables import ENCODING
from dxml.exceptions import DataFormatError

if TYPE_CHECKING:
    from dxml.tagging._tagger import TextTagger
    from dxml.tagging._tags import Explanation

__all__ = ["explain"]


def explain(
    text: str = typer.Argument(
        ..., metavar="TEXT", help="In quotes, or a file .txt; - reads standard input."
    ),
    model: Path = MODEL,
    top: int = typer.Option(5, "--top", metavar="N", min=1, help="Labels."),
    words: int = typer.Option(8, "--words", metavar="N", min=0, help="Words a label, at most."),
    neighbours: int = typer.Option(
        3, "--neighbours", metavar="N", min=0, help="Texts a label, at most."
    ),
    encoding: str = ENCODING,
    as_json: bool = typer.Option(False, "--json", help="A line a label, each a JSON object."),
) -> None:
    """Tag one text and say why: its words, and texts like it.

    For each label: its probability; the shares of the head and of the neighbours
    in what speaks for it; the words without which its score would be lower, and
    by how much; the training texts that voted for it, with their similarity and
    their labels. The model must be a tagger.
    """

    tagger = open_tagger(model)
    whole = _whole(text, model, encoding)
    found = tagger.explain(whole, top, n_words=words, n_neighbours=neighbours)
    if tagger.without_known_words([whole]):
        typer.echo("no word of the text is known: these labels are only frequent ones", err=True)
    if as_json:
        for each in found:
            typer.echo(json.dumps(each.to_dict(), ensure_ascii=False))
    else:
        _print(found, tagger)


def _whole(text: str, model: Path, encoding: str) -> str:
    """What is to be explained: the argument, standard input, or what a file of plain text holds."""
    from dxml.text import read_table
    from dxml.text._plain import is_plain

    if text == "-":
        return sys.stdin.read()
    if not os.path.isfile(text):
        return text
    if not is_plain(text):
        raise DataFormatError(
            f"{text}: is a file, and one text is explained at a time. Tag those of a table with: "
            f"dxml predict {text} --model {model}. Explain one of them by its words, in quotes."
        )
    typer.echo(f"the text in the file {text}:", err=True)
    return read_table(text, encoding=encoding).texts[0]


def _print(found: list[Explanation], tagger: TextTagger) -> None:
    from rich.table import Table
    from rich.text import Text

    from dxml._cli._console import table_console

    console = table_console()
    for each in found:
        shares = f"{each.from_head:.0%} from the head, {each.from_neighbours:.0%} from neighbours"
        line = Text(each.name, style="bold")
        console.print(line.append(f"  {each.probability:.0%}; {shares}", style="not bold"))
        if description := tagger.describe(each.name).description:
            console.print(Text(f"  {description}", style="dim"))
        words = ", ".join(f"{word} {effect:+.2f}" for word, effect in each.words)
        console.print(Text(f"  words: {words or 'none by itself'}"))
        if each.neighbours:
            table = Table("similarity", "id", "title", "labels", box=None, padding=(0, 1, 0, 2))
            for near in each.neighbours:
                labels = "; ".join(near.labels)
                cells = (f"{near.similarity:.2f}", near.id, near.title, labels)
                table.add_row(*map(Text, cells))
            console.print(table)
