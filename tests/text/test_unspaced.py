"""Chinese, Japanese, Thai and their like, cut by hand."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dxml.text._unspaced import find_words_and_grams, share_unspaced


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("吃鱼汤。", ["吃", "鱼", "汤", "吃鱼", "鱼汤"]),
        ("T恤 x of 42号", ["恤", "of", "42", "号"]),
        ("カレー・ライス", ["カ", "レ", "ー", "カレ", "レー", "ラ", "イ", "ス", "ライ", "イス"]),
        ("ปลา in", ["ปล", "ลา", "ปลา", "in"]),
        ("กินปลา", "กิ ิน นป ปล ลา กิน ินป นปล ปลา กินป ินปล นปลา".split()),
        ("한국어 단어", ["한국어", "단어"]),  # Korean has spaces
        ("ก 字", ["字"]),
    ],
)
def test_stretches_become_n_grams(text: str, expected: list[str]) -> None:
    assert find_words_and_grams(text) == expected


@given(st.text(st.characters(max_codepoint=0x0DFF)))
def test_other_scripts_are_cut_into_words(text: str) -> None:
    assert find_words_and_grams(text) == re.findall(r"\w\w+", text)


def test_shares_are_of_all_characters() -> None:
    assert share_unspaced(["鱼 is", "fish"]) == 1 / 8
    assert share_unspaced(["ปลาปลา"]) == share_unspaced(["海の魚"]) == 1
    assert share_unspaced([]) == share_unspaced(["", "Ölfass", "물고기"]) == 0
