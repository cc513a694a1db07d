"""Strings in their order, where strings come and go; `Listed` also knows the place of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import islice
from typing import Self, overload

import numpy as np

from dxml._core.holes import NO_HOLES

__all__ = ["Listed", "Strings"]


class Strings(Sequence[str]):
    """Strings in their order; it never changes.

    What is added is written behind its strings into a list that both share, so that it takes no
    time for the strings there are. If others were added there already, the list is copied. What is
    dropped stays in the list as a hole until one string in eight is one.
    """

    def __init__(self, strings: Iterable[str]) -> None:
        self._strings = list(strings)
        self._stored = len(self._strings)
        self._holes = NO_HOLES

    def __len__(self) -> int:
        return self._stored - len(self._holes)

    def __iter__(self) -> Iterator[str]:
        strings = islice(self._strings, self._stored)
        if not len(self._holes):
            return strings
        kept = self._holes.kept(self._stored).tolist()
        return (string for string, stays in zip(strings, kept, strict=True) if stays)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return list(self)[place]
        number = range(len(self))[place]
        return self._strings[int(self._holes.place_of(number)) if len(self._holes) else number]

    def add(self, more: Sequence[str]) -> Self:
        """With more strings after the others."""
        if self._stored < len(self._strings):
            return type(self)([*self, *more])
        self._strings.extend(more)
        grown = copy(self)
        grown._stored = len(self._strings)
        return grown

    def drop(self, places: Iterable[int]) -> Self:
        """Without the strings at some places; those after them move up."""
        fewer = copy(self)
        fewer._holes = self._holes.add(self._holes.place_of(np.fromiter(places, dtype=np.int64)))
        return type(self)(fewer) if fewer._holes.are_many(self._stored) else fewer


class Listed(Strings):
    """Strings in their order, and the place of each.

    >>> first = Listed(["a", "b", "c"])
    >>> later = first.add(["d", "b"]).drop([1])
    >>> list(first), list(later), first.place("b"), later.place("b")
    (['a', 'b', 'c'], ['a', 'c', 'd', 'b'], 1, 3)
    """

    def __init__(self, strings: Iterable[str]) -> None:
        super().__init__(strings)
        self._places = {string: place for place, string in enumerate(self._strings)}
        self._earlier: dict[int, int] = {}  # place of a string → its place before that

    def __contains__(self, string: object) -> bool:
        return isinstance(string, str) and self.place(string) is not None

    @property
    def are_different(self) -> bool:
        """Whether none of the strings that it was made with stands twice."""
        return len(self._places) == len(self._strings)

    def place(self, string: str) -> int | None:
        """Where a string is, the last time; None where it is not."""
        stored = self._places.get(string)
        while stored is not None and stored >= self._stored:  # added to a later list
            stored = self._earlier.get(stored)
        if stored is None or not len(self._holes):
            return stored
        return None if stored in self._holes else int(self._holes.number_of(stored))

    def add(self, more: Sequence[str]) -> Self:
        """With more strings after the others; a string that is there has its new place then."""
        shared = self._stored == len(self._strings)
        grown = super().add(more)
        if shared:
            for place, string in enumerate(more, self._stored):
                if (before := self._places.get(string)) is not None:
                    self._earlier[place] = before
                self._places[string] = place
        return grown
