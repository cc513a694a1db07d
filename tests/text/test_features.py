"""Tf-idf against values worked out by hand and against scikit-learn."""

from __future__ import annotations

import re
from math import log, sqrt
from pathlib import Path
from typing import Any
from unicodedata import normalize as normal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, hstack
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from dxml._core.params import parameters_of
from dxml._core.storage import read_folder, write_folder
from dxml.exceptions import DataFormatError, NotFittedError, ParameterError
from dxml.text import TextFeatures
from dxml.text._counting import BLOCK
from dxml.text._tokens import MARKS

TEXTS = ["The fish, the sea!", "Fish soup", "", "a soup of Soup and SOUP", "Über die See: 42 x"]


def oracle(features: TextFeatures, texts: list[str], asked: list[str]) -> csr_matrix:
    """What scikit-learn gives."""
    given = {"lowercase": features.lowercase, "sublinear_tf": features.sublinear_tf}
    given |= {"min_df": features.min_df_, "dtype": np.float32}
    words = TfidfVectorizer(ngram_range=(1, features.word_ngrams), **given)
    found = words.fit(texts).transform(asked)
    if features.char_ngrams_:
        sizes = (min(3, features.char_ngrams_), features.char_ngrams_)
        grams = TfidfVectorizer(analyzer="char_wb", ngram_range=sizes, **given)
        found = normalize(hstack([found, grams.fit(texts).transform(asked)], format="csr"))
    return csr_matrix(found)


def assert_same(found: csr_matrix, expected: csr_matrix) -> None:
    """To the last bit."""
    assert found.shape == expected.shape
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_new_words_get_columns_after_the_others() -> None:
    features = TextFeatures(min_df=1)
    X = features.fit_transform(["fish fish soup", "soup", "soup sea"])
    grown = features.grow(["Honey, soup", "bees bees"])
    assert grown.feature_names == ("fish", "sea", "soup", "honey", "bees")
    assert features.feature_names == ("fish", "sea", "soup")
    rare = 1 + log(4 / 2)  # that of fish and sea, each in one text of three
    np.testing.assert_allclose(grown.idf_, [rare, rare, 1, rare, rare], rtol=1e-6)
    length = sqrt(1 + rare**2)
    expected = [[0, 0, 1 / length, rare / length, 0], [0, 0, 0, 0, 1]]
    np.testing.assert_allclose(grown.transform(["soup honey", "bees"]).toarray(), expected, 1e-6)
    assert grown.words("bees and fish") == pytest.approx({"bees": rare, "and": 0, "fish": rare})
    before = grown.transform(["fish fish soup", "soup", "soup sea"])
    np.testing.assert_array_equal(before[:, :3].toarray(), X.toarray())
    assert before[:, 3:].nnz == 0
    assert grown.grow(["honey fish", "?"]) is grown
    other = features.grow(["wax"])  # two lines of descent from one
    assert other.feature_names[3:] == ("wax",) and grown.grow(["wax"]).n_columns == 6


@pytest.mark.parametrize("settings", [{}, {"char_ngrams": 4}, {"word_ngrams": 2, "char_ngrams": 5}])
def test_what_has_grown_is_a_fit_in_another_order(settings: Any, tmp_path: Path) -> None:
    """Column by column what one fit of all texts finds, where every idf is the same."""
    old, new = ["fish soup", "sea salt"], ["honey bees", "fish bones"]
    whole = TextFeatures(min_df=1, **settings).fit([*old, *new])
    grown = TextFeatures(min_df=1, **settings).fit(old).grow(new[:1]).grow(new[1:])
    assert sorted(grown.feature_names) == sorted(whole.feature_names)
    whole.idf_, grown.idf_ = np.ones_like(whole.idf_), np.ones_like(grown.idf_)
    order = [whole.feature_names.index(name) for name in grown.feature_names]
    asked = [*old, *new, "honey of the sea"]
    found = grown.transform(asked)
    np.testing.assert_allclose(found.toarray(), whole.transform(asked).toarray()[:, order], 1e-6)
    assert found.has_sorted_indices
    write_folder(tmp_path / "m", {"method": "text"}, grown.arrays())
    again = TextFeatures.from_arrays(grown.get_params(), read_folder(tmp_path / "m")[1])
    assert again.feature_names == grown.feature_names
    assert_same(again.transform(asked), found)
    assert again.grow(["wax"]).transform(asked)[:, : found.shape[1]].nnz == found.nnz


