"""Ids and titles of a tagger's texts and the names of its labels; checks of texts, labels and ids.

`dxml.tagging._tagger` relies on these checks.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import count, islice
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.listed import Listed, Strings
from dxml._core.sparse import indicator
from dxml._core.targets import Target, as_values, read_target
from dxml._core.validation import is_indicator
from dxml.exceptions import DataFormatError
from dxml.text._strings import pack_strings

__all__ = [
    "KnownTexts",
    "checked_ids",
    "checked_names",
    "checked_pair",
    "first_line",
    "indicator_of",
    "label_rows",
    "listed_texts",
]

TITLE = 120  # characters of a title


class KnownTexts:
    """The labels' names, and each text's id and title; row and column are those of the model.

    It never changes. What is added or dropped takes no time for the texts there are, on average.
    """

    def __init__(self, names: Iterable[str], ids: Iterable[str], titles: Iterable[str]) -> None:
        self.names = names if isinstance(names, Listed) else Listed(names)
        self.ids = ids if isinstance(ids, Listed) else Listed(ids)
        self.titles = titles if isinstance(titles, Strings) else Strings(titles)

    def add(self, names: Sequence[str], ids: Sequence[str], titles: Sequence[str]) -> KnownTexts:
        """With more labels and more texts."""
        return KnownTexts(self.names.add(names), self.ids.add(ids), self.titles.add(titles))

    def drop(self, rows: Sequence[int]) -> KnownTexts:
        """Without some of the texts; those after them move up."""
        return KnownTexts(self.names, self.ids.drop(rows), self.titles.drop(rows))

    def renamed(self, names: Sequence[str]) -> KnownTexts:
        """With other labels."""
        return KnownTexts(list(names), self.ids, self.titles)

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
        if not (known.names.are_different and known.ids.are_different):
            raise ValueError("'tagger.names' and 'tagger.ids' must name nothing twice")
        return known


def first_line(text: str) -> str:
    """The title of a text."""
    line = text.strip().partition("\n")[0].strip()
    return line if len(line) <= TITLE else f"{line[: TITLE - 1].rstrip()}…"


def listed_texts(texts: Any) -> list[str]:
    """Several texts as a list; a frame would give the names of its columns."""
    if isinstance(texts, str):
        raise DataFormatError("expected a list of texts, found one text. Put it into a list.")
    columns = getattr(texts, "columns", None)
    if columns is not None:
        names = ", ".join(repr(str(name)) for name in list(columns)[:5])
        raise DataFormatError(
            f"expected a list of texts, found a frame with the columns {names}. Give one of them, "
            "such as frame['title'], or join them to one text a row."
        )
    return list(texts)


def checked_pair(
    texts: Sequence[str], labels: Any
) -> tuple[list[str], list[list[str]], list[str], Target]:
    """Texts and their labels' names, as many of the one as of the other; then as `label_rows`."""
    texts = listed_texts(texts)
    rows, columns, target = label_rows(labels)
    if len(texts) != len(rows):
        raise DataFormatError(
            f"there are {len(texts)} texts but {len(rows)} lists of labels. "
            "Give one list for each text."
        )
    return texts, rows, columns, target


def label_rows(labels: Any) -> tuple[list[list[str]], list[str], Target]:
    """A list of names for each text, names whose order is given, and the form of the labels.

    The order of names is given by the columns of a 0/1 matrix and by the values of a 1-D array.
    """
    if labels is None:
        raise DataFormatError(
            "fit requires y to be passed, but the target y is None. Give the labels of the texts."
        )
    labels = labels if hasattr(labels, "__len__") or sp.issparse(labels) else list(labels)
    if as_values(labels) is None and not is_indicator(labels):
        return checked_names(labels), [], Target("lists", "str")
    matrix, columns, target = read_target(labels)
    names = range(matrix.shape[1]) if columns is None else columns.tolist()
    found = [_name(name if isinstance(name, str) else int(name), 0) for name in names]
    ends = zip(matrix.indptr, matrix.indptr[1:], strict=False)
    rows = [[found[label] for label in matrix.indices[start:end]] for start, end in ends]
    if target.form == "values":
        target = Target("values", "str" if isinstance(names[0], str) else "int64")
    return rows, found, target


def checked_names(labels: Iterable[Iterable[str]]) -> list[list[str]]:
    """A list of names for each text; whole numbers are names too."""
    rows = []
    for i, row in enumerate(labels):
        if isinstance(row, str) or not hasattr(row, "__iter__"):
            raise DataFormatError(
                f"expected a list of names as the labels of text {i}, found {row!r:.40}. "
                "Put a single label in a list of its own."
            )
        rows.append([_name(label, i) for label in row])
    return rows


def _name(label: Any, text: int) -> str:
    """A label as a name: a text in Unicode's normal form, or a whole number as its digits."""
    if hasattr(label, "__index__") and not isinstance(label, bool):
        return str(int(label))
    if not isinstance(label, str) or not label:
        raise DataFormatError(
            f"expected names or whole numbers as the labels of text {text}, found {label!r:.40}. "
            "Write every label as a text of at least one character."
        )
    return str(unicodedata.normalize("NFC", label))


def checked_ids(ids: Sequence[str] | None, n: int, taken: Collection[str]) -> list[str]:
    """The ids as given, or the numbers after those taken."""
    if ids is None:
        free = (id for id in map(str, count(len(taken))) if id not in taken)
        return list(islice(free, n))
    found = [str(id) for id in ids]
    if len(found) != n:
        raise DataFormatError(f"there are {n} texts but {len(found)} ids. Give one for each text.")
    if len(set(found)) < n:
        twice = Counter(found).most_common(1)[0][0]
        raise DataFormatError(f"the id {twice!r} stands twice. Give every text another id.")
    return found


def indicator_of(rows: list[list[str]], names: Listed, more: Sequence[str] = ()) -> sp.csr_matrix:
    """Names as a 0/1 matrix of the columns that have them; `more` are names after the others."""
    later = {name: len(names) + i for i, name in enumerate(more)}
    places = (later[name] if name in later else names.place(name) for row in rows for name in row)
    columns = np.array(list(places), dtype=np.int32)
    return indicator(columns, [len(row) for row in rows], len(names) + len(later))
