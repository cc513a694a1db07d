"""Twins: the shape of the data set, its kind of label frequencies, and how difficult they are."""

from __future__ import annotations

import numpy as np
import pytest

from dxml import evaluate
from dxml.baselines.knn import KNN
from dxml.data import Dataset, lookup, make_twin, train_test
from dxml.data._documents import make_documents
from dxml.data._label_law import chances_to_be_lost, label_shares
from dxml.data._traits import TRAITS, Traits
from dxml.exceptions import ParameterError


@pytest.fixture(scope="module")
def documents() -> Dataset:
    return make_documents(3000, 2000, 300, labels_per_point=4.0, features_per_point=40)


def test_shape_and_averages(documents: Dataset) -> None:
    found = documents.describe()
    assert (found["points"], found["features"], found["labels"]) == (3000, 2000, 300)
    assert found["labels a point"] == pytest.approx(4.0, rel=0.08)
    assert found["features a point"] == pytest.approx(40, rel=0.05)
    assert found["points without labels"] == found["points without features"] == 0
    assert documents.X.dtype == np.float32 and documents.X.has_canonical_format
    np.testing.assert_allclose(documents.X.multiply(documents.X).sum(axis=1), 1, rtol=1e-5)


def test_same_seed_same_data(documents: Dataset) -> None:
    again = make_documents(3000, 2000, 300, labels_per_point=4.0, features_per_point=40)
    other = make_documents(3000, 2000, 300, 4.0, 40, random_state=1)
    assert (again.X != documents.X).nnz == (again.Y != documents.Y).nnz == 0
    assert (other.X != documents.X).nnz > 0 and (other.Y != documents.Y).nnz > 0


def test_label_shares_add_up_and_fall_from_the_head() -> None:
    shares = label_shares(5000, 6.0, 0.3, 1e-5)
    assert shares.sum() == pytest.approx(6.0)
    assert shares[0] == pytest.approx(0.3) and shares[-1] == pytest.approx(1e-5)
    assert (np.diff(shares) <= 0).all()


def test_lost_labels_are_rare_ones_and_as_many_as_asked_for() -> None:
    shares = label_shares(5000, 6.0, 0.3, 1e-5)
    lost = chances_to_be_lost(shares, 100_000, 0.2, (0.55, 1.5))
    true = shares / (1 - lost)
    assert (true * lost).sum() / true.sum() == pytest.approx(0.2, abs=1e-6)
    assert lost[0] < 0.05 < 0.4 < lost[-1]


def test_the_most_frequent_label_has_its_share() -> None:
    for head in (0.1, 0.6):
        Y = make_documents(4000, 500, 400, 6.0, 10, Traits(head=head)).Y
        assert np.bincount(Y.indices).max() / 4000 == pytest.approx(head, rel=0.25)


def _p_at_1(**traits: float) -> float:
    data = make_documents(2500, 3000, 200, 3.0, 40, Traits(**traits))
    train, test = train_test(data, 500)
    return evaluate(test.Y, KNN().fit(train.X, train.Y).predict_topk(test.X, k=1), ks=[1])["P@1"]


EASY = {
    "noise": 0.1,
    "distraction": 0.0,
    "overlap": 0.1,
    "label_noise": 0.0,
    "missing": 0.0,
    "copies": 0.0,
}


@pytest.mark.parametrize(
    ("trait", "value"),
    [
        ("noise", 0.9),
        ("distraction", 0.9),
        ("overlap", 1.0),
        ("label_noise", 0.6),
        ("missing", 0.7),
    ],
)
def test_every_trait_makes_the_labels_harder_to_find(trait: str, value: float) -> None:
    assert _p_at_1(**{**EASY, trait: value}) < _p_at_1(**EASY) - 8


def test_revisions_are_near_what_they_revise() -> None:
    def nearest(copies: float) -> float:
        X = make_documents(800, 2000, 100, 3.0, 40, Traits(copies=copies)).X
        cosines = (X @ X.T).toarray()
        np.fill_diagonal(cosines, 0)
        return float(np.median(cosines.max(axis=1)))

    assert nearest(0.8) > nearest(0.0) + 0.15


def test_emphasis_is_on_a_points_first_labels() -> None:
    """Without it all labels of a point are as easy to find; with it, some are not."""

    def p_at_5(emphasis: float) -> float:
        traits = Traits(**EASY, emphasis=emphasis, label_spread=0.0)
        train, test = train_test(make_documents(2500, 3000, 200, 6.0, 25, traits), 500)
        ranking = KNN().fit(train.X, train.Y).predict_topk(test.X, k=5)
        return evaluate(test.Y, ranking, ks=[5])["P@5"]

    assert p_at_5(0.0) > p_at_5(1.0) + 1


def test_labels_of_a_topic_occur_together() -> None:
    Y = make_documents(4000, 50, 96, 3.0, 5, Traits(copies=0.0, label_noise=0.0)).Y
    together = (Y.astype(np.int64).T @ Y.astype(np.int64)).toarray()
    np.fill_diagonal(together, 0)
    friends = np.sort(together, axis=1)[:, ::-1]  # a topic holds twelve labels
    assert friends[:, :11].sum() > 0.5 * together.sum()


def test_exchanged_labels_fill_in_those_that_no_point_has() -> None:
    def unused(label_noise: float) -> int:
        Y = make_documents(1500, 300, 1000, 3.0, 10, Traits(label_noise=label_noise)).Y
        return 1000 - np.unique(Y.indices).size

    assert unused(0.2) < 0.5 * unused(0.0)


@pytest.mark.parametrize("extreme", [0.0, 1.0])
def test_extremes_of_every_trait(extreme: float) -> None:
    values = dict.fromkeys(Traits.__dataclass_fields__, extreme)
    data = make_documents(200, 60, 30, 2.0, 10, Traits(**values))
    assert np.isfinite(data.X.data).all() and np.diff(data.Y.indptr).min() >= 1


def test_a_twin_has_the_registered_shape() -> None:
    twin = make_twin("wiki10-31k", n_samples=300)
    assert (twin.X.shape, twin.Y.shape) == ((300, 101_938), (300, 30_938))
    assert twin.describe()["labels a point"] == pytest.approx(18.64, rel=0.1)
    assert (twin.name, twin.propensity) == ("wiki10-31k-twin", (0.55, 1.5))
    assert make_twin("bibtex").n_samples == 4880


def test_a_share_of_a_twin_has_as_many_points_a_label() -> None:
    small, info = make_twin("amazon-670k", share=0.01), lookup("amazon-670k")
    assert small.n_samples == 4904
    assert (small.n_features, small.n_labels) == (1359, 6701)
    assert small.describe()["labels a point"] == pytest.approx(info.labels_per_point, rel=0.1)
    assert small.describe()["features a point"] == pytest.approx(info.features_per_point, rel=0.1)


def test_a_trait_can_be_changed() -> None:
    plain, noisy = make_twin("bibtex"), make_twin("bibtex", noise=0.95)
    assert (plain.X != noisy.X).nnz > 0


def test_calibrated_data_sets_are_registered() -> None:
    assert all(lookup(name).name == name for name in TRAITS)


def test_bad_traits_and_shares() -> None:
    with pytest.raises(ParameterError, match=r"missing must be in 0..1, got 1.5"):
        Traits(missing=1.5)
    with pytest.raises(ParameterError, match=r"label_spread must be in 0..3, got -1"):
        Traits(label_spread=-1)
    with pytest.raises(ParameterError, match=r"share must be in 0..1 and above 0, got 0"):
        make_twin("bibtex", share=0)