@pytest.mark.parametrize("settings", [{}, {"char_ngrams": 4}, {"word_ngrams": 2, "char_ngrams": 5}])
def test_rows_come_with_the_columns_that_they_need(settings: Any) -> None:
    """What growing and then transforming would give."""
    features = TextFeatures(min_df=1, **settings).fit(["fish soup", "sea salt"])
    texts = ["honey bees honey", "", "fish, bees", "soup"]
    grown, X = features.grow_transform(texts)
    assert grown.feature_names == features.grow(texts).feature_names
    assert_same(X, grown.transform(texts))
    assert np.diff(X.indptr).astype(bool).tolist() == [True, False, True, True]


def test_texts_without_terms() -> None:
    asked = ["", " ?! ", "x", "zz"]
    words, grams = TextFeatures(), TextFeatures(char_ngrams=3)
    for features in (words, grams):
        features.fit(["fish soup", "fish soup"])
    assert words.without_terms(asked) == [0, 1, 2]
    assert grams.without_terms(asked) == [0]  # n-grams know punctuation


def test_values_by_hand() -> None:
    features = TextFeatures(min_df=2)
    X = features.fit_transform(["fish fish soup", "Soup! soup, fish", "sea"])
    assert features.feature_names == ("fish", "soup")
    idf = 1 + log(4 / 3)
    np.testing.assert_allclose(features.idf_, [idf, idf], rtol=1e-6)
    twice = 1 + log(2)
    length = sqrt(twice**2 + 1)
    expected = [[twice / length, 1 / length], [1 / length, twice / length], [0, 0]]
    np.testing.assert_allclose(X.toarray(), expected, rtol=1e-6)
    assert (X.dtype, X.indices.dtype, X.indptr.dtype) == (np.float32, np.int32, np.int32)
    one = features.transform(["a SOUP of stars"])
    assert one.toarray().tolist() == [[0, 1]]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"min_df": 1},
        {"min_df": 1, "word_ngrams": 3},
        {"min_df": 1, "char_ngrams": 5},
        {"min_df": 1, "char_ngrams": 2, "word_ngrams": 2},
        {"min_df": 2, "char_ngrams": 8},
        {"min_df": 1, "lowercase": False},
        {"min_df": 1, "sublinear_tf": False},
    ],
    ids=str,
)
def test_scikit_learn_gives_the_same(settings: dict[str, int]) -> None:
    rng = np.random.default_rng(0)
    words = ["Fisch", "sea", "Öl", "x", "42", "naïve", "soup_1", "北京", "don't", "e-mail"]
    texts = [" ".join(rng.choice(words, rng.integers(12))) for _ in range(40)] + TEXTS
    asked = [*texts[::3], "unknown words", "", "fisch\tÖL\n\nsea"]
    features = TextFeatures(**settings)
    fitted = features.fit_transform(texts)
    assert_same(fitted, oracle(features, texts, texts))
    assert_same(features.transform(asked), oracle(features, texts, asked))
    lengths = np.sqrt(np.asarray(fitted.multiply(fitted).sum(axis=1)).ravel())
    np.testing.assert_allclose(lengths[np.diff(fitted.indptr) > 0], 1, rtol=1e-6)


def unmarked(text: str) -> str:
    """In NFC, without marks and joiners: what scikit-learn cuts as we do."""
    return normal("NFC", re.sub(f"[{MARKS}]", "", normal("NFC", text)))


@given(st.lists(st.text(max_size=30).map(unmarked), max_size=6), st.booleans())
def test_any_text_without_marks_gives_what_scikit_learn_gives(
    texts: list[str], grams: bool
) -> None:
    texts = [*texts, "aa bb", "aa cc"]
    features = TextFeatures(min_df=1, char_ngrams=4 if grams else 0)
    assert_same(features.fit_transform(texts), oracle(features, texts, texts))


