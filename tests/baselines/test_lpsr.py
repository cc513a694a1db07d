"""LPSR: centres and scores worked out by hand, and the bases it should agree with."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import MultinomialNB

from dxml.baselines._linear import rank_sparse
from dxml.baselines._tree import Forest
from dxml.baselines.lpsr import LPSR, Scorer, kmeans_tree, naive_bayes, two_means
from dxml.data import make_planted
from dxml.topk import tie_order


def csr(rows, dtype=np.float32) -> sp.csr_matrix:
    return sp.csr_matrix(np.asarray(rows, dtype=dtype))


@pytest.fixture(scope="module")
def data():
    return make_planted(600, 300, 20, random_state=0)


def test_two_means_by_hand() -> None:
    X = csr([[0, 1], [0, 3], [8, 0], [10, 0]])
    centres = two_means(X, np.random.default_rng(0))
    assert sorted(centres.tolist()) == [[0, 2], [9, 0]]


def test_equal_rows_are_not_cut() -> None:
    assert two_means(csr(np.ones((5, 3))), np.random.default_rng(0)) is None


def test_a_point_goes_to_the_nearer_centre() -> None:
    rng = np.random.default_rng(1)
    X = sp.random(300, 20, 0.4, format="csr", random_state=rng, dtype=np.float32)
    tree = kmeans_tree(X, 150, np.random.default_rng(0), 1)
    centres = two_means(X, np.random.default_rng(0))  # the same draws: the centres of the root
    far = ((X.toarray()[:, None] - centres) ** 2).sum(axis=2)
    stump = Forest.join([tree]).route(X)[:, 0]
    below = {int(child): {int(child)} for child in tree.children[0]}
    for node, (low, high) in enumerate(tree.children):
        for reached in below.values():
            if node in reached and low >= 0:
                reached.update({int(low), int(high)})
    for child, (_, reached) in enumerate(below.items()):
        assert set(stump[far.argmin(axis=1) == child]) <= reached


def test_parts_are_at_most_leaf_size(data) -> None:
    tree = kmeans_tree(data.X, 50, np.random.default_rng(0), 20)
    sizes = np.bincount(Forest.join([tree]).route(data.X)[:, 0], minlength=len(tree.bias))
    assert sizes.sum() == 600 and sizes.max() <= 50
    assert not sizes[tree.children[:, 0] >= 0].any()


def test_naive_bayes_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson(0.7, (80, 12)).astype(np.float32)
    label = np.arange(80) % 5
    scorer = naive_bayes(csr(X), csr(label[:, None] == np.arange(5), bool), 0.3)
    theirs = MultinomialNB(alpha=0.3).fit(X, label)
    ours = X @ scorer.weights.toarray().T + X.sum(axis=1)[:, None] * scorer.length + scorer.bias
    expected = X @ theirs.feature_log_prob_.T + theirs.class_log_prior_
    np.testing.assert_allclose(ours, expected, rtol=1e-4)


def test_naive_bayes_counts_a_point_for_each_of_its_labels_and_no_negative_feature() -> None:
    X = csr([[2, 0, -5], [0, 3, 0]])
    scorer = naive_bayes(X, csr([[1, 1], [0, 1]], bool), 1.0)
    np.testing.assert_allclose(scorer.weights.toarray(), np.log1p([[2, 0, 0], [2, 3, 0]]))
    np.testing.assert_allclose(scorer.length, -np.log([2 + 3, 5 + 3]), rtol=1e-6)
    np.testing.assert_allclose(scorer.bias, [np.log(1 / 2), 0], rtol=1e-6)


def test_only_the_labels_of_the_part_are_ranked() -> None:
    W = csr([[1, 0], [0, 1], [2, 2]])
    W.indptr = W.indptr.astype(np.int64)
    scorer = Scorer(W, np.array([0, -1, 0], np.float32), np.array([0, 4, 0], np.float32))
    kept = csr([[1, 1, 0], [0, 1, 1]])
    kept.indptr = kept.indptr.astype(np.int64)
    X = csr([[3, 1], [3, 1], [1, -2]])
    leaf = np.array([0, 1, 0], np.int32)
    ranking = scorer.rank(X, leaf, kept, 3, tie_order(np.zeros(3)))
    assert ranking.indices.tolist() == [[0, 1, -1], [2, 1, -1], [0, 1, -1]]
    np.testing.assert_array_equal(ranking.scores, [[3, 1, 0], [8, 1, 0], [1, 1, 0]])


def test_one_part_with_all_labels_is_the_base(data) -> None:
    model = LPSR(leaf_size=10_000).fit(data.X, data.Y)
    ours = model.predict_topk(data.X, 5)
    X, weights = model.scaler_.transform(data.X), model.base_.weights.T.tocsr()
    theirs = rank_sparse(X, weights, model.base_.bias, 5, tie_order(model.label_frequency_))
    assert (ours.indices == theirs.indices).mean() > 0.99  # but for near ties
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("base", ["linear", "naive_bayes"])
def test_recovers_planted_labels(data, base: str) -> None:
    model = LPSR(base=base, leaf_size=100, leaf_labels=15).fit(data.X[:450], data.Y[:450])
    assert model.forest_.depth >= 2
    assert model.score(data.X[450:], data.Y[450:]) > 0.7


def test_many_labels_get_naive_bayes() -> None:
    Y = sp.csr_matrix((np.ones(30, bool), (np.arange(30), np.arange(30) * 400)), (30, 12_000))
    model = LPSR(leaf_size=5).fit(np.eye(30, dtype=np.float32), Y)
    assert (model.base_.length < 0).all()
    assert model.score(np.eye(30, dtype=np.float32), Y) == 1


@pytest.mark.parametrize("base", ["linear", "naive_bayes"])
def test_saved_and_loaded(data, base: str, tmp_path) -> None:
    model = LPSR(base=base, leaf_size=100).fit(data.X, data.Y)
    loaded = LPSR.load(model.save(tmp_path / "model"))
    ours, theirs = model.predict_topk(data.X, 5), loaded.predict_topk(data.X, 5)
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_array_equal(ours.scores, theirs.scores)


def test_dense_measurements(data) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 8)) + 5
    Y = csr(np.stack([X[:, 0] > 5, X[:, 1] > 5, X[:, 0] <= 5], axis=1), bool)
    assert LPSR(leaf_size=60).fit(X, Y).score(X, Y) > 0.9


@pytest.mark.parametrize("base", ["linear", "naive_bayes"])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_odd_data(n: int, base: str) -> None:
    data = make_planted(40, 30, 6, random_state=0)
    X, Y = data.X[:n].tolil(), data.Y[:n].tolil()
    X[0] = 0
    if n > 2:
        Y[1] = 0
    Y[:, 3] = False
    Y[0, 0] = True
    model = LPSR(base=base, leaf_size=5).fit(X.tocsr(), Y.tocsr())
    ranking = model.predict_topk(data.X, 6)
    assert not (ranking.indices == 3).any() and np.isfinite(ranking.scores).all()


def test_a_single_label(data) -> None:
    ones = csr(np.ones((600, 1)), bool)
    assert LPSR(leaf_size=100).fit(data.X, ones).score(data.X, ones) == 1
