"""1-vs-All against scikit-learn's machines, trained one label at a time."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from dxml.baselines.one_vs_all import OneVsAll
from dxml.data import make_planted
from dxml.metrics import precision_at_k


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_recovers_planted_labels(loss: str) -> None:
    data = make_planted(600, 300, 12, random_state=0)
    model = OneVsAll(loss=loss).fit(data.X[:500], data.Y[:500])  # type: ignore[arg-type]
    assert precision_at_k(data.Y[500:], model.predict_topk(data.X[500:], 1), 1)[0] > 0.8


def test_weights_are_those_of_a_machine_for_each_label() -> None:
    data = make_planted(200, 100, 5, random_state=1)
    model = OneVsAll(prune=0.0, scaling="none").fit(data.X, data.Y)
    for label in range(5):
        y = data.Y[:, [label]].toarray().ravel()
        exact = LinearSVC(C=model.C_, dual=False, tol=1e-8).fit(data.X.astype(np.float64), y)
        difference = model.weights_[:, [label]].toarray().ravel() - exact.coef_[0]
        assert np.linalg.norm(difference) < 0.05 * np.linalg.norm(exact.coef_[0])
        assert abs(model.offset_[label] - exact.intercept_[0]) < 0.05


def test_pruning_drops_small_weights_only() -> None:
    data = make_planted(200, 100, 5, random_state=1)
    full = OneVsAll(prune=0.0).fit(data.X, data.Y).weights_.toarray()
    pruned = OneVsAll(prune=0.05).fit(data.X, data.Y).weights_.toarray()
    np.testing.assert_array_equal(pruned, np.where(np.abs(full) > 0.05, full, 0))
    assert (pruned == 0).sum() > (full == 0).sum()


def test_constant_labels() -> None:
    X = sp.csr_matrix(np.eye(4, dtype=np.float32))
    Y = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 1], [1, 0, 0]])
    ranking = OneVsAll().fit(X, Y).predict_topk(X, 3)
    assert ranking.indices[:, 0].tolist() == [0, 0, 0, 0]  # on every point
    assert ranking.indices[:, 1].tolist() == [2, 2, 2, 2]
    assert ranking.indices[:, 2].tolist() == [-1, -1, -1, -1]  # label 1 is on none
    assert ranking.scores[0, 0] == 1
