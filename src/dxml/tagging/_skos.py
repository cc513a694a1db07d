"""SKOS vocabularies: concepts of an RDF file, their names by language, broader and narrower ones.

Alistair Miles and Sean Bechhofer, *SKOS Simple Knowledge Organization System Reference*, W3C, 2009.
Names may also stand in resources of their own (SKOS-XL). Deprecated concepts (``owl:deprecated``)
are left out. So are broader links that close a circle, which published vocabularies have.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from dxml.exceptions import DataFormatError, advise
from dxml.tagging._thesaurus import Thesaurus, short_uris, without_circles
from dxml.text._files import open_text, plain_suffix

__all__ = ["is_rdf", "read_skos"]

FORMATS = {
    ".ttl": "turtle",
    ".rdf": "xml",
    ".xml": "xml",
    ".owl": "xml",
    ".nt": "nt",
    ".n3": "n3",
}
_NESTED = re.compile(rb"""<!ENTITY\s+(%|[^"'>]*("[^"]*&|'[^']*&|\sSYSTEM\s|\sPUBLIC\s))""")
"""In the bytes of XML, those of UTF-16 without their zeros; an entity of a plain text is none."""
SKOS = "http://www.w3.org/2004/02/skos/core#"
SKOS_XL = "http://www.w3.org/2008/05/skos-xl#"
DEPRECATED = "http://www.w3.org/2002/07/owl#deprecated"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

Texts = dict[str, list[str]]
"""By language; "" where none is said."""


@dataclass
class _Concept:
    uri: str
    names: Texts = field(default_factory=dict)
    others: Texts = field(default_factory=dict)
    descriptions: Texts = field(default_factory=dict)
    notation: str = ""
    broader: list[str] = field(default_factory=list)


def is_rdf(path: Path) -> bool:
    """Whether a file is one of RDF, by its suffix."""
    return plain_suffix(path) in FORMATS


def read_skos(path: Path, languages: Sequence[str] = ()) -> Thesaurus:
    """The concepts of a file.

    Parameters
    ----------
    languages : sequence of str
        The first is that of the names; names in the others are other names. By default the one
        that most concepts have a name in, English before others that have as many.
    """
    concepts, deprecated = _concepts(_parsed(path))
    if not concepts:
        raise DataFormatError(
            f"{path}: has no skos:Concept. Give a SKOS vocabulary, or a table of labels."
        )
    spoken = Counter(tag for concept in concepts for tag in concept.names)
    wanted = list(languages) or [min(spoken, key=lambda tag: (-spoken[tag], tag != "en", tag))]
    if not any(_in(wanted[0], concept.names) for concept in concepts):
        option = advise("language=", "--language")
        known = ", ".join(f"{tag or 'none'} ({n:,})" for tag, n in spoken.most_common(20))
        raise DataFormatError(
            f"{path}: no concept has a name in {wanted[0]!r}. Its languages are {known}; choose "
            f"one with {option}."
        )
    return _thesaurus(concepts, deprecated, wanted, spoken)


def _parsed(path: Path) -> Any:
    """The graph of a file."""
    try:
        rdflib = import_module("rdflib")
    except ImportError:
        raise DataFormatError(
            f"{path}: reading SKOS needs rdflib. Install it with: pip install 'dxml[skos]'."
        ) from None
    with open_text(path) as file:
        text = b"".join(file.blocks())
    if FORMATS[plain_suffix(path)] == "xml" and _NESTED.search(text.replace(b"\0", b"")):
        raise DataFormatError(
            f"{path}: has an entity that is made of others, or of another file, and may expand "
            "without end. Write what it stands for."
        )
    try:
        return rdflib.Graph().parse(data=text, format=FORMATS[plain_suffix(path)])
    except Exception as error:  # every parser of rdflib has errors of its own
        said = " ".join(str(error).split())
        raise DataFormatError(
            f"{path}: cannot be read as RDF ({said:.200}). Write or download it again."
        ) from error


def _concepts(graph: Any) -> tuple[list[_Concept], int]:
    """The concepts in the order of their URIs, and how many deprecated ones were left out."""
    from rdflib import URIRef

    found: dict[str, _Concept] = {}
    deprecated = 0
    for subject in sorted(set(graph.subjects(URIRef(TYPE), URIRef(f"{SKOS}Concept")))):
        marks = {str(value).lower() for value in _objects(graph, subject, DEPRECATED)}
        if marks & {"true", "1"}:
            deprecated += 1
            continue
        found[str(subject)] = concept = _Concept(str(subject))
        concept.names = _texts(graph, subject, "prefLabel")
        concept.others = _texts(graph, subject, "altLabel", "hiddenLabel")
        for what in ("definition", "scopeNote"):
            concept.descriptions = concept.descriptions or _texts(graph, subject, what)
        concept.notation = min(map(str, _objects(graph, subject, f"{SKOS}notation")), default="")
        concept.broader = [str(up) for up in _objects(graph, subject, f"{SKOS}broader")]
    for up, down in graph.subject_objects(URIRef(f"{SKOS}narrower")):
        if str(down) in found:
            found[str(down)].broader.append(str(up))
    named = [concept for concept in found.values() if concept.names]
    known = {concept.uri for concept in named}
    for concept in named:
        concept.broader = sorted(known.intersection(concept.broader) - {concept.uri})
    return named, deprecated


def _objects(graph: Any, subject: Any, predicate: str) -> Iterator[Any]:
    from rdflib import URIRef

    yield from graph.objects(subject, URIRef(predicate))


def _texts(graph: Any, subject: Any, *properties: str) -> Texts:
    """Literals by language, in the order of the alphabet; those of SKOS-XL are one step away."""
    literals: list[Any] = []
    for name in properties:
        literals += _objects(graph, subject, f"{SKOS}{name}")
        for resource in _objects(graph, subject, f"{SKOS_XL}{name}"):
            literals += _objects(graph, resource, f"{SKOS_XL}literalForm")
    found: dict[str, set[str]] = {}
    for literal in literals:
        text = unicodedata.normalize("NFC", " ".join(str(literal).split()))
        if text:
            found.setdefault(getattr(literal, "language", None) or "", set()).add(text)
    return {tag: sorted(texts) for tag, texts in sorted(found.items())}


def _in(language: str, texts: Texts) -> list[str]:
    """The texts in a language; "en" takes "en-GB" where there is no plain "en"."""
    if language in texts:
        return texts[language]
    parts = [own for tag, own in texts.items() if tag.partition("-")[0] == language]
    return parts[0] if parts else []


def _thesaurus(
    concepts: list[_Concept], deprecated: int, wanted: Sequence[str], spoken: Counter[str]
) -> Thesaurus:
    """The concepts by their names in a language, or else in any."""
    order = [*wanted, *(tag for tag, _ in spoken.most_common() if tag not in wanted)]
    named = [_preferred(concept, order) for concept in concepts]
    foreign = sum(not _in(wanted[0], concept.names) for concept in concepts)
    names, renamed = _distinct(named, concepts)
    of = {concept.uri: name for concept, name in zip(concepts, names, strict=True)}
    broader = {concept.uri: tuple(concept.broader) for concept in concepts}
    broader, circles = without_circles(broader)
    others = {}
    for concept, name, plain in zip(concepts, names, named, strict=True):
        called = [
            text
            for tag in wanted
            for texts in (concept.names, concept.others)
            for text in _in(tag, texts)
        ]
        if kept := tuple(dict.fromkeys(text for text in called if text not in (plain, name))):
            others[name] = kept
    remarks = {
        "deprecated concepts, left out": deprecated,
        f"concepts without a name in {wanted[0]!r}, called by another language's": foreign,
        "names that others have too, told apart by notation or identifier": renamed,
        "broader links that closed a circle, left out": circles,
    }
    return Thesaurus(
        {name: _described(c, wanted) for c, name in zip(concepts, names, strict=True)},
        {of[uri]: tuple(of[up] for up in ups) for uri, ups in broader.items()},
        others,
        {name: uri for uri, name in of.items()},
        {of[concept.uri]: concept.notation for concept in concepts if concept.notation},
        tuple(f"{what}: {n:,}" for what, n in remarks.items() if n),
        dict(spoken.most_common()),
        wanted[0],
    )


def _preferred(concept: _Concept, order: Iterable[str]) -> str:
    """The name in the first language that it has one in."""
    return next(found[0] for tag in order if (found := _in(tag, concept.names)))


def _described(concept: _Concept, wanted: Sequence[str]) -> str:
    """The description in the first wanted language that has one; else one without a language."""
    found = (_in(tag, concept.descriptions) for tag in (*wanted, ""))
    return next((texts[0] for texts in found if texts), "")


def _distinct(named: list[str], concepts: list[_Concept]) -> tuple[list[str], int]:
    """Names that several concepts have, with what tells them apart, and how many these are."""
    often, taken = Counter(named), set(named)
    names = []
    for name, concept in zip(named, concepts, strict=True):
        if often[name] > 1:
            marks = [concept.notation, *reversed(short_uris(concept.uri)[:2])]
            made = [f"{name} ({mark})" for mark in marks if mark]
            name = next(one for one in made if one not in taken)
            taken.add(name)
        names.append(name)
    return names, sum(a != b for a, b in zip(named, names, strict=True))
