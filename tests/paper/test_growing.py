"""DXML learns more points and labels without training anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.data import Dataset, make_planted
from dxml.exceptions import DataFormatError
from dxml.metrics import precision_at_k, recall_at_k
from dxml.paper import DXML
from dxml.paper._growing import new_label_vectors

QUICK = {"epochs": 15, "dim": 16, "hidden": 32, "walks_per_label": 5, "n_neighbors": 5}


@pytest.fixture(scope="module")
def data() -> Dataset:
    return make_planted(900, 150, 12, labels_per_point=2, features_per_point=15, random_state=4)


def test_vectors_of_new_labels_by_hand() -> None:
    """Labels 2, 3 and 4 are new: beside 0 and 1, beside none, and on no point."""
    V = np.array([[2, 0], [0, 2]], np.float32)
    Y = sp.csr_matrix(np.array([[1, 1, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 1, 0]], dtype=bool))
    embedded = np.array([[9, 9], [0, -1], [0, -3]], np.float32)
    found = new_label_vectors(V, Y, embedded)
    np.testing.assert_allclose(found, [[np.sqrt(2), np.sqrt(2)], [0, -2], [0, 0]], rtol=1e-6)


def test_with_the_whole_network_it_is_the_model_of_all_points(data: Dataset) -> None:
    """One cell: what was added ranks as if its points had been embedded from the start."""
    model = DXML(**QUICK, n_partitions=1).fit(data.X[:400], data.Y[:400])
    encoder = model.encoder_
    model.partial_fit(data.X[400:500], data.Y[400:500]).partial_fit(
        data.X[500:800], data.Y[500:800]
    )
    assert model.encoder_ is encoder and model.n_samples_ == 800
    embedded = encoder.embed(model.scaler_.transform(data.X), "cpu")
    ranking = model.predict_topk(data.X[800:], 3)
    frequency = np.asarray(data.Y[:800].sum(axis=0)).ravel()
    assert model.label_frequency_.tolist() == frequency.tolist()
    for row, query in zip(ranking.indices, embedded[800:], strict=True):
        near = np.argsort(np.square(embedded[:800] - query).sum(axis=1), kind="stable")[:5]
        votes = np.asarray(data.Y[near].sum(axis=0)).ravel()
        expected = sorted(range(12), key=lambda label: (-votes[label], -frequency[label], label))
        assert row.tolist() == expected[: (votes > 0).sum()][:3] + [-1] * (3 - (votes > 0).sum())


def test_more_points_rank_better(data: Dataset) -> None:
    model = DXML(**QUICK, n_partitions=2).fit(data.X[:60], data.Y[:60])
    test = data.X[800:], data.Y[800:]
    before = precision_at_k(test[1], model.predict_topk(test[0], 3), 3).mean()
    model.partial_fit(data.X[60:800], data.Y[60:800])
    after = precision_at_k(test[1], model.predict_topk(test[0], 3), 3).mean()
    assert after > before + 0.03


def test_new_labels_are_predicted_and_saved(data: Dataset, tmp_path: Path) -> None:
    fresh = np.asarray(data.Y[:800, 10:].sum(axis=1)).ravel() > 0
    old, new = np.flatnonzero(~fresh), np.flatnonzero(fresh)
    model = DXML(**QUICK, n_partitions=2).fit(data.X[old], data.Y[old][:, :10])
    model.partial_fit(data.X[new], data.Y[new])
    assert model.n_labels_ == 12 and model.label_vectors_.shape == (12, 16)
    carriers = np.flatnonzero(np.asarray(data.Y[800:, 10:].sum(axis=1)).ravel()) + 800
    truth = sp.csr_matrix(data.Y[carriers].toarray() * (np.arange(12) >= 10))
    ranking = model.predict_topk(data.X[carriers], 3)
    assert recall_at_k(truth.astype(bool), ranking, 3)[2] > 0.5
    again = DXML.load(model.save(tmp_path / "m"))
    assert np.array_equal(again.predict_topk(data.X[carriers], 3).indices, ranking.indices)
    again.partial_fit(data.X[:5], data.Y[:5])
    assert again.n_samples_ == 805


def test_names_points_without_labels_and_mistakes(data: Dataset) -> None:
    names = [[f"l{label}" for label in row.indices] for row in data.Y[:200]]
    model = DXML(**QUICK, n_partitions=1).partial_fit(data.X[:200], names)
    model.partial_fit(data.X[200:202], [["l0", "brand new"], []])
    assert "brand new" in model.classes_ and model.n_samples_ == 202
    assert model.train_labels_.shape == (201, model.n_labels_)
    found = model.predict_topk(data.X[200], 2).indices[0]
    assert len(found) == 2
    with pytest.raises(DataFormatError, match="equally many rows, got 2 and 1"):
        model.partial_fit(data.X[:2], [["l0"]])
