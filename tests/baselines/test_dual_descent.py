"""Dual coordinate descent against liblinear."""

from __future__ import annotations

import numba
import numpy as np
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from dxml.baselines._dual_descent import train_labels
from dxml.data import make_planted

DATA = make_planted(200, 80, 5, labels_per_point=1.5, features_per_point=10, random_state=0)


def test_the_optimum_is_liblinears() -> None:
    weights = train_labels(DATA.X, DATA.Y.tocsc(), np.arange(5), 0.7, tol=1e-4, max_iter=5000)
    for label in range(5):
        machine = LinearSVC(C=0.7, tol=1e-8, max_iter=100_000)
        machine.fit(DATA.X, DATA.Y[:, [label]].toarray().ravel())
        assert np.allclose(weights[label, :-1], machine.coef_[0], atol=2e-3)
        assert np.isclose(weights[label, -1], machine.intercept_[0], atol=2e-3)


def test_the_bits_depend_on_the_seed_alone() -> None:
    def train(seed: int) -> bytes:
        columns = DATA.Y.tocsc()
        return train_labels(DATA.X, columns, np.arange(5), 1.0, max_iter=3, seed=seed).tobytes()

    threads = numba.get_num_threads()
    many = train(0)
    numba.set_num_threads(1)
    try:
        assert train(0) == many
    finally:
        numba.set_num_threads(threads)
    assert train(1) != many


def test_a_label_is_trained_alike_alone_and_in_company() -> None:
    columns = DATA.Y.tocsc()
    together = train_labels(DATA.X, columns, np.arange(5), 1.0)
    assert np.array_equal(train_labels(DATA.X, columns, np.array([3]), 1.0)[0], together[3])


def test_points_without_features_move_only_the_bias() -> None:
    X = sp.csr_matrix((4, 3), dtype=np.float32)
    Y = sp.csc_matrix(np.array([[1], [1], [1], [0]], dtype=bool))
    weights = train_labels(X, Y, np.array([0]), 1.0, tol=1e-4, max_iter=1000)
    assert (weights[0, :-1] == 0).all() and weights[0, -1] > 0


def test_by_hand() -> None:
    # One feature x = ±1 with its sign as label: by symmetry b = 0, and
    # w²/2 + C n (1 − w)² is least at w = 2 C n / (1 + 2 C n) = 8/9 for C n = 4.
    X = sp.csr_matrix(np.array([[1.0], [-1.0]] * 2, np.float32))
    Y = sp.csc_matrix(np.array([[1], [0]] * 2, dtype=bool))
    weights = train_labels(X, Y, np.array([0]), 1.0, tol=1e-4, max_iter=1000)
    assert np.allclose(weights[0], [8 / 9, 0], atol=1e-3)
