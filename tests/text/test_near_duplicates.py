"""Texts that are nearly the same are found, and others are not."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from dxml.text._near_duplicates import near_duplicates

WORDS = [f"word{i}" for i in range(500)]


def shingles(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}


def similarity(one: str, two: str) -> float:
    a, b = shingles(one), shingles(two)
    return len(a & b) / len(a | b)


def brute_force(texts: list[str], least: float) -> list[list[int]]:
    group = list(range(len(texts)))
    for a, b in combinations(range(len(texts)), 2):
        if similarity(texts[a], texts[b]) >= least:
            old, new = max(group[a], group[b]), min(group[a], group[b])
            group = [new if each == old else each for each in group]
    found: dict[int, list[int]] = {}
    for place, first in enumerate(group):
        found.setdefault(first, []).append(place)
    return [places for places in found.values() if len(places) > 1]


@pytest.mark.parametrize("least", [0.8, 0.95, 1.0])
def test_groups_are_those_of_a_comparison_of_all(least: float) -> None:
    rng = random.Random(0)
    texts = []
    for _ in range(60):
        words = rng.choices(WORDS, k=80)
        texts.append(" ".join(words))
        for changed in rng.choice([(), (), (1,), (2, 1), (8,)]):
            copy = list(words)
            for place in rng.sample(range(80), changed):
                copy[place] = rng.choice(WORDS)
            texts.append(" ".join(copy))
    rng.shuffle(texts)
    expected = brute_force(texts, least)
    assert near_duplicates(texts, least) == expected
    assert len(expected) > 3 or least > 0.8


def test_case_and_punctuation_do_not_matter() -> None:
    texts = ["Fish, in the sea!", "", "fish in the SEA", "soup", "Soup.", "...", "a b"]
    assert near_duplicates(texts) == [[0, 2], [3, 4]]


def test_many_copies_are_one_group() -> None:
    texts = ["the same text again and again"] * 300 + ["another one that nobody has copied"]
    assert near_duplicates(texts) == [list(range(300))]
    assert near_duplicates([]) == []
