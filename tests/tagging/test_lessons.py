"""What a lesson was, and the lessons that take it back."""

from __future__ import annotations

from typing import Any

import pytest

from dxml.exceptions import ParameterError
from dxml.tagging._journal import Action, Entry
from dxml.tagging._lessons import compensation, described, summary


def learn(number: int, texts: dict[str, tuple[str, list[str]]], replaced: bool = False) -> Entry:
    content = {
        "texts": [text for text, _ in texts.values()],
        "labels": [labels for _, labels in texts.values()],
        "ids": list(texts),
        "replaced": [replaced] * len(texts),
    }
    return Entry(number, "learn", content, 60.0)


def entry(number: int, action: Action, **content: Any) -> Entry:
    return Entry(number, action, content)


FIRST = learn(1, {"a": ("fish\nin the sea", ["ocean"]), "b": ("soup", ["food", "hot"])})


@pytest.mark.parametrize(
    ("lesson", "said"),
    [
        (FIRST, "learnt 'fish' and 1 more: ocean, food, hot"),
        (learn(1, {"a": ("x", [])}), "learnt 'x': no labels"),
        (entry(1, "unlabel", id="a", label="ocean"), "took 'ocean' off 'a'"),
        (entry(1, "relabel", how="rename", labels=["a"], into="b"), "renamed 'a' to 'b'"),
        (entry(1, "relabel", how="merge", labels=["a", "b"], into="c"), "merged 'a', 'b' into 'c'"),
        (entry(1, "relabel", how="delete", labels=["a"], into=None), "deleted 'a'"),
    ],
)
def test_a_lesson_in_one_line(lesson: Entry, said: str) -> None:
    assert summary(lesson) == said
    assert described(lesson, True)["summary"] == said


def test_new_texts_are_forgotten() -> None:
    assert compensation([FIRST], 1) == [("forget", {"id": "a"}), ("forget", {"id": "b"})]


def test_a_text_is_as_the_lessons_before_left_it() -> None:
    again = learn(3, {"b": ("stew", ["cold"])}, replaced=True)
    off = entry(2, "unlabel", id="b", label="hot")
    back = {"texts": ["soup"], "labels": [["food"]], "ids": ["b"]}
    assert compensation([FIRST, off, again], 3) == [("learn", back)]
    renamed = entry(2, "relabel", how="rename", labels=["food"], into="meal")
    back["labels"] = [["meal", "hot"]]
    assert compensation([FIRST, renamed, again], 3) == [("learn", back)]


def test_forgotten_and_unlabelled_texts_come_back() -> None:
    back = {"texts": ["soup"], "labels": [["food", "hot"]], "ids": ["b"]}
    assert compensation([FIRST, entry(2, "forget", id="b")], 2) == [("learn", back)]
    assert compensation([FIRST, entry(2, "unlabel", id="b", label="hot")], 2) == [("learn", back)]


def test_what_later_lessons_settled_stays() -> None:
    later = [FIRST, learn(2, {"a": ("cod", ["sea"])}, replaced=True), entry(3, "forget", id="b")]
    assert compensation(later, 1) == []


def test_a_name_is_given_back() -> None:
    renamed = entry(1, "relabel", how="rename", labels=["a"], into="b")
    assert compensation([renamed], 1) == [
        ("relabel", {"how": "rename", "labels": ["b"], "into": "a"})
    ]


@pytest.mark.parametrize(
    "lesson",
    [
        entry(1, "forget", id="training"),
        entry(1, "unlabel", id="training", label="x"),
        learn(1, {"training": ("new", ["x"])}, replaced=True),
        entry(1, "relabel", how="merge", labels=["a", "b"], into="b"),
    ],
)
def test_what_the_journal_does_not_know_is_said(lesson: Entry) -> None:
    with pytest.raises(ParameterError, match="lesson 1 cannot be taken back: .* dxml restore"):
        compensation([lesson], 1)
    with pytest.raises(ParameterError, match="there is no lesson 5; the last is 1"):
        compensation([lesson], 5)
