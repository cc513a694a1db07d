"""Randomness is an argument: one seed, an independent generator for each named stage."""

from __future__ import annotations

import zlib

import numpy as np

__all__ = ["spawn", "spawn_seed"]


def spawn_seed(random_state: int | None, name: str) -> int:
    """A 63-bit seed for the stage called `name`; other stages do not change it.

    >>> spawn_seed(0, "walks") == spawn_seed(0, "walks")
    True
    >>> spawn_seed(0, "walks") == spawn_seed(0, "encoder")
    False
    """
    if random_state is None:
        entropy = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    else:
        entropy = int(random_state)
    sequence = np.random.SeedSequence([entropy, zlib.crc32(name.encode())])
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


def spawn(random_state: int | None, *names: str) -> dict[str, np.random.Generator]:
    """One numpy generator for each stage name.

    Changing what one stage draws leaves every other stage's numbers as they were.
    """
    return {name: np.random.default_rng(spawn_seed(random_state, name)) for name in names}
