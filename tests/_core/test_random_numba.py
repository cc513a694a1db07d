"""Random numbers inside compiled loops, against their published values and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dxml._core.random_numba import (
    below,
    next_bits,
    seeded,
    shuffle,
    star,
    unit,
    weighted,
    xorshift,
)

LAST = np.uint64(2**64 - 1)


def test_splitmix64() -> None:
    state = np.array([1234567], np.uint64)
    assert [int(next_bits(state)) for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_xorshift64_star_in_whole_numbers() -> None:
    state = 88172645463325252
    compiled = np.uint64(state)
    for _ in range(5):
        state ^= state >> 12
        state ^= state << 25 & (2**64 - 1)
        state ^= state >> 27
        compiled = np.uint64(xorshift(compiled))
        assert int(compiled) == state
        assert int(star(compiled)) == state * 2685821657736338717 % 2**64


def test_generators_of_many_numbers_are_odd_and_differ() -> None:
    states = {int(seeded(np.uint64(3), number)) for number in range(100)}
    assert len(states) == 100 and all(state % 2 for state in states)


@pytest.mark.parametrize(("bits", "value"), [(0, 0.0), (2**63, 0.5), (2**62, 0.25)])
def test_unit_by_hand(bits: int, value: float) -> None:
    assert unit(np.uint64(bits)) == value


def test_below_never_reaches_n() -> None:
    assert unit(LAST) < 1
    for n in (1, 7, 2**40):
        assert below(LAST, n) == n - 1 and below(np.uint64(0), n) == 0
    assert below(np.uint64(2**63), 7) == 3


def test_a_shuffle_keeps_the_rest_and_finds_every_order() -> None:
    orders = set()
    state = np.uint64(seeded(np.uint64(0), 0))
    for _ in range(200):
        values = np.arange(5)
        state = np.uint64(shuffle(values, 3, state))
        assert values[3:].tolist() == [3, 4] and sorted(values) == [0, 1, 2, 3, 4]
        orders.add(tuple(values[:3].tolist()))
    assert len(orders) == 6


def test_weighted_by_hand() -> None:
    """Weights 1, 0, 3, 4, of which all or the middle two are drawn from."""
    ends = np.cumsum([1.0, 0, 3, 4])
    assert [weighted(u, ends, 0, 4) for u in (0, 0.124, 0.126, 0.49, 0.51, 1)] == [0, 0, 2, 2, 3, 3]
    assert [weighted(u, ends, 1, 3) for u in (0, 0.5, 1)] == [2, 2, 2]
