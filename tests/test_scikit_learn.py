"""Every method is a classifier as scikit-learn's checks, tools and scorers expect one."""

from __future__ import annotations

import importlib
import pickle
import warnings
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import joblib
import numpy as np
import pytest
import sklearn.exceptions
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_blobs
from sklearn.metrics import (
    average_precision_score,
    get_scorer,
    make_scorer,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_estimator,
)

from dxml import Joint, load_model
from dxml._core.params import Range
from dxml._core.threads import numba_threads
from dxml.base import Classifier
from dxml.data import Dataset, make_planted
from dxml.exceptions import DataFormatError, ModelFormatError, NotFittedError, ParameterError
from dxml.methods import METHODS, method_class

LINEAR: dict[str, Any] = {
    "candidates": "nearest",
    "width": 0,
    "n_trees": 0,
    "C": 1.0,
    "encoder": "none",
    "device": "cpu",
}
CHEAP: dict[str, dict[str, Any]] = {
    "joint": LINEAR,
    "dxml": {"n_partitions": 1, "n_neighbors": 5, "epochs": 10, "dim": 8, "hidden": 8},
    "sleec": {"n_learners": 1, "dim": 4, "max_iter": 2, "n_neighbors": 5, "power": 1.0},
    "leml": {"max_iter": 2},
    "fastxml": {"n_trees": 2},
}
EXPECTED: dict[str, dict[str, str]] = {
    "ml-cssp": {
        "check_classifiers_train": "of two or three labels it learns a sample, and guesses the rest"
    }
}
"""Checks that a method fails, each with its reason."""


QUICK = {"joint", "dxml", "knn"}
"""Methods whose checks are run by every `make unit`."""


def cheap(method: str) -> Classifier:
    return method_class(method)(**CHEAP.get(method, {}))


@pytest.fixture(params=sorted(METHODS))
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(
    "method",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.thorough)
        for name in sorted(METHODS)
    ],
)
def test_its_own_checks_pass(method: str) -> None:
    expected = EXPECTED.get(method, {})
    with numba_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = check_estimator(
            cheap(method), expected_failed_checks=expected, on_fail=None, on_skip=None
        )
    failed = {
        (each["check_name"], str(each["exception"])) for each in done if each["status"] == "failed"
    }
    assert failed == set()
    assert {each["check_name"] for each in done if each["status"] == "xfail"} == set(expected)
    passed = {each["check_name"] for each in done if each["status"] == "passed"}
    assert len(passed) > 45 and "check_classifiers_multilabel_output_format_predict" in passed


