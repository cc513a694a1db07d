"""Planted data: the shape asked for, and an answer that can be found."""

from __future__ import annotations

import numpy as np
import pytest

from dxml.data import Dataset, make_planted, train_test
from dxml.exceptions import ParameterError


@pytest.fixture(scope="module")
def planted() -> Dataset:
    return make_planted(2000, 400, 60, labels_per_point=3.0, features_per_point=25)


def test_shape_and_averages(planted: Dataset) -> None:
    found = planted.describe()
    assert (found["points"], found["features"], found["labels"]) == (2000, 400, 60)
    assert found["labels a point"] == pytest.approx(3.0, rel=0.05)
    assert found["features a point"] == pytest.approx(25, rel=0.05)
    assert found["points without labels"] == found["points without features"] == 0
    assert planted.X.has_canonical_format
    np.testing.assert_allclose(planted.X.multiply(planted.X).sum(axis=1), 1, rtol=1e-5)


def test_same_seed_same_data(planted: Dataset) -> None:
    again = make_planted(2000, 400, 60, labels_per_point=3.0, features_per_point=25)
    other = make_planted(2000, 400, 60, labels_per_point=3.0, features_per_point=25, random_state=1)
    assert (again.X != planted.X).nnz == (again.Y != planted.Y).nnz == 0
    assert (other.Y != planted.Y).nnz > 0


def test_noise_does_not_change_the_labels(planted: Dataset) -> None:
    noisy = make_planted(2000, 400, 60, features_per_point=25, noise=1.0)
    assert (noisy.Y != planted.Y).nnz == 0
    assert (noisy.X != planted.X).nnz > 0


@pytest.mark.parametrize(("noise", "low", "high"), [(0.0, 0.9, 1.0), (1.0, 0.0, 0.35)])
def test_neighbours_share_labels_unless_all_is_noise(noise: float, low: float, high: float) -> None:
    data = make_planted(1500, 400, 60, features_per_point=25, noise=noise)
    train, test = train_test(data, 200)
    nearest = np.asarray((test.X @ train.X.T).toarray()).argmax(axis=1)
    shared = test.Y.toarray() & train.Y[nearest].toarray()
    assert low <= shared.any(axis=1).mean() <= high


def test_labels_follow_a_power_law_or_are_even() -> None:
    steep, even = (
        np.sort(np.bincount(make_planted(4000, 50, 40, 2.0, 5, power=power).Y.indices))[::-1]
        for power in (1.0, 0.0)
    )
    assert steep[0] / steep[-1] > 10
    assert even[0] / even[-1] < 2


def test_labels_come_in_groups() -> None:
    Y = make_planted(5000, 50, 60, labels_per_point=3.0, features_per_point=5, power=0.0).Y
    together = (Y.astype(np.int64).T @ Y.astype(np.int64)).toarray()
    np.fill_diagonal(together, 0)
    friends = np.sort(together, axis=1)[:, ::-1]
    assert friends[:, :5].sum() > 0.6 * together.sum()  # a group holds 6 labels
    assert friends[:, 5].max() < friends[:, 4].min()


@pytest.mark.parametrize(("labels", "features"), [(0.0, 0.0), (0.3, 0.5), (1.0, 1.0), (6.0, 9.0)])
def test_extremes_of_density(labels: float, features: float) -> None:
    data = make_planted(3000, 9, 6, labels_per_point=labels, features_per_point=features)
    found = data.describe()
    assert found["labels a point"] == pytest.approx(labels, abs=0.05)
    assert found["features a point"] == pytest.approx(features, abs=0.05)
    assert np.isfinite(data.X.data).all()


def test_train_test_cuts_once(planted: Dataset) -> None:
    train, test = train_test(planted, 500)
    assert (train.n_samples, test.n_samples) == (1500, 500)
    assert train.X.nnz + test.X.nnz == planted.X.nnz
    for n_test in (0, 2000):
        with pytest.raises(
            ParameterError, match=r"n_test must leave points on both sides, 1..1999"
        ):
            train_test(planted, n_test)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 0}, "n_samples must be in 1.."),
        ({"labels_per_point": 11}, "labels_per_point must be in 0..10, got 11"),
        ({"features_per_point": 21}, "features_per_point must be in 0..20, got 21"),
        ({"noise": 1.5}, "noise must be in 0..1, got 1.5"),
        ({"power": -1}, "power must be in 0..10, got -1"),
    ],
)
def test_bad_shapes(options: dict[str, float], message: str) -> None:
    shape = {"n_samples": 5, "n_features": 20, "n_labels": 10, "features_per_point": 5}
    with pytest.raises(ParameterError, match=message):
        make_planted(**{**shape, **options})  # type: ignore[arg-type]
