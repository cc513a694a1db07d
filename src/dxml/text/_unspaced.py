"""Scripts that put no spaces between words: their text is cut into n-grams of characters.

A run of Chinese or Japanese characters gives n-grams of one and two characters. A run of Thai, Lao,
Burmese or Khmer letters, each of which means less, gives n-grams of two to four. Text between such
runs is split into words of two or more letters or digits, as usual.

>>> find_words_and_grams("鱼汤 and tea")
['鱼', '汤', '鱼汤', 'and', 'tea']
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dxml.text._tokens import MARKS

__all__ = [
    "MARKED_WORD_OR_STRETCH",
    "WORD_OR_STRETCH",
    "find_marked_words_and_grams",
    "find_words_and_grams",
    "share_unspaced",
]

_CHINESE_JAPANESE = (
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_THAI_LAO_BURMESE_KHMER = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
)
_UNSPACED = f"{_CHINESE_JAPANESE}{_THAI_LAO_BURMESE_KHMER}"
_find_stretches = re.compile(f"[{_UNSPACED}]+").findall
_SIZES = {1: (1, 2), 2: (2, 3, 4)}  # n-gram sizes by the group of WORD_OR_STRETCH
_STRETCH = rf"([{_CHINESE_JAPANESE}]+)|([{_THAI_LAO_BURMESE_KHMER}]+)"
_LETTER = rf"[^\W{_UNSPACED}]"
WORD_OR_STRETCH = re.compile(rf"{_STRETCH}|{_LETTER}{{2,}}")
"""Matches a run without spaces (in a group) or a word (in no group)."""
MARKED_WORD_OR_STRETCH = re.compile(rf"{_STRETCH}|{_LETTER}(?:{_LETTER}|[{MARKS}])+")
"""The same, where marks continue a word."""


def find_marked_words_and_grams(text: str) -> list[str]:
    """As `find_words_and_grams`, where marks continue a word."""
    return find_words_and_grams(text, MARKED_WORD_OR_STRETCH)


def find_words_and_grams(text: str, pattern: re.Pattern[str] = WORD_OR_STRETCH) -> list[str]:
    """The words of a text, and the n-grams of its runs of unspaced characters."""
    found: list[str] = []
    for match in pattern.finditer(text):
        piece = match[0]
        if match.lastindex is None:
            found.append(piece)
        else:
            found += [
                piece[start : start + size]
                for size in _SIZES[match.lastindex]
                for start in range(len(piece) - size + 1)
            ]
    return found


def share_unspaced(texts: Sequence[str]) -> float:
    """The share of the characters that belong to scripts without spaces."""
    stretches = (_find_stretches(text) for text in texts if not text.isascii())
    unspaced = sum(len(stretch) for found in stretches for stretch in found)
    return unspaced / max(sum(map(len, texts)), 1)
