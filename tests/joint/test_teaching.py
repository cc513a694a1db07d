"""What is taught holds at once, whatever parts a model has; what is forgotten is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.data import Dataset, make_planted
from dxml.exceptions import DataFormatError
from dxml.joint import Joint
from dxml.joint._teaching import add_points, drop_points, remove_label, train_on
from dxml.methods import load_model
from dxml.metrics import precision_at_k

from ..bench.scripts import load_script

PLANS: dict[str, dict[str, Any]] = {
    "kernel": {},
    "kernel, linear": {"C": 1.0},
    "linear": {"candidates": "nearest", "width": 0},
    "linear, every label": {"memory_gb": 1e-4},
    "wide": {"candidates": "all", "width": 64, "epochs": 8},
    "all, int8": {"candidates": "nearest", "width": 64, "epochs": 8, "precision": "int8"},
}
ROOT = Path(__file__).parents[2]
KNOWN = 10  # of the 12 labels; the last two are new


@pytest.fixture(scope="module", params=sorted(PLANS))
def fitted(request: pytest.FixtureRequest, planted: Dataset, halves: Any) -> Joint:
    old = halves[0]
    model = Joint(device="cpu", **PLANS[request.param])
    return model.fit(planted.X[old], planted.Y[old][:, :KNOWN])


def test_standardised_columns_take_no_new_features(planted: Dataset) -> None:
    model = Joint(device="cpu", scaling="columns", width=0).fit(planted.X, planted.Y)
    with pytest.raises(DataFormatError, match="standardised columns takes no new features"):
        model.widen(planted.X.shape[1] + 1)


def test_new_features_change_nothing_until_a_point_has_them(
    model: Joint, planted: Dataset, halves: Any
) -> None:
    X = planted.X[halves[1]]
    n, d = X.shape
    before = model.predict_topk(X, 3)
    model.widen(d).widen(d + 2)
    assert model.n_features_in_ == d + 2
    wider = sp.csr_matrix(sp.hstack([X, sp.csr_matrix((n, 2), dtype=np.float32)]))
    after = model.predict_topk(wider, 3)
    np.testing.assert_array_equal(after.indices, before.indices)
    np.testing.assert_allclose(after.scores, before.scores, atol=1e-5)
    with pytest.raises(DataFormatError, match=f"of {d + 2} features cannot get fewer, got {d}"):
        model.widen(d)
    alone = sp.csr_matrix(([1.0], ([0], [d])), shape=(1, d + 2), dtype=np.float32)
    labels = sp.csr_matrix(([1], ([0], [KNOWN])), shape=(1, KNOWN + 1))
    model.partial_fit(alone, labels)
    assert model.predict_topk(alone, 1).indices.tolist() == [[KNOWN]]


@pytest.fixture
def model(fitted: Joint, tmp_path: Path) -> Joint:
    """A copy that a test may teach."""
    opened = load_model(fitted.save(tmp_path / "m"))
    assert isinstance(opened, Joint)
    return opened


def test_a_new_label_is_predicted_at_once(model: Joint, planted: Dataset, halves: Any) -> None:
    _, fresh, test = halves
    model.partial_fit(planted.X[fresh], planted.Y[fresh])
    assert (model.n_samples_, model.n_labels_) == (400, 12)
    assert model.label_frequency_.tolist() == planted.Y[:400].sum(axis=0).A1.tolist()
    with_new = test[np.asarray(planted.Y[test][:, KNOWN:].sum(axis=1)).ravel() > 0]
    single = with_new[np.asarray(planted.Y[with_new].sum(axis=1)).ravel() == 1]
    best = model.predict_topk(planted.X[single], 1).indices[:, 0]
    assert (best >= KNOWN).mean() > 0.8
    quality = precision_at_k(planted.Y[test], model.predict_topk(planted.X[test], 1), 1)[0]
    whole = Joint(**model.get_params()).fit(planted.X[:400], planted.Y[:400])
    best = precision_at_k(planted.Y[test], whole.predict_topk(planted.X[test], 1), 1)[0]
    assert quality > best - 0.06


def test_a_taught_model_is_saved_as_it_is(
    model: Joint, planted: Dataset, halves: Any, tmp_path: Path
) -> None:
    model.partial_fit(planted.X[halves[1]], planted.Y[halves[1]])
    model.remove_label(3, int(model.train_labels_[3].indices[0]))
    model.forget([0, 7])
    again = load_model(model.save(tmp_path / "taught"))
    for k in (1, 5):
        ours, theirs = (each.predict_topk(planted.X[400:], k) for each in (model, again))
        assert (ours.indices == theirs.indices).all()
        assert ours.scores == pytest.approx(theirs.scores, abs=1e-5)


def test_one_point_is_its_own_nearest(model: Joint, planted: Dataset) -> None:
    novel = sp.csr_matrix(
        (np.ones(3, np.float32), (np.zeros(3, int), [5, 60, 119])), shape=(1, 120)
    )
    model.partial_fit(novel, [[KNOWN]])
    found = model.explain(novel, k=2)
    evidence = next(each for each in found if each.label == KNOWN)
    assert evidence.voters[0].point == model.n_samples_ - 1
    assert evidence.voters[0].similarity == pytest.approx(1, abs=0.01)
    model.forget(model.n_samples_ - 1)
    assert all(not each.voters for each in model.explain(novel, k=11) if each.label == KNOWN)


def test_a_label_taken_off_is_unlearnt(model: Joint, planted: Dataset) -> None:
    row = int(np.flatnonzero(np.diff(model.train_labels_.indptr) == 1)[0])
    label = int(model.train_labels_[row].indices[0])
    point = model.train_features_[row]
    before = model.score_labels(point, [label])[0, 0]
    frequency = model.label_frequency_[label]
    model.remove_label(row, label)
    assert model.score_labels(point, [label])[0, 0] < before - 0.1
    assert model.label_frequency_[label] == frequency - 1
    with pytest.raises(DataFormatError, match=f"point {row} does not carry label {label}"):
        model.remove_label(row, label)


def test_refit_equals_fit_on_the_same_points(planted: Dataset, halves: Any) -> None:
    rows = np.concatenate(halves[:2])
    model = Joint(device="cpu", **PLANS["linear"])
    model.fit(planted.X[halves[0]], planted.Y[halves[0]][:, :KNOWN])
    model.partial_fit(planted.X[halves[1]], planted.Y[halves[1]]).refit()
    whole = Joint(**model.get_params()).fit(planted.X[rows], planted.Y[rows])
    ours, theirs = (each.predict_topk(planted.X[400:], 3) for each in (model, whole))
    assert (ours.indices[:, 0] == theirs.indices[:, 0]).mean() > 0.95


def test_refit_undoes_scaled_columns(planted: Dataset) -> None:
    model = Joint(scaling="columns", device="cpu", precision="float32").fit(
        planted.X[:100], planted.Y[:100]
    )
    before = model.predict_topk(planted.X[100:150], 3)
    after = model.refit().predict_topk(planted.X[100:150], 3)
    assert (before.indices == after.indices).mean() > 0.98


def test_names_grow(planted: Dataset) -> None:
    names = [[f"label {label:02d}" for label in planted.Y[i].indices] for i in range(100)]
    model = Joint(device="cpu").fit(planted.X[:100], names)
    known = model.label_names_
    assert known is not None
    model.partial_fit(planted.X[100:101], [["a new one", names[0][0]]])
    assert model.label_names_.tolist() == [*known.tolist(), "a new one"]
    assert "a new one" in model.predict(planted.X[100], k=2)[0]
    assert Joint(device="cpu").partial_fit(planted.X[:100], names).n_samples_ == 100
    n = model.n_samples_
    assert model.partial_fit(planted.X[:0], []).n_samples_ == n


def test_names_stay_where_a_matrix_is_taught(planted: Dataset) -> None:
    names = [[f"label {label:02d}" for label in planted.Y[i].indices] for i in range(100)]
    more = planted.Y[100:120]
    taught = []
    for given in (more, more.toarray(), more.toarray().astype(float)):
        model = (
            Joint(device="cpu").fit(planted.X[:100], names).partial_fit(planted.X[100:120], given)
        )
        assert model.label_names_ is not None and len(model.label_names_) == 12
        assert (model.train_labels_[100:] != more).nnz == 0
        taught.append(model.predict_topk(planted.X[400:410], 3).scores)
    assert np.array_equal(taught[0], taught[1]) and np.array_equal(taught[0], taught[2])
    with pytest.raises(DataFormatError, match="12 labels .* have names, .* a matrix of 13 columns"):
        model.partial_fit(planted.X[:1], np.ones((1, 13)))
    with pytest.raises(DataFormatError, match="labels of this model have names, got lists of ids"):
        model.partial_fit(planted.X[:1], [[3]])
    one = model.partial_fit(planted.X[:1], ["label 01"])
    assert one.train_labels_[-1].indices.tolist() == [1]


def test_mistakes_are_named(model: Joint, planted: Dataset) -> None:
    with pytest.raises(DataFormatError, match="equally many rows, got 2 and 1"):
        model.partial_fit(planted.X[:2], [[0]])
    with pytest.raises(DataFormatError, match="the 10 labels of the model, and may have more, got"):
        model.partial_fit(planted.X[:2], planted.Y[:2, :3])
    with pytest.raises(DataFormatError, match="may have more, got 1 by name"):
        model.partial_fit(planted.X[:1], [["fish"]])
    with pytest.raises(DataFormatError, match=r"there is no point 9999 in \d+ points"):
        model.forget([1, 9999])
    with pytest.raises(DataFormatError, match="cannot forget all of its points"):
        model.forget(np.arange(model.n_samples_))


def test_a_text_that_says_nothing_teaches_nothing(planted: Dataset) -> None:
    """A new label whose only point has no features must not come up everywhere."""
    model = Joint(device="cpu").fit(planted.X[:100], planted.Y[:100])
    before = model.predict_topk(planted.X[400:450], 1).indices
    model.partial_fit(sp.csr_matrix((1, 120), dtype=np.float32), [[12]])
    after = model.predict_topk(planted.X[400:450], 1).indices
    assert (before == after).mean() > 0.9 and not (after == 12).any()


def copy_of(fitted: Joint) -> Joint:
    """A model that may be taught."""
    again = Joint(**fitted.get_params())
    for name, value in vars(fitted).items():
        setattr(again, name, value)
    return again


def test_catching_up_uses_all_points(model: Joint, planted: Dataset, halves: Any) -> None:
    """Right after adding it is about as good as training again, and saved as it is."""
    _, fresh, test = halves
    model.partial_fit(planted.X[fresh], planted.Y[fresh])
    vote, labels, mixture = model.parts_["vote"], model.train_labels_, model.mixture_
    model.catch_up()
    assert model.mixture_ is mixture
    assert model.parts_["vote"] == vote
    assert (model.train_labels_ != labels).nnz == 0
    caught = precision_at_k(planted.Y[test], model.predict_topk(planted.X[test], 1), 1)[0]
    again = copy_of(model).refit().predict_topk(planted.X[test], 1)
    assert caught > precision_at_k(planted.Y[test], again, 1)[0] - 0.04


def bits(model: Joint) -> dict[str, bytes]:
    """All that a model holds."""
    arrays = model._ensemble.state(model.precision)[1]
    return {name: np.asarray(array).tobytes() for name, array in arrays.items()}


def test_the_old_parts_stay_as_they_were(model: Joint, planted: Dataset, halves: Any) -> None:
    """Every lesson gives a new ensemble, and twice the same one."""
    fresh, options = halves[1], model._options()
    rows, Y = model.scaler_.transform(planted.X[fresh]), planted.Y[fresh]
    label = int(model.train_labels_[3].indices[0])
    before = bits(model)
    for teach in (
        lambda old: add_points(old, rows, Y, options),
        lambda old: drop_points(old, np.array([0, 7])),
        lambda old: remove_label(old, 3, label, options),
        lambda old: train_on(old, old.plan, options),
    ):
        one, other = (teach(model._ensemble).state(model.precision)[1] for _ in range(2))
        assert bits(model) == before
        assert all(np.array_equal(one[name], other[name]) for name in one)
        assert {name: array.tobytes() for name, array in one.items()} != before


def test_before_added_caught_up_and_trained_again_are_in_order() -> None:
    """The benchmark's own measurement, on planted data."""
    script = load_script("teaching")
    data = make_planted(1500, 400, 60, labels_per_point=2, random_state=1)
    train, test = data.take(range(1200)), data.take(range(1200, 1500))
    case = script.make_case(
        train.Y, test.Y, lambda known, added: (train.X[known], train.X[added], test.X, None)
    )
    assert case.n_labels == 54 and case.added[1][:, 54:].sum(axis=1).min() >= 1
    rows = script.measure(case, Joint(device="cpu", candidates="nearest", width=0))
    means = {row["what"]: np.mean(row["with held-out labels"]) for row in rows}
    before, added, caught, again = means.values()
    assert before < added - 3
    assert added < caught + 1 and caught < again + 2 and again < caught + 2
    found = [row["held-out labels found"] for row in rows]
    assert found[0] == 0 and min(found[1:]) > 50
