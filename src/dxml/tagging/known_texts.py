"""Ids and titles of a tagger's texts and the names of its labels; checks of texts, labels and ids.

`dxml.tagging.tagger` relies on these checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.sparse import indicator
from dxml.exceptions import DataFormatError
from dxml.text.strings import pack_strings

__all__ = [
    "KnownTexts",
    "checked_ids",
    "checked_names",
    "checked_pair",
    "first_line",
    "indicator_of",
]

TITLE = 120  # characters of a title


@dataclass
class KnownTexts:
    """The labels' names, and each text's id and title; row and column are those of the model."""

    names: list[str]
    ids: list[str]
    titles: list[str]
    column: dict[str, int] = field(init=False, repr=False)
    row: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.column = {name: i for i, name in enumerate(self.names)}
        self.row = {id: i for i, id in enumerate(self.ids)}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        found: dict[str, npt.NDArray[Any]] = {}
        for what in ("names", "ids", "titles"):
            packed, ends = pack_strings(getattr(self, what))
            found |= {f"tagger.{what}": packed, f"tagger.{what}_ends": ends}
        return found

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_labels: int, n_texts: int) -> KnownTexts:
        names = arrays.strings("tagger.names", n_labels)
        ids, titles = (arrays.strings(f"tagger.{what}", n_texts) for what in ("ids", "titles"))
        known = cls(names, ids, titles)
        if len(known.column) < n_labels or len(known.row) < n_texts:
            raise ValueError("'tagger.names' and 'tagger.ids' must name nothing twice")
        return known


def first_line(text: str) -> str:
    """The title of a text."""
    line = text.strip().partition("\n")[0].strip()
    return line if len(line) <= TITLE else f"{line[: TITLE - 1].rstrip()}…"


def checked_pair(
    texts: Sequence[str], labels: Iterable[Iterable[str]]
) -> tuple[list[str], list[list[str]]]:
    """Texts and their labels' names, as many of the one as of the other."""
    if isinstance(texts, str):
        raise DataFormatError("expected a list of texts, found one text. Put it into a list.")
    texts, rows = list(texts), checked_names(labels)
    if len(texts) != len(rows):
        raise DataFormatError(
            f"there are {len(texts)} texts but {len(rows)} lists of labels. "
            "Give one list for each text."
        )
    return texts, rows


def checked_names(labels: Iterable[Iterable[str]]) -> list[list[str]]:
    """A list of names for each text."""
    rows = []
    for i, row in enumerate(labels):
        if isinstance(row, str) or not hasattr(row, "__iter__"):
            raise DataFormatError(
                f"expected a list of names as the labels of text {i}, found {row!r:.40}. "
                "Put a single label in a list of its own."
            )
        names = list(row)
        for name in names:
            if not isinstance(name, str) or not name:
                raise DataFormatError(
                    f"expected names as the labels of text {i}, found {name!r:.40}. "
                    "Write every label as a text of at least one character."
                )
        rows.append(names)
    return rows


def checked_ids(ids: Sequence[str] | None, n: int, taken: Sequence[str]) -> list[str]:
    """The ids as given, or the numbers after those taken."""
    if ids is None:
        used = set(taken)
        free = (id for id in map(str, count(len(taken))) if id not in used)
        return list(islice(free, n))
    found = [str(id) for id in ids]
    if len(found) != n:
        raise DataFormatError(f"there are {n} texts but {len(found)} ids. Give one for each text.")
    if len(set(found)) < n:
        twice = Counter(found).most_common(1)[0][0]
        raise DataFormatError(f"the id {twice!r} stands twice. Give every text another id.")
    return found


def indicator_of(rows: list[list[str]], column: Mapping[str, int]) -> sp.csr_matrix:
    """Names as a 0/1 matrix of these columns."""
    columns = np.array([column[name] for row in rows for name in row], dtype=np.int32)
    return indicator(columns, [len(row) for row in rows], len(column))