@pytest.mark.parametrize("method", ["joint", "knn"])
def test_columns_of_frames_are_checked_as_scikit_learn_does(method: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        check_dataframe_column_names_consistency(method, cheap(method))


@pytest.fixture(scope="module")
def planted() -> Dataset:
    return make_planted(
        240, 60, 6, labels_per_point=1.5, features_per_point=12, noise=0.05, random_state=1
    )


def test_what_it_says_of_itself(method: str) -> None:
    tags = get_tags(cheap(method))
    assert is_classifier(cheap(method)) and tags.input_tags.sparse and tags.target_tags.required
    assert tags.classifier_tags.multi_label and not tags.target_tags.multi_output


def test_scorers_that_rank(method: str, planted: Dataset) -> None:
    Y, chance = planted.Y.toarray().astype(int), {"average_precision": 0.3, "roc_auc": 0.5}
    with numba_threads(1):
        for scoring, least in chance.items():
            scores = cross_val_score(
                cheap(method), planted.X, Y, scoring=scoring, cv=2, error_score="raise"
            )
            assert scores.min() > least + 0.1


@pytest.mark.parametrize("name", ["joint", "knn"])
def test_exactly_two_labels_are_not_taken_for_one_of_two_classes(
    name: str, planted: Dataset
) -> None:
    """By hand: the mean over the two columns, each scored by itself."""
    X, Y = planted.X, planted.Y.toarray().astype(int)[:, :2]
    model = cheap(name).fit(X[:160], Y[:160])
    found = model.decision_function(X[160:])
    for scoring, score in (
        ("average_precision", average_precision_score),
        ("roc_auc", roc_auc_score),
    ):
        by_hand = np.mean([score(Y[160:, column], found[:, column]) for column in (0, 1)])
        assert get_scorer(scoring)(model, X[160:], Y[160:]) == pytest.approx(by_hand)


def test_of_two_names_a_scorer_is_told_which_counts() -> None:
    X, y = make_blobs(60, centers=[[9, 0], [0, 9]], random_state=0)
    names = np.where(y == 1, "yes", "no")
    scorer = make_scorer(
        average_precision_score, response_method="decision_function", pos_label="yes"
    )
    assert cross_val_score(cheap("knn"), X, names, scoring=scorer, cv=2).min() > 0.9
    other = make_scorer(
        average_precision_score, response_method="decision_function", pos_label="no"
    )
    assert cross_val_score(cheap("knn"), X, names, scoring=other, cv=2).min() > 0.9


def test_not_fitted_is_the_error_of_both() -> None:
    for kind in (NotFittedError, sklearn.exceptions.NotFittedError, ValueError, AttributeError):
        with pytest.raises(kind, match="has not been fitted. Call fit"):
            cheap("knn").predict(np.eye(2))
    with pytest.raises(NotFittedError) as error:
        cheap("knn").predict(np.eye(2))
    again = pickle.loads(pickle.dumps(error.value))
    assert isinstance(again, sklearn.exceptions.NotFittedError) and str(again) == str(error.value)
    assert not hasattr(cheap("knn"), "classes_") and not hasattr(cheap("joint"), "n_iter_")


def test_probabilities(planted: Dataset) -> None:
    model = Joint(**LINEAR).fit(planted.X[:200], planted.Y[:200])
    found = model.predict_proba(planted.X[200:])
    assert found.shape == (40, 6) and 0 < found.min() and found.max() < 1
    ranking = model.predict_topk(planted.X[200:], 6)
    for row, labels in zip(found, ranking.rows(), strict=True):
        for label, score in labels:
            assert row[label] == pytest.approx(score, abs=2e-6)
    assert not hasattr(cheap("knn"), "predict_proba"), "votes are no probabilities"


def test_scores_that_no_memory_could_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_blobs(20, random_state=0)
    model = cheap("knn").fit(X, y)
    monkeypatch.setattr("dxml.base.DENSE_BYTES", 4 * 20 * 3 - 1)
    with pytest.raises(DataFormatError, match="3 labels for 20 points would take .* predict_topk"):
        model.decision_function(X)
    assert model.decision_function(X[:19]).shape == (19, 3)
    assert model.decision_function(X, k=2).nnz <= 40, "the best are not many"


def test_one_label_a_point_comes_back_as_it_was(method: str, tmp_path: Path) -> None:
    X, group = make_blobs(60, 5, centers=9 * np.eye(3, 5), random_state=0)
    names = np.array(["one", "three", "two"])
    model = cheap(method).fit(X, names[group])
    by_number = cheap(method).fit(X, [[11, 7, 12][i] for i in group])
    assert model.classes_.tolist() == ["one", "three", "two"]
    assert by_number.classes_.tolist() == [7, 11, 12]
    if method not in EXPECTED:
        assert (model.predict(X) == names[group]).mean() > 0.9
    assert model.score(X, names[group]) == (model.predict(X) == names[group]).mean()
    both = model.predict(X, k=2)
    assert all(row[0] == best for row, best in zip(both, model.predict(X), strict=True) if row)
    for fitted in (model, by_number):
        fitted.save(tmp_path / "m")
        again = load_model(tmp_path / "m")
        assert again.predict(X).tolist() == fitted.predict(X).tolist()
        assert again.predict(X).dtype == fitted.predict(X).dtype


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_keep_their_names(library: str, planted: Dataset, tmp_path: Path) -> None:
    frame = importlib.import_module(library).DataFrame
    columns = {f"x{i:02d}": column for i, column in enumerate(planted.X.toarray().T)}
    X = frame(columns)
    truth = planted.Y.toarray().astype(int).T
    names = ["sea", "air", "mud", "ice", "fog", "dew"]
    Y = frame(dict(zip(names, truth, strict=True)))
    plain = Joint(**LINEAR).fit(planted.X, planted.Y)
    model = Joint(**LINEAR).fit(X, Y)
    model.save(tmp_path / "m")
    for each in (model, Joint.load(tmp_path / "m")):
        assert each.feature_names_in_.tolist() == list(columns)
        assert each.classes_.tolist() == names
        assert isinstance(each.predict(X), np.ndarray) and each.predict(X).dtype == int
        assert np.array_equal(each.predict(X), plain.predict(planted.X).toarray())
        moved = frame({name: columns[name] for name in sorted(columns, reverse=True)})
        with pytest.raises(DataFormatError, match="must be in the same order as they were in fit"):
            each.predict_topk(moved)
        shuffled = frame({name: truth[names.index(name)] for name in sorted(names)})
        assert each.score(X, shuffled) == each.score(X, Y) > 0.5, "columns are found by name"
    more = frame({"new": np.ones(240, dtype=int), "sea": truth[0]})
    model.partial_fit(X, more)
    assert model.classes_.tolist() == [*names, "new"]
    assert model.train_labels_[240:].toarray()[:, [0, 6]].tolist() == [[i, 1] for i in truth[0]]
    assert model.refit().classes_.tolist() == [*names, "new"]
    assert model.feature_names_in_.tolist() == list(columns)


def test_grid_search_stratifies_one_label_a_point() -> None:
    X, y = make_blobs(60, random_state=0)
    search = GridSearchCV(cheap("knn"), {"n_neighbors": [1, 5]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.6 and search.predict(X).shape == (60,)
    assert search.classes_.tolist() == [0, 1, 2]


def test_grid_search_with_lists_needs_folds_that_ignore_them(planted: Dataset) -> None:
    lists = [planted.Y[i].indices.tolist() for i in range(240)]
    search = GridSearchCV(cheap("knn"), {"n_neighbors": [1, 5]}, cv=KFold(2)).fit(planted.X, lists)
    assert search.best_score_ > 0.5


@pytest.mark.parametrize(
    "settings",
    [LINEAR, LINEAR | {"n_trees": 2}, {"candidates": "all"}, {"width": 16, "epochs": 1}],
    ids=["linear", "trees", "kernel", "wide"],
)
def test_pickle_and_joblib_at_any_time(
    settings: dict[str, Any], planted: Dataset, tmp_path: Path
) -> None:
    def copies(model: Joint) -> list[Joint]:
        file = BytesIO()
        joblib.dump(model, file)
        file.seek(0)
        return [pickle.loads(pickle.dumps(model)), joblib.load(file)]

    model = Joint(**{"device": "cpu", **settings})
    for each in copies(model):
        assert each.get_params() == model.get_params()
    model.fit(planted.X[:200], planted.Y[:200])
    copies(model)
    expected = model.predict_topk(planted.X[200:], 3)
    model.save(tmp_path / "m")
    opened = Joint.load(tmp_path / "m")
    copies(opened)
    taught = Joint.load(tmp_path / "m").partial_fit(planted.X[200:210], planted.Y[200:210])
    for each in [*copies(model), *copies(opened)]:
        found = each.predict_topk(planted.X[200:], 3)
        assert np.array_equal(found.indices, expected.indices)
        assert np.allclose(found.scores, expected.scores, atol=1e-3)
    for each in copies(taught):
        assert each.n_samples_ == 210
        each.partial_fit(planted.X[210:212], planted.Y[210:212])


class Plain(Joint):
    pass


class Narrow(Joint):
    def __init__(self, *, width=0, C=1.0):  # type: ignore[no-untyped-def]
        super().__init__(width=width, C=C, candidates="nearest", n_trees=0)


class Wider(Joint):
    def __init__(self, *, flavour: Annotated[int, Range(0, 3), "own"] = 1, **settings: Any) -> None:
        super().__init__(**settings)
        self.flavour = flavour


@pytest.mark.parametrize("kind", [Plain, Narrow, Wider])
def test_subclasses(kind: type[Joint], planted: Dataset, tmp_path: Path) -> None:
    made = kind() if kind is Narrow else kind(**LINEAR)
    model = clone(made).set_params(C=2.0)
    model.fit(planted.X, planted.Y).save(tmp_path / "m")
    again = kind.load(tmp_path / "m")
    assert type(again) is kind and again.get_params() == model.get_params()
    assert again.C == 2.0 and again.score(planted.X, planted.Y) > 0.6
    if kind is Wider:
        with pytest.raises(ModelFormatError, match="parameters that Joint does not have: flavour"):
            load_model(tmp_path / "m")
        with pytest.raises(ParameterError, match="flavour of Wider must be a whole number, 0 to 3"):
            kind(flavour=4).fit(planted.X, planted.Y)
    else:
        assert isinstance(load_model(tmp_path / "m"), Joint)
    assert set(Narrow().get_params()) == {"width", "C"}
    with pytest.raises(ParameterError, match="width of Narrow must be a whole number, 0 or more"):
        Narrow(width=-1).fit(planted.X, planted.Y)