def test_a_text_has_the_same_row_alone_and_among_many() -> None:
    texts = [f"w{i % 7} w{i % 11} all w{i}" for i in range(2 * BLOCK + 3)]
    features = TextFeatures(char_ngrams=3)
    X = features.fit_transform(texts)
    assert_same(features.transform(texts), X)
    assert_same(features.transform(iter(texts)), X)
    for row in (0, BLOCK, 2 * BLOCK + 2):
        assert_same(features.transform([texts[row]]), X[row])
    assert features.transform([]).shape == (0, X.shape[1])


def test_names_of_columns_tell_words_from_n_grams() -> None:
    features = TextFeatures(min_df=1, char_ngrams=3, word_ngrams=2).fit(["the fish"])
    names = ("fish", "the", "the fish", "char: fi", "char: th", "char:fis", "char:he ")
    assert features.feature_names == (*names, "char:ish", "char:sh ", "char:the")


@pytest.mark.parametrize("settings", [{}, {"char_ngrams": 4, "min_df": 1, "lowercase": False}])
@pytest.mark.parametrize("more", [[], ["鱼汤里有盐", "海里有鱼"]], ids=["spaces", "none"])
def test_saved_and_read_again(tmp_path: Path, settings: dict[str, int], more: list[str]) -> None:
    features = TextFeatures(**settings).fit([*TEXTS, "nul \0 \ud800 grams", *more])
    write_folder(tmp_path, {"text": features.get_params()}, features.arrays())
    config, arrays = read_folder(tmp_path)
    again = TextFeatures.from_arrays(config["text"], arrays)
    assert again.feature_names == features.feature_names
    assert again.get_params() == features.get_params()
    assert_same(again.transform([*TEXTS, *more]), features.transform([*TEXTS, *more]))


CHINESE = ["糖尿病的治疗 with insulin", "糖尿病 and INSULIN", "足球比赛"]


def test_text_without_spaces_is_cut_where_there_is_much_of_it() -> None:
    features = TextFeatures(min_df=2).fit(CHINESE)
    assert features.unspaced_ and features.only_words
    names = ("insulin", "尿", "尿病", "病", "糖", "糖尿")
    assert features.feature_names == names
    assert features.transform(["他有糖尿"]).indices.tolist() == [names.index(x) for x in "尿糖"] + [
        5
    ]
    words = features.words("糖尿 Insulin")
    assert list(words) == ["糖", "尿", "糖尿", "insulin"] and min(words.values()) > 0
    assert features.without_word("糖尿病, Insulin", "尿病") == "糖 , Insulin"
    assert features.without_word("糖尿病, Insulin", "insulin") == "糖尿病, "


def test_text_with_spaces_stays_what_it_is() -> None:
    texts = [*TEXTS, "Fish from 北京 and soup", "ปลา is Thai for fish, so says the dictionary"]
    features = TextFeatures()
    assert_same(features.fit_transform(texts), oracle(features, texts, texts))
    assert not features.unspaced_
    for longest in (0, 3):
        features = TextFeatures(min_df=1, char_ngrams=longest)
        assert_same(features.fit_transform(CHINESE), oracle(features, CHINESE, CHINESE))
        assert not features.unspaced_


def test_what_was_saved_before_text_without_spaces_was_cut() -> None:
    features = TextFeatures(min_df=1, char_ngrams=0).fit(CHINESE)
    arrays = {name: array for name, array in features.arrays().items() if name != "text.unspaced"}
    again = TextFeatures.from_arrays(features.get_params(), arrays)
    assert_same(again.transform(CHINESE), features.transform(CHINESE))


def test_fitting_again_forgets_and_a_clone_is_unfitted() -> None:
    features = TextFeatures(min_df=1, char_ngrams=3).fit(["fish"])
    features.set_params(char_ngrams=0).fit(["soup"])
    assert features.feature_names == ("soup",)
    copy = clone(features)
    for use in (lambda: copy.transform(["a"]), copy.arrays, lambda: copy.feature_names):
        with pytest.raises(NotFittedError, match="has not been fitted. Call fit"):
            use()


