"""What is known of labels: other names, descriptions, broader labels (parents), identifiers.

`dxml.tagging._vocabulary` reads it from files.

>>> known = Thesaurus({"animals": "", "fish": ""}, {"animals": (), "fish": ("animals",)})
>>> known.info("fish").path
('animals', 'fish')
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dxml._core.arrays import Arrays
from dxml.exceptions import DataFormatError
from dxml.text._strings import pack_strings

__all__ = [
    "LabelInfo",
    "Thesaurus",
    "check_parents",
    "close_name",
    "label_text",
    "short_uris",
    "without_circles",
]


@dataclass(frozen=True)
class LabelInfo:
    """What is known of a label.

    Attributes
    ----------
    name, description : str
    parents, children : tuple of str
        The next broader and the next narrower labels.
    path : tuple of str
        From the broadest label down to this one, by the first parent of each.
    alternatives : tuple of str
        Other names of it.
    uri, notation : str
        What a vocabulary calls it; empty where it does not.
    """

    name: str
    description: str = ""
    parents: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    uri: str = ""
    notation: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)


@dataclass(frozen=True)
class Thesaurus:
    """What is known of labels, by name; no label is its own ancestor.

    Attributes
    ----------
    descriptions : dict of str to str
        Of every label; empty where there is none.
    parents : dict of str to tuple of str
        Of every label.
    alternatives : dict of str to tuple of str
        Other names, of the labels that have any.
    uris, notations : dict of str to str
        Identifiers, of the labels that have any.
    remarks : tuple of str
        What was noticed when it was read; not kept with a model.
    languages : dict of str to int
        Preferred names of each language, where its file says; not kept either.
    language : str
        That of the names, such as "en"; empty where it is not known.
    """

    descriptions: Mapping[str, str]
    parents: Mapping[str, tuple[str, ...]]
    alternatives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    uris: Mapping[str, str] = field(default_factory=dict)
    notations: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = field(default=(), compare=False)
    languages: Mapping[str, int] = field(default_factory=dict, compare=False)
    language: str = ""

    def __contains__(self, name: object) -> bool:
        return name in self.descriptions

    def __iter__(self) -> Iterator[str]:
        return iter(self.descriptions)

    def __len__(self) -> int:
        return len(self.descriptions)

    def __repr__(self) -> str:
        described = sum(map(bool, self.descriptions.values()))
        return f"Thesaurus({len(self)} labels, {described} described)"

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, parents in self.parents.items():
            for parent in parents:
                found.setdefault(parent, []).append(name)
        return found

    def ancestors(self, name: str) -> tuple[str, ...]:
        """All broader labels, each once, the nearest first."""
        found: dict[str, None] = {}
        nearest = [name]
        while nearest:
            nearest = [up for each in nearest for up in self.parents.get(each, ())]
            nearest = [up for up in dict.fromkeys(nearest) if up not in found]
            found |= dict.fromkeys(nearest)
        return tuple(found)

    def info(self, name: str) -> LabelInfo:
        """What is known of a label; of one that is not here, its name."""
        path = [name]
        while parents := self.parents.get(path[-1]):
            path.append(parents[0])
        return LabelInfo(
            name,
            self.descriptions.get(name, ""),
            self.parents.get(name, ()),
            tuple(reversed(path)),
            tuple(self._children.get(name, ())),
            self.alternatives.get(name, ()),
            self.uris.get(name, ""),
            self.notations.get(name, ""),
        )

    @cached_property
    def _other_names(self) -> dict[str, str | None]:
        """Labels by all they are called beside their names; None where several are called so."""
        found: dict[str, str | None] = {}
        for name in self:
            others = {
                *self.alternatives.get(name, ()),
                *short_uris(self.uris.get(name, "")),
                self.notations.get(name, ""),
            }
            for other in others - {""}:
                found[other] = name if found.get(other, name) == name else None
        return found

    def resolve(self, label: str) -> str | None:
        """The name of the label that is called so, by name, other name, URI or notation.

        A URI may stand in angle brackets. None where there is none, or where several are.
        """
        if label in self.descriptions:
            return label
        bare = label.removeprefix("<").removesuffix(">")
        return self._other_names.get(label, self._other_names.get(bare))

    def resolved(self, rows: Iterable[Iterable[str]]) -> list[list[str]]:
        """Rows of labels by their names, each once; labels that are not here stay."""
        return [list(dict.fromkeys(self.resolve(label) or label for label in row)) for row in rows]

    def outside(self, rows: Iterable[Iterable[str]]) -> dict[str, int]:
        """The labels that are not here, most frequent first, with the rows that carry each."""
        carried = Counter(label for row in rows for label in set(row))
        strange = {label: n for label, n in carried.items() if self.resolve(label) is None}
        return dict(sorted(strange.items(), key=lambda each: (-each[1], each[0])))

    def renamed(self, old: str, new: str) -> Thesaurus:
        """With another name for a label; the old one is another name of it."""
        return self.merged([old], new)

    def merged(self, labels: Iterable[str], into: str) -> Thesaurus:
        """With some labels as one, which their names and other names mean too.

        It keeps its description, parents and identifiers, or has those of the first of them.
        Broader links that would close a circle go.
        """
        gone = dict.fromkeys(label for label in labels if label in self and label != into)
        if not gone:
            return self
        heir = into if into in self else next(iter(gone))

        def names(rows: Iterable[str]) -> tuple[str, ...]:
            return tuple(dict.fromkeys(into if name in gone else name for name in rows))

        def kept(by_name: Mapping[str, Any]) -> dict[str, Any]:
            return {
                into if name == heir else name: value
                for name, value in by_name.items()
                if name == heir or name not in gone
            }

        parents = {name: names(ups) for name, ups in kept(self.parents).items()}
        parents[into] = tuple(up for up in parents[into] if up != into)
        others = [name for one in (heir, *gone) for name in (one, *self.alternatives.get(one, ()))]
        alternatives = kept(self.alternatives)
        alternatives[into] = tuple(name for name in dict.fromkeys(others) if name != into)
        return Thesaurus(
            kept(self.descriptions),
            without_circles(parents)[0],
            alternatives,
            kept(self.uris),
            kept(self.notations),
            language=self.language,
        )

    def without(self, label: str) -> Thesaurus:
        """Without a label; what it stood above is below its parents then."""
        ups = self.parents.get(label, ())
        parents = {
            name: tuple(dict.fromkeys(u for up in own for u in (ups if up == label else (up,))))
            for name, own in self.parents.items()
            if name != label
        }

        def kept(by_name: Mapping[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in by_name.items() if name != label}

        return Thesaurus(
            kept(self.descriptions),
            parents,
            kept(self.alternatives),
            kept(self.uris),
            kept(self.notations),
            language=self.language,
        )

    def as_texts(self, rows: Iterable[Iterable[str]], few: int) -> dict[str, str]:
        """The labels that fewer than `few` rows carry, as texts: name, other names, description.

        Those that have a name alone are left out.
        """
        carried = Counter(name for row in rows for name in row)
        found = {}
        for name, description in self.descriptions.items():
            others = ", ".join(self.alternatives.get(name, ()))
            if (description or others) and carried[name] < few:
                found[name] = "\n".join(filter(None, (name, others, description)))
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a saved model holds of it."""
        columns: dict[str, Iterable[str]] = {
            "names": self.descriptions,
            "descriptions": self.descriptions.values(),
            "parents": (up for parents in self.parents.values() for up in parents),
        }
        found: dict[str, npt.NDArray[Any]] = {"thesaurus.n_parents": _counts(self.parents.values())}
        if self.alternatives:
            others = [self.alternatives.get(name, ()) for name in self]
            found["thesaurus.n_alternatives"] = _counts(others)
            columns["alternatives"] = (other for row in others for other in row)
        for what, ids in (("uris", self.uris), ("notations", self.notations)):
            if ids:
                columns[what] = [ids.get(name, "") for name in self]
        if self.language:
            columns["language"] = [self.language]
        for what, strings in columns.items():
            packed, ends = pack_strings(strings)
            found |= {f"thesaurus.{what}": packed, f"thesaurus.{what}_ends": ends}
        return found

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Thesaurus | None:
        """The inverse of `arrays`; None where a model has no thesaurus."""
        if "thesaurus.names" not in arrays:
            return None
        names = arrays.strings("thesaurus.names")
        if len(set(names)) < len(names):
            raise ValueError("the thesaurus must name each label once")
        descriptions = arrays.strings("thesaurus.descriptions", len(names))
        parents = _listed(arrays, "parents", names)
        check_parents(parents, dict.fromkeys(names, "the thesaurus"))
        others = {}
        if "thesaurus.alternatives" in arrays:
            others = {k: v for k, v in _listed(arrays, "alternatives", names).items() if v}
        uris, notations = (_identifiers(arrays, what, names) for what in ("uris", "notations"))
        described = dict(zip(names, descriptions, strict=True))
        language = "".join(
            arrays.strings("thesaurus.language", 1) if "thesaurus.language" in arrays else ()
        )
        return cls(described, parents, others, uris, notations, language=language)


