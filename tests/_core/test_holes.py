"""Places and numbers of rows, against a mask."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dxml._core.holes import NO_HOLES


@given(st.lists(st.lists(st.integers(0, 29), max_size=5), max_size=4))
def test_places_and_numbers(dropped: list[list[int]]) -> None:
    holes, kept = NO_HOLES, np.ones(30, dtype=bool)
    for places in dropped:
        holes = holes.add(np.array(places, dtype=np.int64))
        kept[places] = False
    left = np.flatnonzero(kept)
    assert holes.kept(30).tolist() == kept.tolist() and len(holes) == 30 - len(left)
    assert holes.place_of(np.arange(len(left))).tolist() == left.tolist()
    assert holes.number_of(left).tolist() == list(range(len(left)))
    assert [place in holes for place in range(30)] == (~kept).tolist()
    assert holes.are_many(30) == (len(holes) >= 4)
