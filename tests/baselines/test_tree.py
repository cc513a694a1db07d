"""Partition trees: routes and averages worked out by hand, and a dense oracle."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml.baselines._tree import Forest, Tree, leaf_shares
from dxml.topk import tie_order


def csr(rows) -> sp.csr_matrix:
    return sp.csr_matrix(np.asarray(rows, dtype=np.float32))


@pytest.fixture
def stump() -> Tree:
    """x₀ - x₁ > 0 goes to node 2, which says label 1; the others to node 1: label 0, or 2."""
    return Tree(
        np.array([[1, 2], [-1, -1], [-1, -1]], np.int32),
        np.zeros(3, np.float32),
        csr([[1, -1], [0, 0], [0, 0]]),
        csr([[0, 0, 0], [0.75, 0, 0.5], [0, 1, 0]]),
    )


@pytest.fixture
def chain() -> Tree:
    """Three leaves: x₀ ≤ 1, then x₁ ≤ 2, then the rest."""
    return Tree(
        np.array([[1, 2], [-1, -1], [3, 4], [-1, -1], [-1, -1]], np.int32),
        np.array([-1, 0, -2, 0, 0], np.float32),
        csr([[1, 0], [0, 0], [0, 1], [0, 0], [0, 0]]),
        csr([[0, 0, 0], [0.25, 0, 0], [0, 0, 0], [0, 0.5, 0], [0, 0, 1]]),
    )


POINTS = csr([[3, 1], [1, 3], [0, 0], [2, 3]])


def test_routes_by_hand(stump: Tree, chain: Tree) -> None:
    forest = Forest.join([stump, chain])
    assert forest.n_trees == 2 and forest.roots.tolist() == [0, 3] and forest.depth == 2
    assert forest.route(POINTS).tolist() == [[2, 6], [1, 4], [1, 4], [1, 7]]


def test_zero_goes_to_the_first_child(stump: Tree) -> None:
    assert Forest.join([stump]).route(csr([[1, 1]])).tolist() == [[1]]


def test_means_by_hand(stump: Tree, chain: Tree) -> None:
    ranking = Forest.join([stump, chain]).mean_of_leaves(POINTS, 3, tie_order(np.zeros(3)))
    assert ranking.indices.tolist() == [[1, -1, -1], [0, 2, -1], [0, 2, -1], [2, 0, -1]]
    expected = [[0.75, 0, 0], [0.5, 0.25, 0], [0.5, 0.25, 0], [0.75, 0.375, 0]]
    np.testing.assert_array_equal(ranking.scores, np.array(expected, np.float32))


def test_equal_means_go_to_the_more_frequent_label() -> None:
    leaf = Tree(
        np.array([[-1, -1]], np.int32), np.zeros(1, np.float32), csr([[0, 0]]), csr([[1, 1, 1]])
    )
    ranking = Forest.join([leaf]).mean_of_leaves(POINTS, 3, tie_order(np.array([1, 5, 2])))
    assert ranking.indices.tolist() == [[1, 2, 0]] * 4


def test_arrays_give_the_forest_back(stump: Tree, chain: Tree) -> None:
    forest = Forest.join([stump, chain])
    arrays = forest.arrays()
    for array in arrays.values():
        array.flags.writeable = False
    again = Forest.from_arrays(Arrays(arrays), forest.splits.shape[1], forest.leaves.shape[1])
    np.testing.assert_array_equal(again.route(POINTS), forest.route(POINTS))
    place = tie_order(np.zeros(3))
    np.testing.assert_array_equal(
        again.mean_of_leaves(POINTS, 2, place).scores,
        forest.mean_of_leaves(POINTS, 2, place).scores,
    )


def test_no_rows(stump: Tree) -> None:
    forest = Forest.join([stump])
    assert forest.route(csr(np.empty((0, 2)))).shape == (0, 1)


def test_a_random_tree_routes_like_a_dense_oracle() -> None:
    rng = np.random.default_rng(0)
    depth, d = 6, 15
    n_inner = 2**depth - 1
    children = np.full((2 * n_inner + 1, 2), -1, np.int32)
    children[:n_inner] = np.arange(1, 2 * n_inner + 1).reshape(-1, 2)
    W = rng.integers(-2, 3, (len(children), d)) * (rng.random((len(children), d)) < 0.4)
    W[n_inner:] = 0
    bias = rng.integers(-1, 2, len(children)).astype(np.float32)
    tree = Tree(children, bias, csr(W), csr(np.zeros((len(children), 3))))
    X = rng.integers(0, 4, (300, d)) * (rng.random((300, d)) < 0.5)
    reached = Forest.join([tree, tree]).route(csr(X))
    for x, (leaf, other) in zip(X, reached, strict=True):
        node = 0
        while children[node, 0] >= 0:
            node = children[node, int(W[node] @ x + bias[node] > 0)]
        assert leaf == node and other == node + len(children)


def test_leaf_shares_by_hand() -> None:
    Y = sp.csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 1]], dtype=bool))
    leaf_of = np.array([1, 1, 2, 2], np.int32)
    place = tie_order(np.array([2, 2, 2]))
    shares = leaf_shares(leaf_of, 3, Y, 100, place)
    np.testing.assert_array_equal(shares.toarray(), [[0, 0, 0], [1, 0.5, 0], [0, 0.5, 1]])
    best = leaf_shares(leaf_of, 3, Y, 1, place)
    np.testing.assert_array_equal(best.toarray(), [[0, 0, 0], [1, 0, 0], [0, 0, 1]])


def test_leaf_shares_without_points() -> None:
    nothing = sp.csr_matrix((0, 4), dtype=bool)
    shares = leaf_shares(np.empty(0, np.int32), 1, nothing, 5, tie_order(np.zeros(4)))
    assert shares.shape == (1, 4) and shares.nnz == 0