def _counts(rows: Iterable[tuple[str, ...]]) -> npt.NDArray[np.int32]:
    return np.array([len(row) for row in rows], dtype=np.int32)


def _listed(arrays: Arrays, what: str, names: list[str]) -> dict[str, tuple[str, ...]]:
    """A list of strings for each name."""
    strings = arrays.strings(f"thesaurus.{what}")
    ends = [0, *accumulate(arrays.counts(f"thesaurus.n_{what}", len(names)).tolist())]
    if ends[-1] != len(strings):
        raise ValueError(f"the thesaurus must have all {what} that it counts")
    return {name: tuple(strings[a:b]) for name, (a, b) in zip(names, pairwise(ends), strict=True)}


def _identifiers(arrays: Arrays, what: str, names: list[str]) -> dict[str, str]:
    """What the labels that have one are called."""
    if f"thesaurus.{what}" not in arrays:
        return {}
    strings = arrays.strings(f"thesaurus.{what}", len(names))
    return {name: string for name, string in zip(names, strings, strict=True) if string}


def short_uris(uri: str) -> tuple[str, ...]:
    """A URI and what it is written as for short.

    >>> short_uris("https://d-nb.info/gnd/4017102-4")
    ('https://d-nb.info/gnd/4017102-4', '4017102-4', 'gnd:4017102-4')
    """
    *before, tail = re.split("[/#]", uri)
    short = (f"{before[-1]}:{tail}",) if before and before[-1] and tail else ()
    return tuple(dict.fromkeys(filter(None, (uri, tail, *short))))


