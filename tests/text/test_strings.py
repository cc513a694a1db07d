"""Strings as arrays and back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dxml._core.arrays import Arrays
from dxml.text._strings import pack_strings


@given(st.lists(st.text(st.characters(exclude_categories=()))))
def test_any_strings_come_back(strings: list[str]) -> None:
    packed, ends = pack_strings(strings)
    assert Arrays({"s": packed, "s_ends": ends}).strings("s", len(strings)) == strings


def test_the_bytes_and_the_ends() -> None:
    packed, ends = pack_strings(["ä", "", "bc"])
    assert packed.tobytes() == "äbc".encode()
    assert ends.tolist() == [2, 2, 4]
