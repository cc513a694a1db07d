"""A text → the ids of its terms: words, runs of words, or character n-grams."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import chain

__all__ = [
    "MARKED_WORD",
    "MARKS",
    "WORD",
    "WORD_BYTES",
    "Cut",
    "Find",
    "GramIds",
    "TermIds",
    "WordIds",
    "find_marked_words",
    "find_words",
]

WORD = re.compile(r"\w\w+")  # two or more letters or digits
MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a"
    "\u07a6-\u07b0\u08d3-\u08e1\u08e3-\u0903\u093a-\u094f\u0951-\u0957\u0962-\u0963\u0981-\u0983"
    "\u09bc-\u09cd\u09d7\u09e2-\u09e3\u0a01-\u0a03\u0a3c-\u0a51\u0a70-\u0a71\u0a75\u0a81-\u0a83"
    "\u0abc-\u0acd\u0ae2-\u0ae3\u0b01-\u0b03\u0b3c-\u0b57\u0b62-\u0b63\u0b82\u0bbe-\u0bcd\u0bd7"
    "\u0c00-\u0c04\u0c3c-\u0c56\u0c62-\u0c63\u0c81-\u0c83\u0cbc-\u0cd6\u0ce2-\u0ce3\u0d00-\u0d03"
    "\u0d3b-\u0d4d\u0d57\u0d62-\u0d63\u0d81-\u0d83\u0dca-\u0ddf\u0df2-\u0df3\u0f71-\u0f84\u0f90-\u0fbc"
    "\u1dc0-\u1dff\u200c\u200d\u20d0-\u20dc\ufe00-\ufe0f\ufe20-\ufe2f"
)
"""Vowel signs, accents and joiners that continue a word: no letters, and no ends of words."""
MARKED_WORD = re.compile(rf"\w[\w{MARKS}]+")
SHORTEST_GRAM = 3  # characters
TERM_BYTES = 16  # of a term that is found: its letters, its number and how often it is there
WORD_BYTES = 2  # of the words of a text, a letter: most are six letters apart, and few are new
find_words = WORD.findall

Find = Callable[[str], int | None]  # term → id, None for a term that is no column
Cut = Callable[[str], list[str]]  # text → words


def find_marked_words(text: str) -> list[str]:
    """Words with the marks within them.

    >>> find_words("हिन्दी"), find_marked_words("हिन्दी")
    ([], ['हिन्दी'])
    """
    found: list[str] = (WORD if text.isascii() else MARKED_WORD).findall(text)
    return found


class WordIds:
    """A text → the ids of its words, and of runs of up to `longest` words.

    `letter_bytes` are those of all terms that begin at a letter: of the words of ordinary texts,
    or at most, where text without spaces is cut into n-grams.
    """

    def __init__(
        self, find: Find, cut: Cut, lowercase: bool, longest: int, unspaced: bool = False
    ) -> None:
        self.find = find
        self.cut = cut
        self.lowercase = lowercase
        self.longest = longest
        self.letter_bytes = (TERM_BYTES if unspaced else WORD_BYTES) * longest**2

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
