"""Label trees: planted groups, brute force, and relations."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from dxml._core.packed import Packed
from dxml._core.precision import Precision, pack_sparse
from dxml._core.threads import threads
from dxml._learners.label_trees import LabelTree, fit_tree, tree_signs
from dxml._learners.linear_training import fit_linear
from dxml._learners.tree_shape import TreeShape, grow_tree
from dxml.data import Dataset, make_planted

HAND = TreeShape(np.array([-1, 0, 0, 1, 1], np.int32), np.array([3, 4, 2, -1, 2], np.int32))
"""The root has nodes 1 and 2, node 1 has 3 and 4; the fourth label is on no point."""


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


@pytest.mark.parametrize("shape", ["by hand", "grown"])
def test_who_learns_from_whom(shape: str, data: Dataset) -> None:
    if shape == "grown":
        tree, Y = grown(data), data.Y.toarray()
    else:
        tree = HAND
        Y = np.random.default_rng(2).random((40, 5)) < 0.3
        Y[:, 3] = False
    way = ways(tree)
    of_node = np.array(
        [
            [
                any(node in way[label] for label in np.flatnonzero(row))
                for node in range(tree.n_nodes)
            ]
            for row in Y
        ]
    )
    expected = np.zeros((tree.n_nodes + tree.n_labels, len(Y)), np.int8)
    for node in range(1, tree.n_nodes):
        parent = of_node[:, tree.parents[node]]
        expected[node] = np.where(parent, np.where(of_node[:, node], 1, -1), 0)
    for label, leaf in enumerate(tree.leaves):
        if leaf >= 0:
            own = np.where(Y[:, label], 1, -1)
            expected[tree.n_nodes + label] = np.where(of_node[:, leaf], own, 0)
    assert np.array_equal(tree_signs(sp.csr_matrix(Y), tree).toarray(), expected)


def some_tree(d: int = 12) -> LabelTree:
    rng = np.random.default_rng(3)
    rows = HAND.n_nodes + HAND.n_labels
    weights = sp.random(rows, d, 0.5, "csr", np.float32, 4, rng.standard_normal)
    return LabelTree(HAND, sp.csr_matrix(weights), rng.standard_normal(rows).astype(np.float32))


def by_hand(tree: LabelTree, X: sp.csr_matrix) -> npt.NDArray[Any]:
    """The scores of all labels, and in a last column that of a label nobody knows."""
    margins = X.toarray() @ tree.weights.toarray().T + tree.biases
    cost = -(np.maximum(0, 1 - margins) ** 2)
    cost[:, 0] = 0
    out = np.zeros((X.shape[0], tree.shape.n_labels + 1))
    down = {node: cost[:, way].sum(axis=1) for node, way in ((2, [2]), (3, [3, 1]), (4, [4, 1]))}
    best = np.max(list(down.values()), axis=0)
    for label, leaf in enumerate(tree.shape.leaves.tolist()):
        own = cost[:, tree.shape.n_nodes + label]
        out[:, label] = best if leaf < 0 else down[leaf] + own
    out[:, -1] = best
    return out


def some_points(d: int = 12) -> sp.csr_matrix:
    X = sp.random(30, d, 0.3, "csr", np.float32, 5).tolil()
    X[4] = 0
    return sp.csr_matrix(X)


def test_scores_are_those_of_the_way_down() -> None:
    tree, X = some_tree(), some_points()
    expected = by_hand(tree, X)
    every = sp.csr_matrix(np.ones((30, 6), bool))
    for way in (True, False):
        found = tree.scores(X, every, way).reshape(30, 6)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    some = sp.csr_matrix(np.random.default_rng(6).random((30, 6)) < 0.4)
    rows = np.repeat(np.arange(30), np.diff(some.indptr))
    expected_some = expected[rows, some.indices]
    np.testing.assert_allclose(tree.scores(X, some), expected_some, rtol=1e-4, atol=1e-4)


def test_neither_threads_nor_the_batch_matter() -> None:
    tree, X = some_tree(), some_points()
    every = sp.csr_matrix(np.ones((30, 5), bool))
    with threads(2):
        both = tree.scores(X, every)
    with threads(1):
        assert np.array_equal(tree.scores(X, every), both)
        assert np.array_equal(tree.scores(X[7], every[7]), both[35:40])


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_numpy_and_packed_weights_score_alike(
    precision: Precision, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit, for points without anything and labels that are on no tree too."""
    grown_tree = fit_tree(data.X, data.Y, grown(data))
    for tree, X in ((some_tree(), some_points()), (grown_tree, data.X[:60])):
        packed = Packed("tree", pack_sparse("tree", sp.csr_matrix(tree.weights), precision))
        n_labels = tree.shape.n_labels
        for more in (0, 2):
            chosen = np.random.default_rng(8).random((X.shape[0], n_labels + more)) < 0.6
            if not more:
                chosen &= tree.shape.leaves >= 0
            pairs = sp.csr_matrix(chosen)
            found = []
            for weights, spared, every_label in product(
                (packed, packed.unpacked()), (False, True), (False, True)
            ):
                monkeypatch.setattr("dxml._learners.label_trees.spare", lambda n, it=spared: it)
                each = LabelTree(tree.shape, weights, tree.biases)
                found.append(each.scores(X, pairs, every_label))
            for scores in found[1:]:
                assert np.array_equal(scores, found[0])
        best = []
        for weights, spared in product((packed, packed.unpacked()), (False, True)):
            monkeypatch.setattr("dxml._learners.label_trees.spare", lambda n, it=spared: it)
            best.append(LabelTree(tree.shape, weights, tree.biases).best_labels(X, 4))
        for labels in best[1:]:
            assert np.array_equal(labels, best[0])


