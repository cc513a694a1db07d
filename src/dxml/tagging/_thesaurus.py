"""Descriptions and broader labels (parents) of labels, read from a table.

>>> known = read_thesaurus({"name": ["animals", "fish"], "parents": ["", "animals"]})
>>> known.info("fish").path
('animals', 'fish')
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dxml._core.arrays import Arrays
from dxml.exceptions import DataFormatError
from dxml.text._strings import pack_strings
from dxml.text._tables import Cells, WrongType, open_rows, split_labels

__all__ = ["LabelInfo", "Thesaurus", "close_name", "label_text", "read_thesaurus"]


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
    """

    name: str
    description: str = ""
    parents: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    children: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)


@dataclass(frozen=True)
class Thesaurus:
    """Descriptions and parents of labels, by name; no label is its own ancestor.

    Attributes
    ----------
    descriptions : dict of str to str
        Of every label; empty where there is none.
    parents : dict of str to tuple of str
        Of every label.
    """

    descriptions: Mapping[str, str]
    parents: Mapping[str, tuple[str, ...]]

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
        )

    def as_texts(self, rows: Iterable[Iterable[str]], few: int) -> dict[str, str]:
        """The described labels that fewer than `few` rows carry: name and description as a text."""
        carried = Counter(name for row in rows for name in row)
        return {
            name: f"{name}\n{description}"
            for name, description in self.descriptions.items()
            if description and carried[name] < few
        }

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a saved model holds of it."""
        counts = [len(parents) for parents in self.parents.values()]
        found: dict[str, npt.NDArray[Any]] = {
            "thesaurus.n_parents": np.array(counts, dtype=np.int32)
        }
        columns = {
            "names": self.descriptions,
            "descriptions": self.descriptions.values(),
            "parents": (up for parents in self.parents.values() for up in parents),
        }
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
        descriptions = arrays.strings("thesaurus.descriptions", len(names))
        ups = arrays.strings("thesaurus.parents")
        counts = arrays.counts("thesaurus.n_parents", len(names)).tolist()
        ends = [0, *accumulate(counts)]
        if ends[-1] != len(ups) or len(set(names)) < len(names):
            raise ValueError("the thesaurus must name each label once, and all of its parents")
        rows = (tuple(ups[a:b]) for a, b in pairwise(ends))
        parents = dict(zip(names, rows, strict=True))
        _check_parents(parents, dict.fromkeys(names, "the thesaurus"))
        return cls(dict(zip(names, descriptions, strict=True)), parents)


def read_thesaurus(
    source: Any, *, encoding: str = "utf-8", separator: str | None = None
) -> Thesaurus:
    """Read descriptions and parents of labels.

    Parameters
    ----------
    source : path, frame, dict of lists or Thesaurus
        As `dxml.text.read_table` takes them; a thesaurus is given back. The column ``name`` must be
        there; ``description`` and ``parents`` (or ``parent``) may be. Parents are a list, or a text
        with a separator.
    encoding : str
        Of a text file.
    separator : str, optional
        Between parents; by default ';' if it stands anywhere in the column, else '|'.

    Raises
    ------
    DataFormatError
        With the line: a name stands twice, a parent has no line, or a label is its own ancestor.
    """
    if isinstance(source, Thesaurus):
        return source
    cells = Cells(("description",), "parents", "name", listed=separator is None)
    places: list[str] = []
    rows = open_rows(source, ("name",), ("description", "parents", "parent"), encoding=encoding)
    for where, row in rows:
        try:
            cells.add({**row, "parents": row.get("parents", row.get("parent"))})
        except WrongType as error:
            raise DataFormatError(f"{where}: {error}.") from None
        places.append(where)
    names = [name.strip() for name in cells.ids]
    parents = dict(zip(names, split_labels(cells.labels, separator), strict=True))
    first = dict(zip(reversed(names), reversed(places), strict=True))
    _check_names(names, places, first)
    _check_parents(parents, first)
    return Thesaurus(dict(zip(names, cells.texts, strict=True)), parents)


def _check_names(names: list[str], places: list[str], first: Mapping[str, str]) -> None:
    for name, place in zip(names, places, strict=True):
        if not name:
            raise DataFormatError(f"{place}: the name is empty. Name the label, or drop the row.")
        if first[name] != place:
            raise DataFormatError(
                f"{place}: the label {name!r} stands here again, first at {first[name]}. "
                "Keep one of them."
            )


def _check_parents(parents: Mapping[str, tuple[str, ...]], where: Mapping[str, str]) -> None:
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


def close_name(name: str, known: Any) -> str:
    """The hint after an unknown label; nothing where none of the many is close."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def label_text(name: str, thesaurus: Thesaurus | None) -> str:
    """Name, description and next broader labels in one text, for a text encoder.

    >>> label_text("fish", read_thesaurus({"name": ["fish"], "description": ["it swims"]}))
    'fish: it swims'
    """
    if thesaurus is None:
        return name
    info = thesaurus.info(name)
    described = f"{name}: {info.description}" if info.description else name
    return f"{described} ({', '.join(info.parents)})" if info.parents else described
