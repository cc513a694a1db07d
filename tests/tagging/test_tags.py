"""Answers of a tagger as a notebook shows them."""

from __future__ import annotations

import pytest

from dxml.tagging import Explanation, Neighbour, Tag, Tags, TextTagger

NASTY = "<img src=x onerror=alert(1)>"


def test_tags_are_a_table_of_names_and_probabilities() -> None:
    shown = Tags([Tag("fish", 0.93), Tag(NASTY, 0.5)])._repr_html_()
    assert shown.index("fish") < shown.index("93 %") < shown.index("50 %")
    assert "<img" not in shown and "&lt;img" in shown
    assert "<caption" not in shown


def test_tags_of_an_unknown_text_say_so() -> None:
    assert "No word is known" in Tags([Tag("fish", 0.5)], nothing_known=True)._repr_html_()


def test_an_explanation_shows_words_shares_and_neighbours_escaped() -> None:
    near = Neighbour(NASTY, NASTY, 0.75, 0.5, (NASTY, "sea"))
    shown = Explanation(NASTY, 0.9, 0.25, 0.75, ((NASTY, 1.5),), (near,))._repr_html_()
    assert "<img" not in shown and shown.count("&lt;img") == 5
    for part in ("90 %", "25 % from the head", "75 % from the neighbours", "+1.50", "0.75", "sea"):
        assert part in shown
    assert "none by itself" in Explanation("a", 0.5, 0, 0, (), ())._repr_html_()


@pytest.fixture(scope="module")
def tagger() -> TextTagger:
    texts = ["a fish in the sea", "the sea and its fish", "soup with salt", "a soup of salt"]
    return TextTagger().fit(texts, [["ocean"], ["ocean"], ["food"], ["food"]])


def test_what_a_tagger_answers_shows_itself(tagger: TextTagger) -> None:
    several = tagger.tag(["fish", "soup"], top=1)
    assert [row[0].name for row in several] == ["ocean", "food"]
    shown = several._repr_html_()  # type: ignore[attr-defined]
    assert shown.index("ocean") < shown.index("food")
    found = tagger.explain("fish of the sea", top=1)
    why = found._repr_html_()  # type: ignore[attr-defined]
    assert why == found[0]._repr_html_()
    assert "ocean" in why and "a fish in the sea" in why
