"""Compressed sensing: exact recovery where theory promises it, and matching pursuit by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import OrthogonalMatchingPursuit

from dxml.baselines.cs import CompressedSensing, matching_pursuit
from dxml.data import make_planted
from dxml.metrics import precision_at_k
from dxml.topk import tie_order


def allowed(n_labels: int) -> np.ndarray:
    return np.zeros(n_labels, dtype=np.float32)


def test_sparse_vectors_are_recovered_exactly() -> None:
    rng = np.random.default_rng(0)
    A = (rng.standard_normal((60, 200)) / np.sqrt(60)).astype(np.float32)
    Y = np.zeros((20, 200), dtype=np.float32)
    for row in Y:
        row[rng.choice(200, 4, replace=False)] = rng.uniform(0.5, 1.5, 4)
    ranking = matching_pursuit(Y @ A.T, A, allowed(200), 4, 4, tie_order(np.ones(200)))
    np.testing.assert_allclose(ranking.to_csr(200).toarray(), Y, atol=1e-4)


def test_matching_pursuit_by_hand() -> None:
    # Columns e1, e2 and (e1 + e2)/√2; z = (3, 1) correlates with them by 3, 1 and 4/√2 < 3.
    # After e1, (0, 1) is left, with which e2 correlates by 1 and the third by 1/√2.
    half = 1 / np.sqrt(2)
    A = np.array([[1, 0, half], [0, 1, half]], dtype=np.float32)
    z = np.array([[3, 1]], dtype=np.float32)
    one = matching_pursuit(z, A, allowed(3), 1, 3, tie_order(np.ones(3)))
    assert one.indices.tolist() == [[0, -1, -1]]
    two = matching_pursuit(z, A, allowed(3), 2, 3, tie_order(np.ones(3)))
    assert two.indices.tolist() == [[0, 1, -1]]
    np.testing.assert_allclose(two.scores, [[3, 1, 0]], atol=1e-4)


def test_it_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    A = rng.standard_normal((30, 50)).astype(np.float32)
    A /= np.linalg.norm(A, axis=0)
    # Positive mixtures with little noise, for which both take positive correlations only.
    y = np.zeros(50)
    y[[3, 10, 40]] = [1, 2, 3]
    z = (A @ y + 0.01 * rng.standard_normal(30)).astype(np.float32)
    theirs = OrthogonalMatchingPursuit(n_nonzero_coefs=3, fit_intercept=False).fit(A, z).coef_
    ours = matching_pursuit(z[None], A, allowed(50), 3, 3, tie_order(np.ones(50)))
    np.testing.assert_allclose(ours.to_csr(50).toarray()[0], theirs, atol=1e-4)


def test_forbidden_and_uncorrelated_labels_are_not_taken() -> None:
    A = np.eye(3, dtype=np.float32)
    offset = np.array([-np.inf, 0, 0], dtype=np.float32)
    z = np.array([[5, 1, -2], [0, 0, 0]], dtype=np.float32)
    ranking = matching_pursuit(z, A, offset, 3, 3, tie_order(np.ones(3)))
    assert ranking.indices.tolist() == [[1, -1, -1], [-1, -1, -1]]


def test_equal_columns_do_no_harm() -> None:
    A = np.ones((2, 3), dtype=np.float32)
    ranking = matching_pursuit(
        np.ones((1, 2), np.float32), A, allowed(3), 3, 3, np.arange(3, dtype=np.int32)
    )
    assert np.isfinite(ranking.scores).all()
    assert ranking.indices[0, 0] == 0


def test_sparsity_follows_the_labels() -> None:
    few = make_planted(200, 100, 30, labels_per_point=2, random_state=0)
    many = make_planted(200, 100, 30, labels_per_point=9, random_state=0)
    assert CompressedSensing().fit(few.X, few.Y).sparsity_ == 5
    assert CompressedSensing().fit(many.X, many.Y).sparsity_ == 9
    assert CompressedSensing(sparsity=3).fit(many.X, many.Y).sparsity_ == 3


@pytest.mark.parametrize("decoder", ["omp", "correlation"])
def test_recovers_planted_labels(decoder: str) -> None:
    data = make_planted(600, 300, 12, random_state=0)
    model = CompressedSensing(decoder=decoder, dim=40)  # type: ignore[arg-type]
    model.fit(data.X[:500], data.Y[:500])
    assert precision_at_k(data.Y[500:], model.predict_topk(data.X[500:], 1), 1)[0] > 0.75
