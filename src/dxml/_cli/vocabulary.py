"""``dxml vocabulary``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dxml._cli._tables import ENCODING, LANGUAGE, SEPARATOR

if TYPE_CHECKING:
    from dxml.tagging._thesaurus import Thesaurus

__all__ = ["vocabulary"]


def vocabulary(
    file: Path = typer.Argument(
        ..., metavar="FILE", help="A table of labels, or SKOS: Turtle, RDF/XML."
    ),
    language: str | None = LANGUAGE,
    label_separator: str | None = SEPARATOR,
    encoding: str = ENCODING,
    as_json: bool = typer.Option(False, "--json", help="The counts as a JSON object."),
) -> None:
    """What is in a vocabulary: labels, other names, languages, levels.

    dxml train --label-info FILE takes what is shown here.
    """
    from dxml.tagging._vocabulary import read_thesaurus

    known = read_thesaurus(file, encoding=encoding, separator=label_separator, language=language)
    counts = _counts(known)
    if as_json:
        typer.echo(json.dumps({**counts, "remarks": known.remarks}, ensure_ascii=False))
        return
    languages = counts.pop("languages")
    for what, count in counts.items():
        typer.echo(f"{what.replace('_', ' ')}: {count:,}")
    if languages:
        said = ", ".join(f"{tag or 'none'} {n:,}" for tag, n in languages.items())
        typer.echo(f"names by language: {said}")
    for remark in known.remarks:
        typer.echo(remark)


def _counts(known: Thesaurus) -> dict[str, Any]:
    """Numbers of what it holds; levels are counted by the longest way up."""
    levels: dict[str, int] = {}
    for name in _parents_first(known):
        levels[name] = 1 + max((levels[up] for up in known.parents[name]), default=0)
    return {
        "labels": len(known),
        "other_names": sum(map(len, known.alternatives.values())),
        "described": sum(map(bool, known.descriptions.values())),
        "with_a_broader_label": sum(map(bool, known.parents.values())),
        "at_the_top": sum(not parents for parents in known.parents.values()),
        "levels": max(levels.values(), default=0),
        "with_a_uri": len(known.uris),
        "with_a_notation": len(known.notations),
        "languages": dict(known.languages),
    }


def _parents_first(known: Thesaurus) -> list[str]:
    from graphlib import TopologicalSorter

    return list(TopologicalSorter(known.parents).static_order())
