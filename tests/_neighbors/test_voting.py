"""The vote, by hand and against a dense sum."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.threads import threads
from dxml._neighbors.voting import vote, vote_pairs
from dxml.topk import tie_order


def test_by_hand() -> None:
    Y = sp.csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=bool))
    neighbours = np.array([[0, 1, 2], [2, -1, -1]], np.int32)
    ranking = vote(neighbours, np.ones((2, 3), np.float32), Y, 3, tie_order(np.array([2, 1, 1])))
    assert ranking.indices.tolist() == [[0, 1, 2], [2, -1, -1]]
    assert ranking.scores.tolist() == [[2, 1, 1], [1, 0, 0]]


def test_equals_the_dense_sum() -> None:
    rng = np.random.default_rng(0)
    Y = sp.csr_matrix(rng.random((60, 12)) < 0.3)
    neighbours = rng.integers(-1, 60, (25, 9)).astype(np.int32)
    weights = rng.random((25, 9)).astype(np.float32)
    ranking = vote(neighbours, weights, Y, 12, tie_order(np.bincount(Y.indices, minlength=12)))
    dense = np.zeros((25, 12))
    for i in range(25):
        for j in range(9):
            if neighbours[i, j] >= 0:
                dense[i] += weights[i, j] * Y[neighbours[i, j]].toarray()[0]
    assert np.allclose(ranking.to_csr(12).toarray(), dense, atol=1e-5)
    assert (np.diff(ranking.scores, axis=1) <= 0).all()


def test_no_queries() -> None:
    Y = sp.csr_matrix(np.ones((1, 2), dtype=bool))
    nothing = vote(
        np.empty((0, 3), np.int32), np.empty((0, 3), np.float32), Y, 2, tie_order([1, 1])
    )
    assert nothing.indices.shape == (0, 2)


def test_weights_may_be_zero_or_cancel() -> None:
    Y = sp.csr_matrix(np.ones((50, 2), dtype=bool))
    neighbours = np.arange(50, dtype=np.int32)[None]
    for weights in (np.zeros((1, 50)), np.resize([1.0, -1.0], (1, 50))):
        ranking = vote(neighbours, weights.astype(np.float32), Y, 2, tie_order(np.array([1, 2])))
        assert ranking.indices.tolist() == [[1, 0]] and ranking.scores.tolist() == [[0, 0]]


def test_pairs_by_hand() -> None:
    Y = sp.csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=bool))
    neighbours = np.array([[0, 1], [2, -1], [-1, -1]], np.int32)
    weights = np.array([[0.75, 0.25], [0.5, 9], [9, 9]], np.float32)
    pairs = sp.csr_matrix(
        (np.ones(6, bool), np.int32([2, 0, 1, 2, 0, 1]), np.int32([0, 3, 5, 6])), shape=(3, 3)
    )
    assert vote_pairs(neighbours, weights, Y, pairs).tolist() == [0, 1, 0.75, 0.5, 0, 0]


def test_pairs_equal_the_vote() -> None:
    rng = np.random.default_rng(1)
    Y = sp.csr_matrix(rng.random((60, 12)) < 0.3)
    neighbours = rng.integers(-1, 60, (25, 9)).astype(np.int32)
    weights = rng.random((25, 9)).astype(np.float32)
    place = tie_order(np.bincount(Y.indices, minlength=12))
    dense = vote(neighbours, weights, Y, 12, place).to_csr(12).toarray()
    pairs = sp.csr_matrix(rng.random((25, 12)) < 0.5)
    found = vote_pairs(neighbours, weights, Y, pairs)
    rows = np.repeat(np.arange(25), np.diff(pairs.indptr))
    np.testing.assert_allclose(found, dense[rows, pairs.indices], rtol=1e-6)
    with threads(1):
        assert np.array_equal(vote_pairs(neighbours, weights, Y, pairs), found)


def test_no_pairs() -> None:
    Y = sp.csr_matrix(np.ones((2, 3), dtype=bool))
    nobody = np.empty((0, 2), np.int32)
    found = vote_pairs(nobody, nobody.astype(np.float32), Y, sp.csr_matrix((0, 3), dtype=bool))
    assert found.shape == (0,) and found.dtype == np.float32
    someone = np.zeros((1, 2), np.int32)
    weights = np.ones((1, 2), np.float32)
    assert vote_pairs(someone, weights, Y, sp.csr_matrix((1, 3), dtype=bool)).shape == (0,)


def test_numpy_counts_what_compiled_code_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit, with ties and neighbours that are missing."""
    rng = np.random.default_rng(0)
    Y = sp.csr_matrix(rng.random((60, 12)) < 0.3)
    place = tie_order(np.bincount(Y.indices, minlength=12))
    neighbours = rng.integers(-1, 60, (25, 9)).astype(np.int32)
    neighbours[3] = -1
    pairs = sp.csr_matrix(rng.random((25, 12)) < 0.5)
    for weights in (rng.random((25, 9)), rng.integers(1, 3, (25, 9))):
        found = []
        for spared in (False, True):
            monkeypatch.setattr("dxml._neighbors.voting.spare", lambda n, it=spared: it)
            ranking = vote(neighbours, weights.astype(np.float32), Y, 7, place)
            of_pairs = vote_pairs(neighbours, weights.astype(np.float32), Y, pairs)
            found.append((ranking.indices, ranking.scores, of_pairs))
        for compiled, plain in zip(*found, strict=True):
            assert np.array_equal(compiled, plain)
