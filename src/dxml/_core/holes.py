"""Rows that were dropped but still lie in arrays, until enough of them are worth a copy.

A row that is dropped from the middle of an array moves all later ones. Where arrays are large it is
noted as a hole instead. Rows are then counted in two ways: by their place in the arrays, and by
their number among the rows that are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["NO_HOLES", "Holes"]

MOST = 8  # one row in so many may be a hole

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Holes:
    """Places of dropped rows.

    Attributes
    ----------
    places : int64 array
        In rising order, each once.

    Examples
    --------
    >>> holes = NO_HOLES.add(np.array([1, 2]))
    >>> holes.place_of(np.array([0, 1, 2])).tolist()
    [0, 3, 4]
    >>> holes.number_of(np.array([0, 3, 4])).tolist()
    [0, 1, 2]
    """

    places: Places

    def __len__(self) -> int:
        return len(self.places)

    def __contains__(self, place: int) -> bool:
        at = int(np.searchsorted(self.places, place))
        return at < len(self.places) and int(self.places[at]) == place

    def add(self, places: npt.NDArray[np.integer[Any]]) -> Holes:
        """With more of them."""
        new = np.setdiff1d(places, self.places)
        return Holes(np.insert(self.places, np.searchsorted(self.places, new), new))

    def are_many(self, n: int) -> bool:
        """Whether arrays of n rows should be copied without them."""
        return MOST * len(self) > n

    def place_of(self, numbers: npt.ArrayLike) -> Places:
        """Where the rows of these numbers lie."""
        found = np.asarray(numbers, dtype=np.int64)
        return found + np.searchsorted(self._left_before, found, side="right")

    def number_of(self, places: npt.ArrayLike) -> Places:
        """The numbers of the rows at these places, none of which is a hole."""
        found = np.asarray(places, dtype=np.int64)
        return found - np.searchsorted(self.places, found)

    def kept(self, n: int) -> npt.NDArray[np.bool_]:
        """Which of n rows are left."""
        found = np.ones(n, dtype=bool)
        found[self.places] = False
        return found

    @cached_property
    def _left_before(self) -> Places:
        """Rows that are left before each hole."""
        return self.places - np.arange(len(self.places))


NO_HOLES = Holes(np.empty(0, dtype=np.int64))
