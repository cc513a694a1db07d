"""``dxml labels``: list them, and rename, merge or delete some."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dxml._cli._default import DefaultGroup
from dxml._cli._model import check_tagger, load_tagger
from dxml._cli._options import MODEL, QUIET
from dxml._cli.versions import KEEP
from dxml._core.counted import counted

if TYPE_CHECKING:
    from dxml.service._served import Change
    from dxml.tagging._tagger import TextTagger

__all__ = ["app"]

app = typer.Typer(
    cls=DefaultGroup,
    help="The labels of a tagger: dxml labels QUERY lists them.",
    no_args_is_help=True,
)


@app.command("list")
def list_labels(
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


@app.command()
def rename(
    old: str = typer.Argument(..., metavar="OLD", help="The label's name."),
    new: str = typer.Argument(..., metavar="NEW", help="The name that it is to have."),
    model: Path = MODEL,
    keep: int = KEEP,
    quiet: bool = QUIET,
) -> None:
    """Call a label by another name.

    What a service was taught is applied first. The model's folder is replaced in
    one step.
    """
    _change(model, "rename", [old], new, f"renamed {old!r} to {new!r}", keep, quiet)


@app.command()
def merge(
    labels: list[str] = typer.Argument(..., metavar="LABEL", help="Labels to be put together."),
    into: str = typer.Option(..., "--into", metavar="NAME", help="One of them, or another name."),
    model: Path = MODEL,
    keep: int = KEEP,
    quiet: bool = QUIET,
) -> None:
    """Make one label of several; the texts of each carry it.

    The linear head is trained on for it. The other parts put together what they
    have; dxml learn --catch-up trains them too.
    """
    named = ", ".join(map(repr, labels))
    _change(model, "merge", labels, into, f"merged {named} into {into!r}", keep, quiet)


@app.command()
def delete(
    labels: list[str] = typer.Argument(..., metavar="LABEL", help="Labels that are to go."),
    model: Path = MODEL,
    keep: int = KEEP,
    quiet: bool = QUIET,
) -> None:
    """Take labels off all texts; they are predicted no more. The texts stay."""
    _change(model, "delete", labels, None, f"deleted {', '.join(map(repr, labels))}", keep, quiet)


def _change(
    model: Path,
    how: Change,
    labels: list[str],
    into: str | None,
    said: str,
    keep: int,
    quiet: bool,
) -> None:
    from dxml._core.locking import folder_lock
    from dxml._core.versions import keeping
    from dxml.service._settling import compact_journal, relabel
    from dxml.tagging._journal import JOURNAL

    check_tagger(model)  # what is no tagger is refused before a lock is made
    with folder_lock(model):
        tagger = relabel(model, how, labels, into)
        with keeping(model, said, keep):
            tagger.save(model)
        if (model / JOURNAL).exists():
            compact_journal(model)
    if not quiet:
        typer.echo(f"{said}: {counted(len(tagger.labels_), 'label')}")


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
