"""k-NN: cases worked by hand, and planted labels; the search is tested in test_cosine.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.baselines.knn import KNN
from dxml.data import make_planted
from dxml.exceptions import ModelFormatError
from dxml.metrics import precision_at_k


def test_vote_by_hand() -> None:
    X = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32)
    Y = [[0], [1], [1], [2]]
    query = np.array([[2, 0, 0]], dtype=np.float32)
    plain = KNN(n_neighbors=2, power=0).fit(X, Y).predict_topk(query, 3)
    assert plain.indices.tolist() == [[1, 0, -1]]  # a tie: label 1 is the more frequent
    np.testing.assert_allclose(plain.scores, [[0.5, 0.5, 0]])
    weighted = KNN(n_neighbors=2, power=2).fit(X, Y).predict_topk(query, 3)
    assert weighted.indices.tolist() == [[0, 1, -1]]  # weights 1 and (1/√2)² = 1/2
    np.testing.assert_allclose(weighted.scores, [[2 / 3, 1 / 3, 0]], rtol=1e-6)


def test_without_a_neighbour_the_frequent_labels_are_named() -> None:
    X = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=np.float32)
    model = KNN(n_neighbors=2).fit(X, [[2], [2], [0]])
    ranking = model.predict_topk(np.array([[0, 0, 0], [0, 0, 3]], dtype=np.float32), 2)
    assert ranking.indices.tolist() == [[2, 0], [2, 0]]
    assert ranking.scores.tolist() == [[0, 0], [0, 0]]


def test_a_large_power_is_the_nearest_neighbour() -> None:
    data = make_planted(200, 100, 8, random_state=1)
    nearest = KNN(n_neighbors=1).fit(data.X, data.Y).predict_topk(data.X, 1)
    sharp = KNN(n_neighbors=20, power=1000).fit(data.X, data.Y).predict_topk(data.X, 1)
    found = precision_at_k(data.Y, sharp, 1)
    np.testing.assert_allclose(found, precision_at_k(data.Y, nearest, 1))


def test_k_is_chosen_for_the_data() -> None:
    # Labels that are noise around two groups: one neighbour is a bad guide, many are a good one.
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 600)
    X = sp.csr_matrix(np.eye(2, dtype=np.float32)[group] + 0.01 * rng.random((600, 2)))
    noisy = np.where(rng.random(600) < 0.7, group, rng.integers(0, 2, 600))
    model = KNN(scaling="none").fit(X, np.eye(2, dtype=int)[noisy])
    assert model.n_neighbors_ > 1
    assert KNN(n_neighbors=4).fit(X, np.eye(2, dtype=int)[noisy]).n_neighbors_ == 4


@pytest.mark.parametrize("features", [40, 400])
def test_recovers_planted_labels(features: int) -> None:
    data = make_planted(600, features, 12, random_state=0)
    model = KNN().fit(data.X[:500], data.Y[:500])
    assert precision_at_k(data.Y[500:], model.predict_topk(data.X[500:], 1), 1)[0] > 0.7


def test_points_that_are_not_of_length_one_are_refused(tmp_path: Path) -> None:
    """Sums of huge numbers are infinite, and cosines of those no numbers."""
    X = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=np.float32)
    model = KNN(n_neighbors=2).fit(X, [[0], [1], [1]])
    model.points_.data[0] = 3e38
    with pytest.raises(ModelFormatError, match="the array points must have rows of length 1"):
        KNN.load(model.save(tmp_path / "m"))
