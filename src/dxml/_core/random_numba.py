"""Random numbers inside compiled loops; the state is an argument, so threads never share one.

Two generators of 64 bits: splitmix64 (Steele, Lea & Flood, OOPSLA 2014), which adds a constant to
its state and mixes the sum, and xorshift64* (Marsaglia, 2003; Vigna, 2016), whose state is never 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dxml._core.compiled import compiled

__all__ = [
    "GOLDEN",
    "below",
    "mix",
    "next_bits",
    "seeded",
    "shuffle",
    "star",
    "unit",
    "weighted",
    "xorshift",
]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ divided by the golden ratio

State = npt.NDArray[np.uint64]


@compiled()
def mix(bits: np.uint64) -> np.uint64:
    """The output function of splitmix64."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@compiled()
def next_bits(state: State) -> np.uint64:
    """The next 64 bits of a splitmix64 generator whose state is ``state[0]``."""
    state[0] += GOLDEN
    return mix(state[0])


@compiled()
def xorshift(state: np.uint64) -> np.uint64:
    """The state of an xorshift64* generator after `state`."""
    state ^= state >> np.uint64(12)
    state ^= state << np.uint64(25)
    state ^= state >> np.uint64(27)
    return state


@compiled()
def star(state: np.uint64) -> np.uint64:
    """The 64 bits that an xorshift64* generator gives in `state`."""
    return state * np.uint64(2685821657736338717)


@compiled()
def seeded(seed: np.uint64, number: int) -> np.uint64:
    """The first state of the `number`-th of many xorshift64* generators; it is odd."""
    return (seed + np.uint64(number + 1)) * GOLDEN | np.uint64(1)


@compiled()
def unit(bits: np.uint64) -> float:
    """A float64 in [0, 1), of the first 53 bits."""
    return float(bits >> np.uint64(11)) * 2.0**-53


@compiled()
def below(bits: np.uint64, n: int) -> int:
    """A whole number in 0..n - 1, all alike to within n / 2⁵³."""
    return min(int(unit(bits) * n), n - 1)


@compiled()
def weighted(u: float, ends: npt.NDArray[np.float64], first: int, stop: int) -> int:
    """A number in first..stop - 1 for a uniform one in [0, 1); `ends` are cumulative weights."""
    low = ends[first - 1] if first > 0 else 0.0
    at = low + u * (ends[stop - 1] - low)
    place: int = first + np.searchsorted(ends[first:stop], at, side="right")
    return min(place, stop - 1)


@compiled()
def shuffle(values: npt.NDArray[Any], size: int, state: np.uint64) -> np.uint64:
    """Put values[:size] into a random order, by xorshift64*; returns the state after it."""
    for i in range(size - 1, 0, -1):
        state = xorshift(state)
        j = np.int64((star(state) >> np.uint64(33)) % np.uint64(i + 1))
        values[i], values[j] = values[j], values[i]
    return state
