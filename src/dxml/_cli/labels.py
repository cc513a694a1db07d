"""``dxml labels``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dxml._cli._model import load_tagger
from dxml._cli._options import MODEL

if TYPE_CHECKING:
    from dxml.tagging._tagger import TextTagger

__all__ = ["labels"]


def labels(
    query: str | None = typer.Argument(
        None, metavar="QUERY", help="Only those with this in name or description."
    ),
    model: Path = MODEL,
    top: int = typer.Option(20, "--top", metavar="N", min=1, help="Labels shown, at most."),
    as_json: bool = typer.Option(False, "--json", help="A line a label, each a JSON object."),
) -> None:
    """The labels of a tagger, most frequent first.

    With each: the texts that carry it, and, where the tagger was trained with
    --label-info, the way to it through broader labels and its description.
    """

    found = _found(load_tagger(model), (query or "").casefold())
    if as_json:
        for each in found[:top]:
            typer.echo(json.dumps(each, ensure_ascii=False))
    elif not found:
        typer.echo(f"no label has {query!r} in its name or description")
    else:
        _print(found[:top])
        typer.echo(f"{min(top, len(found)):,} of {len(found):,} labels")


def _found(tagger: TextTagger, query: str) -> list[dict[str, Any]]:
    counts = dict(zip(tagger.labels_, tagger.model.label_frequency_.tolist(), strict=True))
    counts = dict.fromkeys(tagger.thesaurus or (), 0) | counts
    found = []
    for name in sorted(counts, key=lambda name: (-counts[name], name)):
        info = tagger.describe(name)
        if query in name.casefold() or query in info.description.casefold():
            found.append({"name": name, "points": counts[name], **info.to_dict()})
    return found


def _print(found: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    from dxml._cli._console import table_console

    described = any(each["description"] for each in found)
    table = Table("texts", "label", *(["description"] if described else []))
    table.columns[0].justify = "right"
    for each in found:
        *above, name = each["path"]
        label = Text("".join(f"{up} › " for up in above), style="dim").append(name, "not dim bold")
        cells = [Text(each["description"])] if described else []
        table.add_row(Text(f"{each['points']:,}"), label, *cells)
    table_console().print(table)
