"""Shapes of label trees: planted groups, a split written plainly, and relations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from dxml._core.threads import threads
from dxml._learners.tree_shape import SMALL, TreeShape, grow_tree, mean_points
from dxml.data import Dataset, make_planted


def grown(data: Dataset, leaf: int = 4, seed: int = 0) -> TreeShape:
    return grow_tree(data.X, data.Y, np.random.default_rng(seed), leaf)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return make_planted(300, 80, 21, 1.5, 8, noise=0.1, random_state=1)


def ways(shape: TreeShape) -> list[list[int]]:
    """The nodes from each label's leaf up to the root; none where it has no leaf."""
    found = []
    for leaf in shape.leaves.tolist():
        way = []
        while leaf >= 0:
            way.append(leaf)
            leaf = int(shape.parents[leaf])
        found.append(way)
    return found


def test_halves_are_even_and_leaves_small(data: Dataset) -> None:
    shape = grown(data)
    inside = [[label for label, way in enumerate(ways(shape)) if node in way] for node in range(9)]
    for node in range(shape.n_nodes):
        children = np.flatnonzero(shape.parents == node)
        assert (children > node).all() and len(children) in (0, 2)
        size = sum(node in way for way in ways(shape))
        if len(children):
            left, right = (sum(child in way for way in ways(shape)) for child in children)
            assert size >= 4 and left + right == size and abs(left - right) <= 1
        else:
            assert 0 < size < 4
    assert shape.parents[0] == -1 and sorted(inside[0]) == list(range(21))


def test_like_labels_stay_together() -> None:
    """Labels 0 to 3 have one set of features, 4 to 7 another."""
    rng = np.random.default_rng(0)
    group = np.arange(200) % 2
    X = rng.random((200, 20)) * (np.arange(20) // 10 == group[:, None])
    Y = np.zeros((200, 8), bool)
    Y[np.arange(200), 4 * group + rng.integers(4, size=200)] = True
    features, labels = sp.csr_matrix(X, dtype=np.float32), sp.csr_matrix(Y)
    for seed in range(5):
        shape = grow_tree(features, labels, np.random.default_rng(seed), leaf=5)
        assert shape.n_nodes == 3
        assert len(set(shape.leaves[:4])) == len(set(shape.leaves[4:])) == 1
        assert shape.leaves[0] != shape.leaves[7]


def test_another_seed_another_tree(data: Dataset) -> None:
    first, again, other = grown(data), grown(data), grown(data, seed=1)
    assert np.array_equal(first.leaves, again.leaves)
    assert not np.array_equal(first.leaves, other.leaves)


def test_a_label_on_no_point_has_no_leaf(data: Dataset) -> None:
    Y = sp.csr_matrix(data.Y.toarray() & (np.arange(21) != 5))
    shape = grow_tree(data.X, Y, np.random.default_rng(0), 4)
    assert shape.leaves[5] == -1 and (np.delete(shape.leaves, 5) > 0).all()


def test_mean_points_are_of_length_one_without_small_weights(data: Dataset) -> None:
    X = data.X.toarray().astype(np.float64)
    sums = data.Y.toarray().astype(np.float64).T @ X
    expected = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    expected[np.abs(expected) < SMALL] = 0
    assert (expected == 0).sum() > (sums == 0).sum(), "some weights are small"
    for count in (1, 2):
        with threads(count):
            np.testing.assert_allclose(mean_points(data.X, data.Y).toarray(), expected, atol=1e-6)


def test_the_mean_of_no_point_is_empty(data: Dataset) -> None:
    Y = sp.csr_matrix(data.Y.toarray() & (np.arange(21) != 5))
    assert np.flatnonzero(np.diff(mean_points(data.X, Y).indptr) == 0).tolist() == [5]
    assert not mean_points(data.X, sp.csr_matrix(data.Y.shape, dtype=bool)).nnz


def halves(means: npt.NDArray[np.float64], first: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Balanced 2-means from two first points: which are in the second half."""
    centres, right, best = means[first], np.zeros(len(means), bool), 0.0
    for turn in range(10):
        likes = means @ (centres[1] - centres[0])
        right[np.argsort(likes, kind="stable")] = np.arange(len(means)) >= (len(means) + 1) // 2
        quality = np.where(right, likes, -likes).sum()
        if turn and quality <= best * (1 + 1e-4):
            break
        best = quality
        sums = np.stack([means[~right].sum(axis=0), means[right].sum(axis=0)])
        centres = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return right


@pytest.mark.parametrize("count", [1, 2])
def test_nodes_are_split_as_one_after_the_other(data: Dataset, count: int) -> None:
    """The labels of a node wait until the later half of its parent is split to the end."""
    means = mean_points(data.X, data.Y).toarray().astype(np.float64)
    rng = np.random.default_rng(3)
    parents, leaves, waiting = [-1], np.full(21, -1), [(0, np.arange(21))]
    while waiting:
        node, labels = waiting.pop()
        if len(labels) < 3:
            leaves[labels] = node
            continue
        right = halves(means[labels], rng.choice(len(labels), 2, replace=False))
        for half in (labels[~right], labels[right]):
            waiting.append((len(parents), half))
            parents.append(node)
    with threads(count):
        shape = grown(data, leaf=3, seed=3)
    assert shape.parents.tolist() == parents and shape.leaves.tolist() == leaves.tolist()
