"""The nearest by cosine: against brute force, by hand, and one way of searching by the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dxml._core.blocks import running_on
from dxml._core.packed import NO_SCALE
from dxml._core.threads import threads
from dxml._neighbors.cosine import (
    FEW_REACHED,
    Columns,
    Neighbours,
    cosine_weights,
    nearest_by_cosine,
    rare_features,
    unit_rows,
)


def unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def brute_force(queries: np.ndarray, points: np.ndarray, k: int) -> np.ndarray:
    cosines = queries @ points.T
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    return np.where(np.take_along_axis(cosines, order, axis=1) > 0, order, -1)


@settings(max_examples=25)
@given(
    st.integers(1, 30), st.integers(1, 12), st.integers(1, 8), st.integers(1, 40), st.integers(0)
)
def test_sparse_search_is_exact(n: int, d: int, n_queries: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Distinct random values, so that rounding cannot swap equals.
    points = unit(rng.random((n, d)) * (rng.random((n, d)) < 0.4))
    queries = unit(rng.random((n_queries, d)) * (rng.random((n_queries, d)) < 0.4))
    ids, cosines = nearest_by_cosine(sp.csr_matrix(queries), Columns.of(sp.csr_matrix(points)), k)
    expected = np.full((n_queries, k), -1)
    expected[:, : min(k, n)] = brute_force(queries, points, k)
    found = np.where(ids >= 0, np.einsum("qd,qkd->qk", queries, points[ids]), 0)
    best = np.where(expected >= 0, np.einsum("qd,qkd->qk", queries, points[expected]), 0)
    np.testing.assert_allclose(found, best, atol=1e-6)
    np.testing.assert_allclose(cosines, found, atol=1e-6)
    assert ((ids >= 0) == (expected >= 0)).all()


def test_equals_are_taken_in_the_order_of_training() -> None:
    points = sp.csr_matrix(np.array([[0, 1], [1, 0], [1, 0], [1, 0]], dtype=np.float32))
    queries = sp.csr_matrix(np.array([[1, 0]], dtype=np.float32))
    ids, cosines = nearest_by_cosine(queries, Columns.of(points), 4)
    assert ids.tolist() == [[1, 2, 3, -1]]
    assert cosines.tolist() == [[1, 1, 1, 0]]


def test_both_ways_of_searching_find_the_same() -> None:
    rng = np.random.default_rng(0)
    points = sp.csr_matrix(unit(rng.standard_normal((200, 16))))
    queries = sp.csr_matrix(unit(rng.standard_normal((30, 16))))
    neighbours = Neighbours(points)
    assert neighbours.dense
    ids, cosines = neighbours.search(queries, 7)
    other_ids, other_cosines = nearest_by_cosine(queries, Columns.of(points), 7)
    np.testing.assert_array_equal(ids, other_ids)
    np.testing.assert_allclose(cosines, other_cosines, atol=1e-6)


@pytest.mark.parametrize("density", [0.1, 0.9])
def test_rows_without_features_are_nobodys_neighbours(density: float) -> None:
    rng = np.random.default_rng(1)
    points = unit(rng.random((40, 10)) * (rng.random((40, 10)) < density))
    points[[3, 8]] = 0
    queries = np.concatenate([points[:5], -points[:1]])
    found = Neighbours(sp.csr_matrix(points))
    ids, cosines = found.search(sp.csr_matrix(queries), 40)
    assert np.array_equal(ids >= 0, brute_force(queries, points, 40) >= 0)
    assert not np.isin(ids, [3, 8]).any() and (ids[3] == -1).all() and (ids[5] == -1).all()
    exact = np.where(ids >= 0, np.einsum("qd,qkd->qk", queries, points[ids]), 0)
    np.testing.assert_allclose(cosines, exact, atol=1e-6)


def test_the_number_of_threads_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    points = sp.csr_matrix(unit(rng.random((90, 30)) * (rng.random((90, 30)) < 0.2)))
    many = Neighbours(points).search(points, 6)
    with threads(1):
        one = Neighbours(points).search(points, 6)
    assert np.array_equal(many[0], one[0]) and np.array_equal(many[1], one[1])


def test_no_queries() -> None:
    points = sp.csr_matrix(np.eye(9, dtype=np.float32))
    ids, cosines = Neighbours(points).search(points[:0], 2)
    assert ids.shape == cosines.shape == (0, 2)


def test_rows_of_length_one() -> None:
    found = unit_rows(sp.csr_matrix(np.float32([[3, 0, -4], [0, 0, 0], [0, 2, 0]])))
    np.testing.assert_allclose(found.toarray(), [[0.6, 0, -0.8], [0, 0, 0], [0, 1, 0]], rtol=1e-6)


def test_votes_by_hand() -> None:
    ids = np.array([[5, 2, 7], [4, 1, -1]], np.int32)
    cosines = np.float32([[0.8, 0.4, 0.2], [0.5, 0.25, 0]])
    found = cosine_weights(ids, cosines, 2.0)
    np.testing.assert_allclose(found[0], np.array([16, 4, 1]) / 21, rtol=1e-6)
    np.testing.assert_allclose(found[1, :2], np.array([4, 1]) / 5, rtol=1e-6)
    assert found.dtype == np.float32


@pytest.mark.parametrize("power", [0.5, 2.0, 32.0, 1000.0])
def test_votes_add_up_to_one(power: float) -> None:
    rng = np.random.default_rng(0)
    ids = np.arange(60, dtype=np.int32).reshape(10, 6)
    ids[5:, 3:], ids[9] = -1, -1
    cosines = np.where(ids >= 0, -np.sort(-rng.random((10, 6))), 0).astype(np.float32)
    cosines[[2, 6]] = 0  # neighbours at a right angle count alike
    found = cosine_weights(ids, cosines, power)
    np.testing.assert_allclose((found * (ids >= 0)).sum(axis=1)[:9], 1, rtol=1e-5)
    assert np.isfinite(found).all() and (found[ids >= 0] > 0).all()
    np.testing.assert_allclose(found[2], 1 / 6, rtol=1e-5)
    np.testing.assert_allclose(found[6, :3], 1 / 3, rtol=1e-5)
    assert (np.diff(found[:2], axis=1) <= 0).all()


def test_common_features_are_left_out() -> None:
    """Feature j is in j + 1 of ten points, all of one weight."""
    X = sp.csr_matrix((np.arange(10)[:, None] <= np.arange(4)[None]).astype(np.float32))
    assert rare_features(X, 0.3, kept_weight=0.6).tolist() == [True, True, True, False]
    assert rare_features(X, 0.2, kept_weight=0.3).tolist() == [True, True, False, False]


def test_the_share_doubles_until_enough_weight_is_kept() -> None:
    """Features in 1, 2, 4 and 8 of eight points, with 1, 2, 4 and 8 of 15 of the weight."""
    counts = np.array([1, 2, 4, 8])
    X = sp.csr_matrix((np.arange(8)[:, None] < counts).astype(np.float32))

    def kept(needed: float) -> list[bool]:
        return rare_features(X, 1 / 8, kept_weight=needed).tolist()

    assert kept(1 / 15) == [True, False, False, False]
    assert kept(3 / 15) == [True, True, False, False]
    assert kept(7 / 15) == [True, True, True, False]
    assert kept(0.5) == [True, True, True, True]
    X.data *= -3  # squared weights: neither sign nor scale matters
    assert kept(7 / 15) == [True, True, True, False]
    heavy = X.tolil()
    heavy[0, 0] = 100
    assert rare_features(heavy.tocsr(), 1 / 8, 0.9).tolist() == [True, False, False, False]


def test_features_on_no_point_are_searched_by() -> None:
    X = sp.csr_matrix((5, 3), dtype=np.float32)
    assert rare_features(X).tolist() == [True] * 3
    assert rare_features(X[:0]).tolist() == [True] * 3


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int8])
def test_packed_columns_unpack_to_rows_of_length_1(kind: type) -> None:
    """By hand: a row of 3 and 4 and a row of nothing."""
    starts, rows = np.array([0, 1, 2], np.int32), np.array([0, 0], np.uint16)
    scale = np.array([0.5, 0], np.float32) if kind is np.int8 else NO_SCALE
    unit = np.array([0.4 if kind is np.int8 else 0.2, 0], np.float32)
    columns = Columns(starts, rows, np.array([3, 4], kind), unit, scale)
    np.testing.assert_allclose(columns.unpacked().toarray(), [[0.6, 0.8], [0, 0]], rtol=1e-6)
    ids, cosines = nearest_by_cosine(sp.csr_matrix(np.float32([[1, 0], [0, 1]])), columns, 2)
    assert ids.tolist() == [[0, -1], [0, -1]]
    np.testing.assert_allclose(cosines, [[0.6, 0], [0.8, 0]], rtol=1e-6)


@pytest.mark.parametrize(
    ("n", "d", "of_points", "of_queries"), [(50, 9, 0.3, 0.4), (2000, 300, 0.01, 0.04)]
)
def test_numpy_finds_what_compiled_code_finds(
    monkeypatch: pytest.MonkeyPatch, n: int, d: int, of_points: float, of_queries: float
) -> None:
    """To the bit, with many ties, empty rows and fewer neighbours than wanted.

    Of the second data, some queries reach a few of the points only, and others many.
    """
    rng = np.random.default_rng(0)
    points = sp.csr_matrix(
        rng.integers(-1, 3, (n, d)) * (rng.random((n, d)) < of_points), dtype="f4"
    )
    queries = sp.csr_matrix(
        rng.integers(0, 3, (20, d)) * (rng.random((20, d)) < of_queries), dtype="f4"
    )
    reached = queries.astype(bool).astype(int) @ points.astype(bool).astype(int).getnnz(axis=0)
    assert d < 300 or 0 < (reached <= n // FEW_REACHED).sum() < 20
    for scaled in (points, sp.csr_matrix(points / np.float32(3))):
        for k in (1, 5, 50):
            found = []
            for spared in (False, True):
                monkeypatch.setattr("dxml._neighbors.cosine.spare", lambda n, it=spared: it)
                found.append(nearest_by_cosine(queries, Columns.of(scaled), k))
            assert np.array_equal(found[0][0], found[1][0])
            assert np.array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize(("n", "largest"), [(3_000, 1024), (32_000, 2000), (80_000, 4096)])
def test_many_queries_go_to_a_cluster_in_larger_blocks(n: int, largest: int) -> None:
    """A block costs some hundredths of a second there, and sixteen are enough to share out."""
    sizes: list[int] = []

    class Counting:
        n_cores = 40

        def run(self, function: Any, shared: Any, blocks: Any) -> Any:
            for block in blocks:
                sizes.append(block.shape[0])
                yield function(shared, block)

    points = sp.random(50, 20, 0.2, format="csr", dtype=np.float32, random_state=0)
    queries = points[np.arange(n) % 50]
    neighbours = Neighbours(points)
    with running_on(Counting()):  # type: ignore[arg-type]
        found = neighbours.search(queries, 3)
    assert max(sizes) == largest and sum(sizes) == n
    for one, other in zip(found, neighbours.search(queries, 3), strict=True):
        np.testing.assert_array_equal(one, other)
