"""A tagger where scikit-learn's tools expect a classifier."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

from dxml import TextTagger
from dxml.data import make_planted
from dxml.exceptions import DataFormatError, ParameterError
from dxml.text import read_table

FEW = ["fish in the sea", "the sea has fish", "soup with salt", "a soup of salt", "rain and fog"]
TEXTS = [f"{text} {i}" for i in range(4) for text in FEW]
LISTS = [["ocean"], ["ocean"], ["food"], ["food", "hot"], []] * 4
NAMES = ["food", "hot", "ocean"]
MATRIX = np.array([[int(name in row) for name in NAMES] for row in LISTS])
QUICK: dict[str, Any] = {"min_df": 1, "candidates": "nearest", "n_trees": 0, "C": 1.0, "width": 0}


@pytest.fixture(scope="module")
def tagger() -> TextTagger:
    return TextTagger(**QUICK).fit(TEXTS, LISTS)


def test_predictions_have_the_form_of_the_labels(tagger: TextTagger, tmp_path: Path) -> None:
    asked = ["salt soup", "fish sea"]
    assert tagger.classes_.tolist() == NAMES
    assert tagger.predict(asked, top=1) == [["food"], ["ocean"]]
    assert tagger.predict(asked, threshold=0.99999) == [[], []]
    frames = [importlib.import_module(name).DataFrame for name in ("pandas", "polars")]
    columns = dict(zip("fho", MATRIX.T, strict=True))
    others = [MATRIX, sp.csr_matrix(MATRIX), *(make(columns) for make in frames)]
    for Y in others:
        same = TextTagger(**QUICK).fit(TEXTS, Y)
        same.save(tmp_path / "t")
        same = TextTagger.load(tmp_path / "t")
        found = same.predict(asked, top=1)
        dense = found.toarray() if sp.issparse(Y) else found
        assert sp.issparse(found) == sp.issparse(Y)
        assert dense.astype(int).tolist() == [[1, 0, 0], [0, 0, 1]]
        assert same.labels_ == (("f", "h", "o") if hasattr(Y, "columns") else ("0", "1", "2"))
        assert np.allclose(same.predict_proba(asked), tagger.predict_proba(asked))
        assert same.score(TEXTS, Y) == tagger.score(TEXTS, LISTS) > 0.5


def test_one_label_a_text(tmp_path: Path) -> None:
    y = ["sea", "sea", "kitchen", "kitchen", "sky"] * 4
    numbers = [{"sea": 10, "kitchen": 2, "sky": 7}[name] for name in y]
    for labels, classes in ((y, ["kitchen", "sea", "sky"]), (numbers, [2, 7, 10])):
        made = TextTagger(**QUICK).fit(TEXTS, labels)
        made.save(tmp_path / "t")
        for tagger in (made, TextTagger.load(tmp_path / "t")):
            assert tagger.classes_.tolist() == classes
            assert tagger.predict(TEXTS).tolist() == labels
            assert tagger.score(TEXTS, labels) == 1
            found = tagger.predict_proba(TEXTS)
            assert np.allclose(found.sum(axis=1), 1)
            assert tagger.classes_[found.argmax(axis=1)].tolist() == labels
        assert tagger.predict(["salt"], top=2)[0][0] == labels[2]
    two = TextTagger(**QUICK).fit(TEXTS, [name == "sky" for name in y])
    assert two.decision_function(TEXTS).shape == (20,)
    assert ((two.decision_function(TEXTS) > 0) == (two.predict(TEXTS) == 1)).all()
    made.learn(["a new thing"], [["thing"]])
    assert made.classes_.tolist() == ["2", "7", "10", "thing"], "no longer all numbers"


def test_grid_search_takes_lists_of_names() -> None:
    search = GridSearchCV(TextTagger(**QUICK), {"char_ngrams": [0, 3]}, cv=2, error_score="raise")
    search.fit(TEXTS, LISTS)
    assert search.best_score_ > 0.5
    assert search.best_estimator_.features.char_ngrams == search.best_params_["char_ngrams"]
    assert search.predict(["fish sea"])[0][0] == "ocean"
    steps = make_pipeline(TextTagger(**QUICK)).set_params(texttagger__C=2.0)
    assert steps.fit(TEXTS, LISTS)[-1].model.C == 2.0


@pytest.mark.parametrize("scoring", ["average_precision", "roc_auc", "f1_micro"])
@pytest.mark.parametrize("columns", [[0, 1, 2], [0, 2]])
def test_scorers(scoring: str, columns: list[int]) -> None:
    tagger = TextTagger(**QUICK)
    scores = cross_val_score(
        tagger, TEXTS, MATRIX[:, columns], scoring=scoring, cv=4, error_score="raise"
    )
    assert scores.mean() > 0.5


def test_what_it_says_of_itself(tagger: TextTagger) -> None:
    with pytest.warns(SkipTestWarning, match="Can't test estimator TextTagger"):  # texts
        done = check_estimator(TextTagger(), on_fail="raise", on_skip=None)
    assert [each["status"] for each in done] == ["passed"]
    assert is_classifier(tagger) and not is_classifier(TextTagger()), "lists are no strata"
    check_is_fitted(tagger)
    with pytest.raises(NotFittedError):
        check_is_fitted(TextTagger())
    with pytest.raises(NotFittedError, match="has not been fitted"):
        TextTagger().predict(["x"])
    with pytest.raises(DataFormatError, match="there are 2 texts but labels of 1"):
        tagger.score(["x", "y"], [["food"]])


def test_parameters_are_set(tagger: TextTagger) -> None:
    changed = clone(tagger).set_params(char_ngrams=4, C=3.0)
    assert changed.features.char_ngrams == 4 and changed.model.C == 3.0
    assert changed.get_params() == tagger.get_params() | {"char_ngrams": 4, "C": 3.0}
    with pytest.raises(ParameterError, match="unknown parameter 'char_ngram'; did you mean 'char"):
        changed.set_params(C=1.0, char_ngram=3)
    assert changed.model.C == 3.0, "nothing changes by halves"


def test_pickle_and_joblib_at_any_time(tagger: TextTagger, tmp_path: Path) -> None:
    tagger.save(tmp_path / "t")
    taught = TextTagger.load(tmp_path / "t").learn(["honey bees"], [["bees"]])
    for each in (TextTagger(), tagger, TextTagger.load(tmp_path / "t"), taught):
        joblib.dump(each, tmp_path / "dumped")
        for copy in (pickle.loads(pickle.dumps(each)), joblib.load(tmp_path / "dumped")):
            assert copy.get_params() == each.get_params()
            if each.__sklearn_is_fitted__():
                assert copy.tag("fish and honey") == each.tag("fish and honey")
                assert copy.learn(["more"], [["new"]]).labels_[-1] == "new"


class Short(TextTagger):
    def __init__(self, *, char_ngrams: int = 3) -> None:
        super().__init__(**QUICK, char_ngrams=char_ngrams)


class Long(TextTagger):
    def __init__(self, *, flavour: str = "a", **settings: Any) -> None:
        super().__init__(**settings)
        self.flavour = flavour


def test_subclasses(tmp_path: Path) -> None:
    short = clone(Short(char_ngrams=4))
    assert short.get_params() == {"char_ngrams": 4} and repr(short) == "Short(char_ngrams=4)"
    short.fit(TEXTS, LISTS).save(tmp_path / "t")
    assert type(Short.load(tmp_path / "t")) is Short
    long = clone(Long(flavour="b", **QUICK)).set_params(flavour="c")
    assert long.flavour == "c" and long.get_params()["C"] == 1.0
    assert long.fit(TEXTS, LISTS).predict(["salt"], top=1) == [["food"]]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_frames_are_texts_and_labels(library: str) -> None:
    frame = importlib.import_module(library).DataFrame({"text": TEXTS, "labels": LISTS})
    tagger = TextTagger(**QUICK).fit(frame["text"], frame["labels"])
    plain = TextTagger(**QUICK).fit(TEXTS, LISTS)
    assert tagger.labels_ == plain.labels_
    assert tagger.tag(frame["text"]) == plain.tag(TEXTS)
    assert tagger.predict(frame["text"]) == plain.predict(TEXTS)
    assert tagger.score(frame["text"], frame["labels"]) == plain.score(TEXTS, LISTS)
    table = read_table(frame, "text", "labels")
    assert table.texts == tuple(TEXTS) and table.labels == tuple(map(tuple, LISTS))


def test_promised_precision_and_recall() -> None:
    """Labels above the promised threshold, by `tag` and by `predict`."""
    data = make_planted(340, 60, 8, labels_per_point=1.5, features_per_point=8, random_state=1)
    texts = [" ".join(f"w{i}x" for i in row.indices) for row in data.X]
    labels = [[f"l{i}" for i in row.indices] for row in data.Y]
    tagger = TextTagger(**QUICK).fit(texts[:300], labels[:300])
    for promise in ({"precision": 0.7}, {"recall": 0.6}):
        least = tagger.threshold_for(**promise)
        assert tagger.tag(texts[300:], **promise) == tagger.tag(texts[300:], threshold=least)
        assert tagger.predict(texts[300:], **promise) == tagger.predict(
            texts[300:], threshold=least
        )
        assert any(tagger.tag(texts[300:], **promise))
    with pytest.raises(ParameterError, match="give one of threshold, precision and recall"):
        tagger.tag(texts[0], threshold=0.5, precision=0.5)
    with pytest.raises(ParameterError, match="leave top out"):
        tagger.predict(texts, 3, recall=0.5)
