"""Texts that are nearly the same: copies with a changed word, a corrected abstract, a reprint.

Two texts are as similar as the share of their runs of three words that both have (Jaccard's
coefficient of their shingles). Candidates are found by MinHash (Broder, 1997): the least of a
random order of a text's shingles is that of another text with a probability equal to their
similarity. Texts that agree in four such numbers of any of sixteen groups are compared exactly.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["near_duplicates"]

RUN = 3  # words of a shingle
BANDS, ROWS = 16, 4  # groups of numbers, and numbers of a group
MOST_TEXTS = 50  # of one group that are compared with each other; of more, each with the next ones
_WORD = re.compile(r"\w+")

Hashes = npt.NDArray[np.uint64]


def near_duplicates(texts: Sequence[str], similarity: float = 0.8) -> list[list[int]]:
    """Groups of texts that are nearly the same, by their places.

    Parameters
    ----------
    similarity : float
        Share of common shingles from which on two texts are nearly the same; 1: the same words in
        the same order. Pairs of 0.8 are found with a probability of 0.9998, those of 0.6 of 0.9.

    Returns
    -------
    Groups of two or more, each in rising order, by their first text. Texts without a word are in
    none. A group may have texts that are less similar, if others stand between them.

    >>> near_duplicates(["a b c d e f g", "x", "A b c d e f g!", "x y z"])
    [[0, 2]]
    """
    shingles = [_shingles(text) for text in texts]
    group = list(range(len(texts)))

    def first(place: int) -> int:
        while group[place] != place:
            group[place] = place = group[group[place]]
        return place

    for one, two in _candidates(shingles):
        a, b = first(one), first(two)
        if a != b and _similarity(shingles[one], shingles[two]) >= similarity:
            group[max(a, b)] = min(a, b)
    found: dict[int, list[int]] = {}
    for place in range(len(texts)):
        found.setdefault(first(place), []).append(place)
    return [places for places in found.values() if len(places) > 1]


def _shingles(text: str) -> Hashes:
    """The hashes of a text's runs of words, each once; of a shorter text, of all its words."""
    words = [zlib.crc32(word.encode()) for word in _WORD.findall(text.casefold())]
    if not words:
        return np.empty(0, dtype=np.uint64)
    codes = np.array(words, dtype=np.uint64)
    run = min(RUN, len(codes))
    total = np.zeros(len(codes) - run + 1, dtype=np.uint64)
    for i in range(run):
        total = total * np.uint64(0x9E3779B97F4A7C15) + codes[i : i + len(total)]
    return np.unique(_mixed(total))


def _mixed(values: Hashes) -> Hashes:
    """A number of 64 bits in place of another, without an order that could be seen."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _candidates(shingles: list[Hashes]) -> Iterator[tuple[int, int]]:
    """Pairs of texts that agree in a group of least numbers."""
    salts = _mixed(np.arange(1, BANDS * ROWS + 1, dtype=np.uint64))
    places = [place for place, own in enumerate(shingles) if len(own)]
    least = np.empty((len(places), BANDS * ROWS), dtype=np.uint64)
    for row, place in enumerate(places):
        least[row] = _mixed(shingles[place][:, None] ^ salts).min(axis=0)
    for band in range(BANDS):
        alike: dict[bytes, list[int]] = {}
        columns = np.ascontiguousarray(least[:, band * ROWS : (band + 1) * ROWS])
        for row, place in enumerate(places):
            alike.setdefault(columns[row].tobytes(), []).append(place)
        for texts in alike.values():
            for i, one in enumerate(texts):
                for two in texts[i + 1 : i + 1 + MOST_TEXTS]:
                    yield one, two


def _similarity(one: Hashes, two: Hashes) -> float:
    common = len(np.intersect1d(one, two, assume_unique=True))
    return common / (len(one) + len(two) - common)