def test_new_features_weigh_nothing() -> None:
    tree, X = some_tree(), some_points()
    wider = sp.csr_matrix(sp.hstack([X, np.ones((30, 2), np.float32)]))
    every = sp.csr_matrix(np.ones((30, 5), bool))
    assert np.array_equal(tree.widened(14).scores(wider, every), tree.scores(X, every))


def test_classifiers_are_linear_heads_with_a_bias(data: Dataset) -> None:
    """Of one more feature that is always 1; its weight and the fixed offset are the bias."""
    shape = grown(data)
    tree = fit_tree(data.X, data.Y, shape, max_iter=4, seed=9)
    ones = np.ones((data.X.shape[0], 1), np.float32)
    head, _ = fit_linear(
        sp.csr_matrix(sp.hstack([data.X, ones]), dtype=np.float32),
        tree_signs(data.Y, shape),
        max_iter=4,
        prune=0.1,
        seed=9,
    )
    expected = head.weights.toarray()
    assert np.array_equal(tree.weights.toarray(), expected[:, :-1])
    assert np.array_equal(tree.biases, expected[:, -1] - 1)


def test_a_tree_finds_the_labels_of_other_points(data: Dataset) -> None:
    train, test = data.take(np.arange(240)), data.take(np.arange(240, 300))
    tree = fit_tree(train.X, train.Y, grown(train))
    every = sp.csr_matrix(np.ones(test.Y.shape, bool))
    first = tree.scores(test.X, every).reshape(test.Y.shape).argmax(axis=1)
    assert test.Y.toarray()[np.arange(60), first].mean() > 0.6


def test_points_without_a_label_teach_nothing(data: Dataset) -> None:
    """Neither where labels belong, nor the classifiers."""
    fewer = data.Y.copy().tolil()
    fewer[240:] = False
    Y, own = sp.csr_matrix(fewer), data.take(np.arange(240))
    shape, alone = (
        grow_tree(X, labels, np.random.default_rng(1))
        for X, labels in ((data.X, Y), (own.X, own.Y))
    )
    assert np.array_equal(shape.parents, alone.parents)
    assert np.array_equal(shape.leaves, alone.leaves)
    with_them, without = fit_tree(data.X, Y, shape), fit_tree(own.X, own.Y, alone)
    assert np.array_equal(with_them.weights.toarray(), without.weights.toarray())