def test_what_is_refused() -> None:
    with pytest.raises(DataFormatError, match="expected a list of texts, found one text"):
        TextFeatures().fit("a text")
    message = r"text 1 is nan \(float\), expected a str. Replace missing texts by ''"
    with pytest.raises(DataFormatError, match=message):
        TextFeatures().fit(["a", float("nan")])  # type: ignore[list-item]
    message = "no word stands in 2 or more of the 2 texts. Lower min_df, or give more texts"
    with pytest.raises(DataFormatError, match=message):
        TextFeatures(min_df=2).fit(["fish", "soup"])
    with pytest.raises(DataFormatError, match="in 2 or more of the 1 text. Lower min_df, or"):
        TextFeatures(min_df=2).fit(["fish soup"])
    with pytest.raises(DataFormatError, match="no texts to learn from. Give at least one."):
        TextFeatures().fit([])
    with pytest.raises(
        ParameterError, match="min_df of TextFeatures must be one of 'auto' or a whole"
    ):
        TextFeatures(min_df=0).fit(["a"])


@pytest.mark.parametrize(("n_rare", "chosen"), [(10, 2), (11, 1)])
def test_words_of_one_text_count_where_over_one_in_a_hundred_texts_has_no_others(
    n_rare: int, chosen: int
) -> None:
    ordinary = ["fish soup"] * (1000 - n_rare - 5)
    texts = [*ordinary, *(f"name{i}" for i in range(n_rare)), *["?"] * 5]  # 5 without any word
    features = TextFeatures()
    X = features.fit_transform(texts)
    assert (features.min_df_, features.min_df) == (chosen, "auto")
    assert_same(X, TextFeatures(min_df=chosen).fit_transform(texts))
    assert X.shape[1] == (2 if chosen == 2 else 2 + n_rare)
    assert len(features.empty_rows(texts)) == (15 if chosen == 2 else 5)


def test_n_grams_that_two_texts_share_leave_no_text_empty() -> None:
    texts = ["fishes", "fisher", "fishing"]
    assert TextFeatures().fit(texts).min_df_ == 1
    assert TextFeatures(char_ngrams=4).fit(texts).min_df_ == 2


def test_the_number_that_was_chosen_is_saved_as_older_versions_read_it() -> None:
    texts = ["fish", "soup", "sea"]
    features = TextFeatures().fit(texts)
    assert features.saved_params()["min_df"] == 1
    for params in (features.saved_params(), features.get_params()):
        again = TextFeatures.from_arrays(params, features.arrays())
        assert (again.min_df, again.min_df_) == ("auto", 1)
    before = {name: each for name, each in features.arrays().items() if "min_df" not in name}
    assert TextFeatures.from_arrays(features.saved_params(), before).min_df == 1
    assert TextFeatures.from_arrays(features.saved_params(), before).min_df_ == 1


@pytest.mark.parametrize(
    ("settings", "texts"),
    [({}, ["?", "a"]), ({"min_df": 1}, ["?", "a"]), ({"min_df": 1, "char_ngrams": 4}, ["", " "])],
)
def test_texts_without_a_word_are_not_helped_by_min_df(
    settings: dict[str, int], texts: list[str]
) -> None:
    with pytest.raises(DataFormatError) as error:
        TextFeatures(**settings).fit(texts)  # type: ignore[arg-type]
    said = "there is no word of two or more letters or digits in the 2 texts. Check the texts."
    assert str(error.value) == said


def test_parameters_are_declared_once() -> None:
    declared = parameters_of(TextFeatures)
    assert list(declared) == [
        "min_df",
        "word_ngrams",
        "char_ngrams",
        "lowercase",
        "sublinear_tf",
        "sentences",
        "tfidf",
    ]
    assert all(parameter.help for parameter in declared.values())


def test_progress_counts_texts(heard: Any) -> None:
    features = TextFeatures(char_ngrams=3).fit(TEXTS, progress=heard)
    features.transform(TEXTS, progress=heard)
    assert (heard.stages, heard.done) == ([("count words", 10, "texts")] * 2, 20)


MARKED = ["হাসি মুখে", "हिन्दी भाषा", "بِسْمِ اللَّهِ", "שָׁלוֹם עֲלֵיכֶם", "naïve café"]


