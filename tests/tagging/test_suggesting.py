"""What to label next: topics that nobody has labelled come first, copies once."""

from __future__ import annotations

import random

import numpy as np
import pytest
import scipy.sparse as sp

from dxml import TextTagger
from dxml.exceptions import ParameterError
from dxml.tagging._suggesting import Measures, choose_apart, labels_that_count, suggest_next

TOPICS = {name: [f"{name}{i}" for i in range(12)] for name in ("fish", "soup", "road", "song")}


def make_texts(topic: str, n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.sample(TOPICS[topic], 6)) for _ in range(n)]


@pytest.fixture(scope="module")
def tagger() -> TextTagger:
    """Knows two topics of four."""
    texts = make_texts("fish", 40, 0) + make_texts("soup", 40, 1)
    labels = [["fish"]] * 40 + [["soup"]] * 40
    words = make_texts("road", 3, 2) + make_texts("song", 3, 3)  # without labels
    return TextTagger(device="cpu", min_df=1).fit([*texts, *words], [*labels, *[[]] * 6])


def test_what_nobody_labelled_comes_first(tagger: TextTagger) -> None:
    pool = [text for topic in TOPICS for text in make_texts(topic, 10, 9)]
    found = suggest_next(tagger, pool, 6)
    topics = [list(TOPICS)[each.place // 10] for each in found]
    assert set(topics[:2]) == {"road", "song"}, "and both of them"
    assert all("unsure: its best label has" in each.reasons[0] for each in found[:2])
    assert len({each.place for each in found}) == 6


def test_one_sure_label_is_enough_where_texts_carry_one(tagger: TextTagger) -> None:
    pool = make_texts("fish", 9, 10) + make_texts("road", 1, 11)
    by_place = {each.place: each for each in suggest_next(tagger, pool)}
    assert max(by_place[place].unsure for place in range(9)) < 0.3 < by_place[9].unsure
    assert not any("unsure" in why for place in range(9) for why in by_place[place].reasons)


def test_nobody_is_called_unsure_whose_label_is_nearly_certain() -> None:
    """The largest doubt of a pool may be none to speak of."""
    doubts = np.array([0.0, 0.0, 0.0, 0.04]), np.array([0.0, 0.0, 0.0, 0.4])
    said = [Measures(each, np.ones(4), np.ones(4, int), 1).reasons(3) for each in doubts]
    assert said == [("unlike the other suggestions",), ("unsure: its best label has 60%",)]


@pytest.mark.parametrize(("carried", "counted"), [(1, 1), (2, 2), (3, 3), (6, 5)])
def test_as_many_labels_count_as_texts_carry(carried: int, counted: int) -> None:
    texts = make_texts("fish", 12, 12)
    labels = [[f"{i % 2}-{j}" for j in range(carried)] for i in range(12)]
    fitted = TextTagger(device="cpu", min_df=1).fit(texts, labels)
    assert labels_that_count(fitted) == counted
    [one, *_] = suggest_next(fitted, texts + make_texts("road", 1, 13), 1)
    mean = sum(tag.probability for tag in one.tags[:counted]) / counted
    assert one.unsure == pytest.approx(1 - mean, abs=1e-5)


def test_texts_that_say_nothing_come_last(tagger: TextTagger) -> None:
    pool = ["road1", "zzzz", *make_texts("road", 6, 4), ""]
    places = [each.place for each in suggest_next(tagger, pool, len(pool))]
    assert set(places[:6]) == set(range(2, 8)) and places[6] == 0


def test_copies_are_suggested_once(tagger: TextTagger) -> None:
    [text] = make_texts("road", 1, 5)
    pool = [*make_texts("fish", 8, 6), text, f"{text}!", *make_texts("song", 3, 7), text.upper()]
    found = suggest_next(tagger, pool, len(pool))
    assert len(found) == len(pool) - 2
    assert [each.copies for each in found if each.copies] == [(9, 13)]
    assert not {9, 13} & {each.place for each in found}


def test_texts_that_carry_labels_already_are_left_out(tagger: TextTagger) -> None:
    """By id, or by a whole text that is known; those that were trained on without labels stay."""
    [road] = make_texts("road", 1, 2)  # known, without labels
    fish, new = make_texts("fish", 1, 0)[0], make_texts("song", 1, 8)[0]
    pool = [fish, road, new, f"{fish}!", f"Untitled\n{new} and more"]
    assert {each.place for each in suggest_next(tagger, pool)} == {1, 2, 4}
    learnt = TextTagger(min_df=1).fit(
        ["aa bb", "cc dd", "aa dd"], [["x"], ["y"], []], ids=list("rst")
    )
    learnt.learn(["Untitled\naa bb cc"], [["x"]], ids=["u"])
    pool = ["Untitled\naa bb cc", "Untitled\ncc dd", "aa dd"]
    assert {each.place for each in suggest_next(learnt, pool, ids=["u", "v", "t"])} == {1, 2}
    assert {each.place for each in suggest_next(learnt, pool)} == {0, 1, 2}


def test_the_pool_may_be_small_or_empty(tagger: TextTagger) -> None:
    assert suggest_next(tagger, []) == []
    [one] = suggest_next(tagger, ["zzzz"], 5)
    assert one.reasons == ("there is no other",) and one.n_words == 0
    assert suggest_next(tagger, ["", " \n"]) == [], "nobody can label a text without a word"
    with pytest.raises(ParameterError, match="must be 1 or more, got 0"):
        suggest_next(tagger, ["a"], 0)


def test_what_is_chosen_lies_apart() -> None:
    rows = sp.csr_matrix(np.array([[1, 0], [1, 0], [0, 1], [0.8, 0.6]], dtype=np.float32))
    worth = np.array([1.0, 0.9, 0.0, 0.5])
    assert choose_apart(rows, worth, 4) == [0, 2, 3, 1]
    assert choose_apart(rows, np.array([1, -np.inf, 0, -np.inf]), 4) == [0, 2]
