"""Strings come and go: each list is what its own changes made it, whatever it shares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dxml._core.listed import Listed, Strings


def test_what_a_list_shares_with_a_longer_one() -> None:
    short = Listed(["a", "b"])
    one, other = short.add(["c"]), short.add(["d", "e"])
    assert [list(each) for each in (short, one, other)] == [["a", "b"], [*"abc"], [*"abde"]]
    assert [each.place("c") for each in (short, one, other)] == [None, 2, None]
    assert "c" in one and "c" not in short and len(short) == 2 and short[-1] == "b"
    assert one[1:] == ["b", "c"] and short[:9] == ["a", "b"]
    again = one.add(["a"])
    assert (again.place("a"), one.place("a")) == (3, 0) and not again.are_different
    with pytest.raises(IndexError):
        short[2]


def test_a_string_may_come_again() -> None:
    """Added while it is there, then dropped at its first place: found at its last."""
    first = Listed(["a", "b", "c", *map(str, range(20))])
    both = first.add(["b"])
    last = both.drop([1])
    assert first.place("b") == 1 and both.place("b") == 23 and last.place("b") == 22
    assert last[22] == "b" and last.place("c") == 1 and len(last) == 23
    gone = last.drop([22])
    assert gone.place("b") is None and "b" not in gone and "b" in last
    assert gone.add(["b"]).place("b") == 22 and "b" not in gone


Change = tuple[str, int]


@given(st.lists(st.tuples(st.sampled_from(["add", "drop", "branch"]), st.integers(0, 99))))
def test_any_changes(changes: list[Change]) -> None:
    """Against plain lists, from any of the versions there were."""
    versions = [(Listed(map(str, range(9))), [str(i) for i in range(9)])]
    for turn, (what, number) in enumerate(changes):
        listed, plain = versions[number % len(versions)] if what == "branch" else versions[-1]
        if what == "drop" and plain:
            row = number % len(plain)
            versions.append((listed.drop([row]), plain[:row] + plain[row + 1 :]))
        else:
            more = [f"new{turn}", *(["3"] if "3" not in plain else [])]
            versions.append((listed.add(more), plain + more))
    for listed, plain in versions:
        assert list(listed) == plain and len(listed) == len(plain)
        assert [listed.place(string) for string in plain] == list(range(len(plain)))
        assert [listed[row] for row in range(len(plain))] == plain
        assert [listed.place(f"new{turn}") is None for turn in range(len(changes))] == [
            f"new{turn}" not in plain for turn in range(len(changes))
        ]


def test_no_string_is_copied_for_one_that_comes_or_goes() -> None:
    """A list of 800 is copied once 100 of it are holes, not before."""
    first = Strings(map(str, range(800)))
    fewer = first
    for _ in range(100):
        fewer = fewer.drop([0])
    assert fewer._strings is first._strings and fewer.add(["x"])._strings is first._strings
    copied = fewer.drop([0])
    assert copied._strings == [str(i) for i in range(101, 800)]
