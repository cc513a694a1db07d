"""Generated articles: the same every time, and their topics can be told from their words."""

from __future__ import annotations

import pytest

from dxml.data import make_texts
from dxml.data._pseudo_texts import _ASPECTS, _SUBJECTS
from dxml.exceptions import ParameterError
from dxml.tagging._tagger import TextTagger


def test_same_seed_same_articles() -> None:
    table = make_texts(50)
    assert make_texts(50) == table != make_texts(50, random_state=1)
    assert make_texts(80).take(range(50)) == table, "more articles come after the first"
    assert table.ids and table.ids[:2] == ("article-1", "article-2")
    assert len(set(table.texts)) == 50


def test_labels_say_what_the_words_say() -> None:
    table = make_texts(200, n_subjects=10)
    home = {word: name for name, words in _SUBJECTS.items() for word in words}
    aspects = {word: name for name, words in _ASPECTS.items() for word in words}
    assert len(home) + len(aspects) == 6 * len(_SUBJECTS) + 5 * len(_ASPECTS), "no word twice"
    used = set()
    for text, labels in zip(table.texts, table.labels or (), strict=True):
        words = text.lower().replace(".", " ").replace(":", " ").replace(",", " ").split()
        subjects = {home[word] for word in words if word in home}
        [aspect] = {aspects[word] for word in words if word in aspects}
        broad = {f"Topic: {name}" for name in subjects}
        assert set(labels) == broad | {f"{label}, {aspect}" for label in broad}
        used |= subjects
    assert used == set(list(_SUBJECTS)[:10])


def test_a_tagger_finds_the_topics() -> None:
    table = make_texts(700, n_subjects=12)
    train, test = table.take(range(600)), table.take(range(600, 700))
    tagger = TextTagger(device="cpu").fit(train.texts, train.labels or ())
    first = [tags[0].name for tags in tagger.tag(test.texts, top=1)]
    right = sum(name in labels for name, labels in zip(first, test.labels or (), strict=True))
    assert right >= 95


def test_mistakes_are_named() -> None:
    with pytest.raises(ParameterError, match="n_texts must be 1 or more, got 0"):
        make_texts(0)
    with pytest.raises(ParameterError, match=r"n_subjects must be in 3..40, got 41"):
        make_texts(5, n_subjects=41)
