"""Beam search in a tree: against the scores of all labels, by hand, and for one point."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dxml._learners.label_trees import LabelTree
from dxml._learners.tree_search import BEAM, Family
from dxml._learners.tree_shape import TreeShape, grow_tree


def random_tree(n_labels: int, d: int, seed: int) -> LabelTree:
    rng = np.random.default_rng(seed)
    X, Y = sp.random(300, d, 0.2, "csr", np.float32, rng), sp.random(300, n_labels, 0.05, "csr")
    shape = grow_tree(sp.csr_matrix(X), sp.csr_matrix(Y.astype(bool)), rng, leaf=4)
    rows = shape.n_nodes + shape.n_labels
    weights = sp.random(rows, d, 0.5, "csr", np.float32, rng, rng.standard_normal)
    return LabelTree(shape, sp.csr_matrix(weights), rng.standard_normal(rows).astype(np.float32))


def test_who_is_below_whom() -> None:
    #        0
    #      1   2          labels 0, 3 below 2; 1 below 3; 4 below 4; 2 below none
    #     3 4
    shape = TreeShape(np.int32([-1, 0, 0, 1, 1]), np.int32([2, 3, -1, 2, 4]))
    family = Family.of(shape)
    below = [family.members[family.starts[v] : family.starts[v + 1]].tolist() for v in range(5)]
    assert below == [[1, 2], [3, 4], [5, 8], [6], [9]]


def test_a_beam_as_wide_as_the_tree_finds_the_best_of_all_labels() -> None:
    tree = random_tree(12, 20, 0)
    assert np.bincount(tree.shape.parents + 1).max() <= BEAM  # no depth has more nodes
    X = sp.random(40, 20, 0.3, "csr", np.float32, 1)
    known = np.flatnonzero(tree.shape.leaves >= 0)
    pairs = sp.csr_matrix(np.tile(tree.shape.leaves >= 0, (40, 1)))
    scores = tree.scores(X, pairs).reshape(40, len(known))
    best = known[np.argsort(-scores, axis=1, kind="stable")]
    assert np.array_equal(tree.best_labels(X, 5), best[:, :5])


def test_a_narrow_beam_finds_most_of_them() -> None:
    tree = random_tree(150, 30, 2)
    X = sp.random(60, 30, 0.3, "csr", np.float32, 3)
    found = tree.best_labels(X, 1)[:, 0]
    pairs = sp.csr_matrix(np.tile(tree.shape.leaves >= 0, (60, 1)))
    scores = tree.scores(X, pairs).reshape(60, -1)
    best = np.flatnonzero(tree.shape.leaves >= 0)[scores.argmax(axis=1)]
    assert tree.shape.n_nodes > 10 * BEAM and (found == best).mean() > 0.9


def test_fewer_labels_than_asked_for() -> None:
    tree = random_tree(12, 20, 0)
    found = tree.best_labels(sp.random(3, 20, 0.3, "csr", np.float32, 1), 20)
    n_known = int((tree.shape.leaves >= 0).sum())
    assert ((found >= 0).sum(axis=1) == n_known).all() and (found[:, n_known:] == -1).all()
    assert all(len(set(row[:n_known])) == n_known for row in found.tolist())
