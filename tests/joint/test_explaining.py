"""Evidence adds up to the score, and names what was planted, whatever parts a model has."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.data import Dataset, make_planted
from dxml.exceptions import DataFormatError, NotFittedError
from dxml.joint import Joint
from dxml.joint._explaining import Evidence, Voter, strongest
from dxml.joint._points import Near
from dxml.joint.parts._linear import LinearPart
from dxml.joint.parts.protocol import Query

PLANS: dict[str, dict[str, Any]] = {
    "kernel": {},
    "kernel, linear": {"C": 1.0},
    "linear, every label": {"memory_gb": 1e-4},
    "linear": {"candidates": "nearest", "width": 0},
    "wide": {"candidates": "all", "width": 64, "epochs": 3},
    "all": {"candidates": "nearest", "width": 64, "epochs": 3},
    "columns": {"scaling": "columns"},
}


@pytest.fixture(scope="module")
def planted() -> Dataset:
    return make_planted(
        300, 120, 12, labels_per_point=2, features_per_point=12, noise=0.05, random_state=4
    )


@pytest.fixture(scope="module", params=sorted(PLANS))
def model(request: pytest.FixtureRequest, planted: Dataset) -> Joint:
    return Joint(device="cpu", **PLANS[request.param]).fit(planted.X[:260], planted.Y[:260])


def said_of_all(model: Joint, X: sp.csr_matrix, near: Near) -> dict[str, np.ndarray]:
    """What the parts say of every label of scaled rows."""
    ensemble, pairs = model._ensemble, sp.csr_matrix(np.ones((X.shape[0], 12), dtype=bool))
    return ensemble.scores(Query(X, near, pairs, model.plan_.every_label, ensemble.known, "cpu"))


def test_evidence_is_that_of_the_ranking(model: Joint, planted: Dataset) -> None:
    for i in range(260, 270):
        found = model.explain(planted.X[i], k=3)
        row = model.predict_topk(planted.X[i], k=3).row(0)
        assert [each.label for each in found] == [label for label, _ in row]
        expected = [probability for _, probability in row]
        assert [each.probability for each in found] == pytest.approx(expected, abs=2e-3)


def test_evidence_of_all_labels_is_that_of_the_ranking(model: Joint, planted: Dataset) -> None:
    """Labels are asked for in the order of the ranking, which is not that of their ids."""
    found = model.explain(planted.X[262], k=12)
    given = [each.probability for each in found]
    labels = np.array([each.label for each in found])
    alone = [model.score_labels(planted.X[262], [label])[0, 0] for label in labels]
    together = model.score_labels(planted.X[262], labels)[0]
    assert together == pytest.approx(np.array(alone), abs=1e-4)
    assert given == sorted(given, reverse=True)


def test_what_is_added_makes_up_the_score(model: Joint, planted: Dataset) -> None:
    """Score less the score of an empty point with no neighbour, computed the long way."""
    row = planted.X[261]
    [best, *_] = model.explain(row, k=1)
    nothing = sp.csr_matrix((1, row.shape[1]), dtype=np.float32)
    nobody = Near(np.full((1, 3), -1, dtype=np.int32), np.zeros((1, 3), dtype=np.float32))
    said = model.mixture_.mix(said_of_all(model, nothing, nobody))
    gained = float(model.score_labels(row, [best.label])[0, 0] - said[best.label])
    assert sum(best.added.values()) == pytest.approx(gained, abs=1e-3)
    assert set(best.added) == set(model.plan_.parts) - {"frequency"}


def test_voters_carry_the_label_and_their_weights_are_the_vote(
    model: Joint, planted: Dataset
) -> None:
    row = model.scaler_.transform(planted.X[262])
    [best, *_] = model.explain(planted.X[262], k=1)
    assert best.voters
    assert all(model.train_labels_[voter.point, best.label] for voter in best.voters)
    weights = [voter.weight for voter in best.voters]
    assert weights == sorted(weights, reverse=True)
    near = model._ensemble.known.search(row, model._ensemble.n_neighbors, "cpu")
    said = said_of_all(model, row, near)
    assert sum(weights) == pytest.approx(float(said["vote"][best.label]), abs=1e-5)


def test_an_effect_is_the_difference_without_the_feature(model: Joint, planted: Dataset) -> None:
    row = planted.X[263]
    [best, *_] = model.explain(row, k=1, n_features=3)
    assert 1 <= len(best.features) <= 3
    scaled = model.scaler_.transform(row).toarray()
    for feature, effect in best.features:
        without = scaled.copy()
        without[0, feature] = 0
        explainer = model._explainer()
        labels = np.array([best.label], dtype=np.int32)
        scores = [explainer.scores(sp.csr_matrix(each), labels)[0, 0] for each in (scaled, without)]
        assert effect == pytest.approx(float(scores[0] - scores[1]), abs=2e-3)
        if model.scaler_.rows:  # rows of any length mean the same
            longer = sp.csr_matrix(without / np.linalg.norm(without))
            again = model.effects(row, longer, [best.label])[0, 0]
            assert again == pytest.approx(effect, abs=2e-3)


def test_a_linear_head_alone_has_weights_times_features(planted: Dataset) -> None:
    model = Joint(candidates="nearest", width=0, device="cpu").fit(planted.X[:260], planted.Y[:260])
    weights = {"frequency": [0], "linear": [1], "vote": [0, 0]}
    weights = {name: np.float32(values) for name, values in weights.items()}
    model.mixture_ = dataclasses.replace(model.mixture_, weights=weights, interactions={})
    [best] = model.explain(planted.X[263], k=1, n_features=50)
    row = model.scaler_.transform(planted.X[263])
    linear = model.parts_["linear"]
    assert isinstance(linear, LinearPart)
    expected = row.multiply(linear.head.weights[best.label]).toarray()[0]
    assert dict(best.features) == pytest.approx(
        {int(i): expected[i] for i in np.flatnonzero(expected > 0)}, abs=1e-4
    )
    assert best.from_head == 1


def test_shares_add_up_to_one_or_nothing_speaks() -> None:
    both = Evidence(0, 0.5, {"vote": 1.0, "linear": 2.0, "wide": 1.0}, ())
    assert (both.from_neighbours, both.from_head) == (0.25, 0.75)
    against = Evidence(0, 0.5, {"vote": 1.0, "kernel": -2.0}, (Voter(0, 1.0, 1.0),))
    assert (against.from_neighbours, against.from_head) == (1.0, 0.0)
    nothing = Evidence(0, 0.5, {"vote": -1.0, "kernel": 0.0}, ())
    assert (nothing.from_neighbours, nothing.from_head) == (0.0, 0.0)


def test_a_point_without_features_has_no_evidence(model: Joint) -> None:
    if model.scaler_.mean is not None:
        return  # an empty row is then far from the mean, and says something
    empty = sp.csr_matrix((1, 120), dtype=np.float32)
    for each in model.explain(empty, k=2):
        assert each.features == () and each.from_head == pytest.approx(0, abs=1e-6)


def test_one_point_at_a_time(model: Joint, planted: Dataset) -> None:
    with pytest.raises(DataFormatError, match="one point is explained at a time, got 2 rows"):
        model.explain(planted.X[:2])


def test_labels_that_are_not_there_and_a_model_that_is_not_fitted(
    model: Joint, planted: Dataset
) -> None:
    row, unfitted = planted.X[260], Joint(device="cpu")
    for label in (12, -1):
        for ask in (
            lambda model, label: model.score_labels(row, [0, label]),
            lambda model, label: model.explain_labels(row, [label]),
            lambda model, label: model.effects(row, row, [label]),
        ):
            with pytest.raises(DataFormatError, match=f"must be from 0 to 11, got {label}. The mo"):
                ask(model, label)
            with pytest.raises(NotFittedError, match="this Joint has not been fitted. Call fit"):
                ask(unfitted, label)


def test_five_labels_are_explained_or_all_of_fewer(planted: Dataset) -> None:
    model = Joint(device="cpu").fit(planted.X, planted.Y[:, :3])
    assert len(model.explain(planted.X[0])) == 3
    with pytest.raises(DataFormatError, match="number of labels, 3, got 5"):
        model.explain(planted.X[0], 5)


def test_strongest_leaves_out_what_speaks_against() -> None:
    assert strongest([7, 8, 9], np.array([-0.1, 0.0, 0.2]), 3) == ((9, 0.2),)


def test_a_notebook_shows_parts_features_and_voters(model: Joint, planted: Dataset) -> None:
    found = model.explain(planted.X[:1], k=2)
    shown = found._repr_html_()  # type: ignore[attr-defined]
    assert shown == "".join(why._repr_html_() for why in found)
    for why in found:
        for part, value in why.added.items():
            assert f">{part}</td>" in shown and f">{value:+.2f}</td>" in shown
        for voter in why.voters[:20]:
            assert f">{voter.point}</td>" in shown
    assert f"label {found[0].label}</b>" in shown