def test_marks_continue_a_word() -> None:
    """Vowel signs and points are no letters; words were cut at each of them."""
    features = TextFeatures(min_df=1).fit(MARKED)
    wanted = sorted(word for text in MARKED for word in text.split())
    assert sorted(features.feature_names) == wanted
    assert features.transform(["हिन्दी"]).nnz == 1
    assert features.without_word("हिन्दी भाषा", "हिन्दी").split() == ["भाषा"]
    again = TextFeatures.from_arrays(features.get_params(), features.arrays())
    assert_same(again.transform(MARKED), features.transform(MARKED))


@pytest.mark.parametrize(
    "texts", [["नमक हिन्दी", "नमक में"], ["鱼汤好喝", "鱼汤很热"]], ids=["marks", "spaces"]
)
def test_where_columns_are_others_than_those_of_scikit_learn(texts: list[str]) -> None:
    """docs/guide/text.md says for which texts they are the same."""
    features = TextFeatures(min_df=1).fit(texts)
    theirs = TfidfVectorizer(min_df=1).fit(texts).get_feature_names_out()
    assert set(features.feature_names) != set(theirs)
    assert TextFeatures(min_df=1).fit(TEXTS[:4]).feature_names == tuple(
        TfidfVectorizer(min_df=1).fit(TEXTS[:4]).get_feature_names_out()
    )


def test_marks_continue_a_word_between_text_without_spaces() -> None:
    features = TextFeatures(min_df=1).fit([*CHINESE, "हिन्दी"])
    assert features.unspaced_ and "हिन्दी" in features.feature_names
    assert features.without_word("हिन्दी 鱼", "हिन्दी").strip() == "鱼"


def test_what_was_saved_before_marks_continued_a_word_cuts_as_it_did() -> None:
    features = TextFeatures(min_df=1).fit(["naïve café", "हिन्दी भाषा"])
    arrays = {name: array for name, array in features.arrays().items() if name != "text.marks"}
    again = TextFeatures.from_arrays(features.get_params(), arrays)
    assert again.transform(["naïve café"]).nnz == 2
    assert again.transform(["हिन्दी"]).nnz == 0  # falls into pieces that were no columns


SHARED = ["red fish soup", "blue fish soup", "red bridge", "blue bridge"]


@pytest.mark.parametrize(
    ("n_alone", "n_shared", "chosen"), [(40, 60, 4), (20, 80, 4), (19, 81, None), (9, 8, None)]
)
def test_words_that_stand_alone_are_taken_apart(
    n_alone: int, n_shared: int, chosen: int | None
) -> None:
    """From a fifth of the texts on, and from ten of them."""
    texts = [f"lonely{i}word" for i in range(n_alone)]
    texts += [SHARED[i % 4] for i in range(n_shared)]
    features = TextFeatures()
    X = features.fit_transform(texts)
    assert features.char_ngrams == "auto" and features.char_ngrams_ == chosen
    again = TextFeatures(char_ngrams=chosen)
    assert (again.fit_transform(texts) != X).nnz == 0
    assert again.feature_names == features.feature_names
    assert features.only_words == (chosen is None) and again.remarks() == []
    said = "parts of words count too (char_ngrams=4), as many texts share no word with another; "
    said += "char_ngrams=None takes whole words alone"
    assert features.remarks() == ([said] if chosen else [])
    loaded = TextFeatures.from_arrays(features.saved_params(), features.arrays())
    assert features.saved_params()["char_ngrams"] == chosen, "older versions read it"
    assert loaded.char_ngrams == "auto" and loaded.char_ngrams_ == chosen
    assert (loaded.transform(texts) != X).nnz == 0
    for off in (None, 0):
        assert not TextFeatures(char_ngrams=off).fit(texts).char_ngrams_


def test_texts_that_are_few_or_empty_or_without_spaces_are_not_taken_apart() -> None:
    assert TextFeatures().fit(CHINESE * 20).char_ngrams_ is None
    assert TextFeatures().fit([*SHARED * 5, *[""] * 100]).char_ngrams_ is None


def test_what_was_saved_before_the_texts_decided_stays_as_it_was() -> None:
    features = TextFeatures(char_ngrams=None, min_df=1).fit([f"lonely{i}word" for i in range(30)])
    loaded = TextFeatures.from_arrays(features.saved_params(), features.arrays())
    assert "text.char_ngrams_chosen" not in features.arrays()
    assert loaded.char_ngrams is None and loaded.char_ngrams_ is None
