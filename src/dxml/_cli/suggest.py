"""``dxml suggest-next``."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from dxml._cli._model import load_tagger
from dxml._cli._options import MODEL, QUIET
from dxml._cli._tables import ENCODING, ID, SKIP, TEXT, Reading

__all__ = ["suggest_next"]


def suggest_next(
    pool: str = typer.Argument(
        ..., metavar="POOL", help="Texts without labels: a table, or a folder."
    ),
    model: Path = MODEL,
    text: list[str] = TEXT,
    id: str | None = ID,
    top: int = typer.Option(20, "--top", metavar="N", min=1, help="Texts that can be labelled."),
    encoding: str = ENCODING,
    skip_bad_rows: bool = SKIP,
    as_json: bool = typer.Option(False, "--json", help="A line a text, each a JSON object."),
    quiet: bool = QUIET,
) -> None:
    """Which texts to label next, and why.

    Suggested are texts that the tagger is unsure of, that are typical of the
    pool, say much, and are unlike each other. Copies are named with their text.
    Texts that carry labels already, by training or dxml learn, are left out.
    """
    from dataclasses import replace

    from dxml.exceptions import DataFormatError
    from dxml.progress import open_progress
    from dxml.tagging._known_texts import first_line
    from dxml.tagging._suggesting import suggest_next

    tagger = load_tagger(model)
    reading = Reading(text, None, id, None, encoding, skip_bad_rows)
    columns = replace(reading.columns(tagger.columns), labels=None)
    with open_progress(quiet) as progress:
        table = reading.read(pool, columns, progress, distinct_ids=False)
        if not len(table):
            raise DataFormatError(f"{pool}: the table has no rows. Check the path.")
        found = suggest_next(tagger, table.texts, top, ids=table.ids)
    names = table.names
    for each in found:
        title = first_line(table.texts[each.place])
        copies = [names[place] for place in each.copies]
        if as_json:
            line = {
                "id": names[each.place],
                "title": title,
                "unsure": round(each.unsure, 4),
                "typical": round(each.typical, 4),
                "words": each.n_words,
                "reasons": each.reasons,
                "copies": copies,
                "labels": [
                    {"label": tag.name, "probability": round(tag.probability, 4)}
                    for tag in each.tags
                ],
            }
            typer.echo(json.dumps(line, ensure_ascii=False))
            continue
        also = f"; copies: {', '.join(map(str, copies))}" if copies else ""
        typer.echo(f"{names[each.place]}\t{title}\n\t{'; '.join(each.reasons)}{also}")
    if not quiet and not as_json:
        left_out = len(tagger.labelled_again(table.texts, table.ids))
        known = f" ({left_out:,} labelled already)" if left_out else ""
        then = "label them, then dxml learn" if found else "there is nothing to label"
        typer.echo(f"{len(found):,} of {len(table):,} texts{known}; {then}")