def check_parents(parents: Mapping[str, tuple[str, ...]], where: Mapping[str, str]) -> None:
    """Refuse parents that are no labels, and circles; `where` says where each label was read."""
    for name, above in parents.items():
        for up in above:
            if up not in parents:
                raise DataFormatError(
                    f"{where[name]}: the parent {up!r} of {name!r} has no row of its own"
                    f"{close_name(up, parents)}. Add a row for it, or correct the name."
                )
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        circle = error.args[1]
        raise DataFormatError(
            f"{where[circle[0]]}: {circle[0]!r} is its own ancestor ({' → '.join(circle)}). "
            "Take one of these parents away."
        ) from None


def without_circles(
    parents: Mapping[str, tuple[str, ...]],
) -> tuple[dict[str, tuple[str, ...]], int]:
    """Links up less those that lead back to where one came from, and how many these are.

    >>> without_circles({"a": ("b",), "b": ("a",)})
    ({'a': ('b',), 'b': ()}, 1)
    """
    kept: dict[str, list[str]] = {name: [] for name in parents}
    open_, done = set[str](), set[str]()
    dropped = 0
    for start in parents:
        way = [] if start in done else [(start, iter(parents[start]))]
        open_.update(name for name, _ in way)
        while way:
            name, ups = way[-1]
            up = next(ups, None)
            if up is None:
                open_.discard(name)
                done.add(name)
                way.pop()
            elif up in open_:
                dropped += 1
            else:
                kept[name].append(up)
                if up not in done:
                    open_.add(up)
                    way.append((up, iter(parents[up])))
    return {name: tuple(ups) for name, ups in kept.items()}, dropped


def close_name(name: str, known: Any) -> str:
    """The hint after an unknown label; nothing where none of the many is close."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def label_text(name: str, thesaurus: Thesaurus | None) -> str:
    """Name, description and next broader labels in one text, for a text encoder.

    >>> label_text("fish", Thesaurus({"fish": "it swims"}, {"fish": ()}))
    'fish: it swims'
    """
    if thesaurus is None:
        return name
    info = thesaurus.info(name)
    described = f"{name}: {info.description}" if info.description else name
    return f"{described} ({', '.join(info.parents)})" if info.parents else described
