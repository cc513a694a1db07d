"""A text → the ids of its terms: words, runs of words, or character n-grams."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import chain

__all__ = ["WORD", "Cut", "Find", "GramIds", "TermIds", "WordIds", "find_words"]

WORD = re.compile(r"\w\w+")  # two or more letters or digits
SHORTEST_GRAM = 3  # characters
TERM_BYTES = 16  # of a term that is found: its letters, its number and how often it is there
find_words = WORD.findall

Find = Callable[[str], int | None]  # term → id, None for a term that is no column
Cut = Callable[[str], list[str]]  # text → words


class WordIds:
    """A text → the ids of its words, and of runs of up to `longest` words.

    `letter_bytes` are those of all terms that begin at a letter, at most.
    """

    def __init__(self, find: Find, cut: Cut, lowercase: bool, longest: int) -> None:
        self.find = find
        self.cut = cut
        self.lowercase = lowercase
        self.longest = longest
        self.letter_bytes = TERM_BYTES * longest**2

    def ids(self, text: str) -> Iterable[int]:
        words = self.cut(text.lower() if self.lowercase else text)
        if self.longest > 1:
            words = list(
                chain.from_iterable(self._runs(words, n) for n in range(1, self.longest + 1))
            )
        return [id for id in map(self.find, words) if id is not None]

    def _runs(self, words: list[str], size: int) -> list[str]:
        return [" ".join(words[i : i + size]) for i in range(len(words) - size + 1)]


class GramIds(dict[str, list[int]]):
    """A text → the ids of the character n-grams of its words.

    A space is put before and after every word, so that n-grams tell where a word begins and ends.
    The ids of a word's n-grams are kept, because most words occur again. `letter_bytes` are those
    of all n-grams that begin at a letter.
    """

    def __init__(self, find: Find, lowercase: bool, longest: int) -> None:
        self.find = find
        self.lowercase = lowercase
        self.sizes = range(min(SHORTEST_GRAM, longest), longest + 1)
        self.letter_bytes = TERM_BYTES * len(self.sizes)

    def ids(self, text: str) -> Iterable[int]:
        words = (text.lower() if self.lowercase else text).split()
        return chain.from_iterable(map(self.__getitem__, words))

    def __missing__(self, word: str) -> list[int]:
        padded = f" {word} "
        grams = []
        for size in self.sizes:
            grams += [padded[i : i + size] for i in range(max(1, len(padded) - size + 1))]
            if len(padded) <= size:  # this n-gram is the whole word, and so would longer ones be
                break
        self[word] = [id for id in map(self.find, grams) if id is not None]
        return self[word]


TermIds = WordIds | GramIds
