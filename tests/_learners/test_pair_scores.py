"""Pairs scored by spreading out points or labels: the dense product, and the same bits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.packed import NO_SCALE
from dxml._learners import pair_scores
from dxml._learners.pair_scores import score_pairs


def random_case(seed: int = 0) -> tuple[sp.csr_matrix, sp.csr_matrix, sp.csr_matrix]:
    """40 points, 12 labels of which the first have many weights, and most pairs of both."""
    rng = np.random.default_rng(seed)
    X = sp.random(40, 300, 0.05, "csr", dtype=np.float32, random_state=rng)
    dense = rng.standard_normal((12, 300)).astype(np.float32)
    dense[6:, 10:] = 0
    dense[3, 50:] = 0
    return X, sp.csr_matrix(dense), sp.csr_matrix(rng.random((40, 12)) < 0.7)


def scored(X: sp.csr_matrix, pairs: sp.csr_matrix, W: sp.csr_matrix) -> np.ndarray:
    out = np.full(pairs.nnz, np.nan, np.float32)
    score_pairs(X, pairs, W.indptr[:-1], W.indptr[1:], W.indices, W.data, NO_SCALE, out)
    return out


def test_every_pair_is_the_dense_product_minus_one() -> None:
    X, W, pairs = random_case()
    rows, labels = pairs.nonzero()
    wanted = (X.toarray() @ W.toarray().T)[rows, labels] - 1
    np.testing.assert_allclose(scored(X, pairs, W), wanted, atol=1e-5)


def test_some_labels_are_spread_out_and_others_are_not() -> None:
    X, W, pairs = random_case()
    often, begins, places, points = pair_scores._by_label(
        np.diff(X.indptr), pairs.indptr, pairs.indices, W.indptr[:-1], W.indptr[1:]
    )
    assert often.tolist() == [True] * 6 + [False] * 6
    rows, labels = pairs.nonzero()
    for number in range(6):
        own = slice(begins[number], begins[number + 1])
        assert places[own].tolist() == np.flatnonzero(labels == number).tolist()
        assert points[own].tolist() == rows[labels == number].tolist()


def test_both_ways_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    X, W, pairs = random_case(1)
    by_labels = scored(X, pairs, W)
    monkeypatch.setattr(pair_scores, "FEW_ROWS", 1000)
    assert np.array_equal(by_labels, scored(X, pairs, W))
    one_by_one = [scored(X[i], pairs[i], W) for i in range(40)]
    assert np.array_equal(by_labels, np.concatenate(one_by_one))


@pytest.mark.parametrize(
    ("rows", "n_labels", "counted"),
    [(40, 12, True), (8, 12, True), (3, 12, False), (8, 900, False)],
)
def test_labels_are_counted_where_few_points_are_worth_it(
    monkeypatch: pytest.MonkeyPatch, rows: int, n_labels: int, counted: bool
) -> None:
    """8 points with 12 labels of many weights are; with 900 labels, all but 12 empty, they are not.

    A service with two workers has batches of half as many points as one with one.
    """
    X, W, pairs = random_case(2)
    W.resize(n_labels, W.shape[1])
    pairs.resize(40, n_labels)
    one_by_one = np.concatenate([scored(X[i], pairs[i], W) for i in range(rows)])
    asked = []
    by_label = pair_scores._by_label
    monkeypatch.setattr(
        pair_scores, "_by_label", lambda *given: asked.append(1) or by_label(*given)
    )
    assert np.array_equal(scored(X[:rows], pairs[:rows], W), one_by_one)
    assert bool(asked) == counted
