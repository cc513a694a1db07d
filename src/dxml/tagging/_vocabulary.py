"""Read what is known of labels: a table, a list of URIs and names, or a SKOS vocabulary.

>>> known = read_thesaurus({"name": ["animals", "fish"], "parents": ["", "animals"]})
>>> known.parents["fish"]
('animals',)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dxml.exceptions import DataFormatError, advise
from dxml.tagging._skos import is_rdf, read_skos
from dxml.tagging._thesaurus import Thesaurus, check_parents, short_uris
from dxml.text._bad_rows import Row
from dxml.text._decoding import decoder_of, lines_of, undecoded
from dxml.text._files import open_text, plain_suffix
from dxml.text._tables import Cells, WrongType, open_rows, split_labels

__all__ = ["read_thesaurus"]

NAMES = ("name", "label")
"""What the column of the names is called, where a language follows it."""


def read_thesaurus(
    source: Any,
    *,
    encoding: str = "utf-8",
    separator: str | None = None,
    language: str | None = None,
) -> Thesaurus:
    """Read names, other names, descriptions and parents of labels.

    Parameters
    ----------
    source : path, frame, dict of lists or Thesaurus
        A table, as `dxml.text.read_table` takes them; a thesaurus is given back. The column
        ``name`` must be there; ``description``, ``parents`` (or ``parent``), ``alternatives``,
        ``uri`` and ``notation`` may be. Parents and alternatives are lists, or texts with a
        separator. A file of RDF (.ttl, .rdf, .xml, .nt) is a SKOS vocabulary, and a .tsv
        whose lines begin with a URI has URI, name and perhaps a notation.
    encoding : str
        Of a text file.
    separator : str, optional
        Between parents; by default ';' if it stands anywhere in the column, else '|'.
    language : str, optional
        That of the names, such as "en"; "en,de" takes German names as other names too. Tables have
        a column a language, such as ``name_en``. By default: of a table the columns without a
        language, of RDF the language that most concepts have a name in.

    Raises
    ------
    DataFormatError
        With the line: a name stands twice, a parent has no line, or a label is its own ancestor.
    """
    if isinstance(source, Thesaurus):
        return source
    languages = [tag.strip() for tag in (language or "").split(",") if tag.strip()]
    if isinstance(source, str | Path):
        path = Path(source)
        if is_rdf(path):
            return read_skos(path, languages)
        if plain_suffix(path) == ".tsv" and _begins_with_uri(path):
            return _from_rows(_uri_lines(path, encoding), separator)
    known = _from_rows(_table_rows(source, encoding, languages), separator)
    return replace(known, language=languages[0]) if languages else known


def _begins_with_uri(path: Path) -> bool:
    with open_text(path) as file:
        return file.starts_with((b"<", b"http://", b"https://", b"urn:"))


def _uri_lines(path: Path, encoding: str) -> Iterator[tuple[str, Row]]:
    """URI, name and notation of each line."""
    decoder = decoder_of(encoding)
    with open_text(path) as file:
        for line in lines_of(file, decoder):
            if problem := undecoded(line, encoding):
                file.fail(problem, file.line)
            uri, *cells = line.removesuffix("\r").split("\t")
            if not cells:
                found = f"expected a URI, a tab and a name, found {line!r:.60}. Correct the line"
                file.fail(found, file.line)
            cells += [""]
            row = {"uri": uri.strip("<> "), "name": cells[0], "notation": cells[1]}
            yield f"{path} line {file.line}", row


def _table_rows(source: Any, encoding: str, languages: list[str]) -> Iterator[tuple[str, Row]]:
    """The rows of a table, by the columns of the wanted languages."""
    plain = ("description", "parents", "parent", "alternatives", "uri", "notation")
    if not languages:
        yield from open_rows(source, ("name",), plain, encoding=encoding)
        return
    by_language = [
        f"{what}_{tag}" for tag in languages for what in (*NAMES, "alternatives", "description")
    ]
    seen = False
    for where, row in open_rows(source, (), (*plain, *by_language), encoding=encoding):
        named = [_first(row, *(f"{name}_{tag}" for name in NAMES)) for tag in languages]
        seen = seen or named[0] is not None
        descriptions = (f"description_{tag}" for tag in languages)
        others: list[str] = []
        for column in ("alternatives", *(f"alternatives_{tag}" for tag in languages)):
            others += split_labels([row.get(column) or ()], None)[0]
        name = next(filter(None, named), "")
        yield (
            where,
            row
            | {
                "name": name,
                "alternatives": [*others, *(each for each in named if each and each != name)],
                "description": _first(row, *descriptions, "description"),
            },
        )
    if not seen:
        what = advise("language=", "--language")
        raise DataFormatError(
            f"{source if isinstance(source, str | Path) else 'the table'}: there is no column "
            f"'name_{languages[0]}'. Add it, or leave {what} out."
        )


def _first(row: Mapping[str, Any], *columns: str) -> Any:
    """What stands in the first of these columns that has anything."""
    return next((row[column] for column in columns if row.get(column)), None)


def _from_rows(rows: Iterator[tuple[str, Row]], separator: str | None) -> Thesaurus:
    listed = separator is None
    cells = Cells(("description",), "parents", "name", listed=listed)
    extra = Cells(("uri", "notation"), "alternatives", None, listed=listed)
    ids: dict[str, list[str]] = {"uri": [], "notation": []}
    places: list[str] = []
    for where, row in rows:
        try:
            cells.add({**row, "parents": row.get("parents", row.get("parent"))})
            extra.add(row)
        except WrongType as error:
            raise DataFormatError(f"{where}: {error}.") from None
        places.append(where)
        for what, found in ids.items():
            found.append((row.get(what) or "").strip())
    written = [name.strip() for name in cells.ids]
    names = _distinct(written, ids["uri"])
    first = dict(zip(reversed(names), reversed(places), strict=True))
    _check_names(names, places, first)
    others = split_labels(extra.labels, separator)
    parents = split_labels(cells.labels, separator)
    if any(ids["uri"]):
        parents = _by_name(parents, names, ids["uri"])
    above = dict(zip(names, parents, strict=True))
    check_parents(above, first)
    renamed = sum(a != b for a, b in zip(written, names, strict=True))
    return Thesaurus(
        dict(zip(names, cells.texts, strict=True)),
        above,
        {name: row for name, row in zip(names, others, strict=True) if row},
        {name: uri for name, uri in zip(names, ids["uri"], strict=True) if uri},
        {name: code for name, code in zip(names, ids["notation"], strict=True) if code},
        (f"names that others have too, told apart by identifier: {renamed:,}",) if renamed else (),
    )


def _distinct(names: Sequence[str], uris: Sequence[str]) -> list[str]:
    """Names that several labels have, with the last part of the URI; without one they stay."""
    often = Counter(names)
    found = []
    for name, uri in zip(names, uris, strict=True):
        tail = short_uris(uri)[1:2]
        found.append(f"{name} ({tail[0]})" if tail and often[name] > 1 else name)
    return found


def _by_name(
    parents: Sequence[tuple[str, ...]], names: Sequence[str], uris: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    """Parents that are given by their URI, by name."""
    of = {uri: name for name, uri in zip(names, uris, strict=True) if uri}
    return tuple(tuple(of.get(up, up) for up in row) for row in parents)


def _check_names(names: list[str], places: list[str], first: Mapping[str, str]) -> None:
    for name, place in zip(names, places, strict=True):
        if not name:
            raise DataFormatError(f"{place}: the name is empty. Name the label, or drop the row.")
        if first[name] != place:
            raise DataFormatError(
                f"{place}: the label {name!r} stands here again, first at {first[name]}. "
                "Keep one of them."
            )
