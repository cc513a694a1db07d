"""FastXML: its solver against liblinear, its ranking step against the formulas, its trees."""

from __future__ import annotations

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import __version__
from sklearn.linear_model import LogisticRegression
from sklearn.utils.fixes import parse_version

from dxml.baselines._sparse_logistic import columns_of, sparse_logistic
from dxml.baselines.fastxml import FastXML, rank_gains, ranked_sides
from dxml.data import make_planted


def by_columns(X):
    """`columns_of` all rows; columns come back in the order in which they first occur."""
    slot = np.full(X.shape[1], -1, np.int32)
    args = (np.arange(X.shape[0]), X.indptr.astype(np.int64), X.indices, X.data, slot)
    parts = columns_of(*args)
    assert (slot == -1).all()
    return parts


def random_rows(rng, n, d, density=0.3):
    return sp.random(n, d, density, format="csr", random_state=rng, dtype=np.float32)


def test_columns_of_some_rows() -> None:
    X = random_rows(np.random.default_rng(0), 30, 12)
    points = np.array([3, 7, 8, 20])
    slot = np.full(12, -1, np.int32)
    found, starts, rows, cells = columns_of(
        points, X.indptr.astype(np.int64), X.indices, X.data, slot
    )
    dense = np.zeros((4, 12))
    for s, j in enumerate(found):
        dense[rows[starts[s] : starts[s + 1]], j] = cells[starts[s] : starts[s + 1]]
    np.testing.assert_array_equal(dense, X[points].toarray())
    assert rows[starts[-2] :].tolist() == [0, 1, 2, 3] and (cells[starts[-2] :] == 1).all()


@pytest.mark.parametrize("C", [0.3, 3.0, 100.0])
def test_the_solver_finds_liblinears_optimum(C: float) -> None:
    rng = np.random.default_rng(1)
    X = random_rows(rng, 120, 40)
    side = np.where(X.toarray() @ rng.standard_normal(40) + rng.standard_normal(120) > 0, 1, -1)
    cost = C * rng.uniform(0.5, 2, 120)
    found, starts, rows, cells = by_columns(X)
    state = np.array([5], np.uint64)
    w = sparse_logistic(starts, rows, cells, side.astype(np.int8), cost, 1e-8, 200, state)
    full = np.hstack([X.toarray()[:, found], np.ones((120, 1))]).astype(np.float64)

    def objective(w):
        return np.abs(w).sum() + cost @ np.logaddexp(0, -side * (full @ w))

    absolute = (
        {"l1_ratio": 1} if parse_version(__version__) >= parse_version("1.8") else {"penalty": "l1"}
    )
    theirs = LogisticRegression(
        **absolute, solver="liblinear", C=1, fit_intercept=False, tol=1e-8, max_iter=2000
    ).fit(full, side, cost)
    best = objective(theirs.coef_.ravel())
    assert objective(w) == pytest.approx(best, rel=1e-5)
    assert (w == 0).sum() == (np.abs(theirs.coef_) < 1e-9).sum()


def test_a_costless_loss_leaves_w_at_zero() -> None:
    found, starts, rows, cells = by_columns(random_rows(np.random.default_rng(0), 20, 5))
    side = np.tile(np.array([1, -1], np.int8), 10)
    w = sparse_logistic(starts, rows, cells, side, np.full(20, 1e-3), 0.01, 20, np.zeros(1, "u8"))
    assert not w.any() and len(w) == len(found) + 1


def ideal_of(Y):
    return np.array([1 / sum(1 / np.log2(1 + r) for r in range(1, n + 1)) for n in Y.sum(axis=1)])


def test_gains_by_hand() -> None:
    Y = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]])
    csr = sp.csr_matrix(Y.astype(bool))
    gain, total = np.zeros(4), np.zeros(4)
    side = np.array([1, 1, -1], np.int8)
    args = (csr.indptr.astype(np.int64), csr.indices, ideal_of(Y), gain, total)
    assert rank_gains(np.arange(3), side, 1, *args).tolist() == [0, 1]
    np.testing.assert_allclose(gain, [1, 1 / np.log2(3), 0, 0])
    assert not total.any()


def mean_ndcg(Y, side):
    """Σ nDCG of each point under the best list of its side, as the formulas say."""
    ideal, total = ideal_of(Y), 0.0
    for wanted in (-1, 1):
        weight = (ideal[:, None] * Y)[side == wanted].sum(axis=0)
        rank = np.empty(Y.shape[1])
        rank[np.argsort(-weight, kind="stable")] = np.arange(1, Y.shape[1] + 1)
        total += (ideal[:, None] * Y / np.log2(1 + rank))[side == wanted].sum()
    return total / len(Y)


def test_sides_rank_better_than_any_single_change() -> None:
    rng = np.random.default_rng(3)
    Y = (rng.random((60, 12)) < 0.2).astype(int)
    Y[Y.sum(axis=1) == 0, 0] = 1
    csr = sp.csr_matrix(Y.astype(bool))
    state, gains, total = np.array([9], np.uint64), np.zeros((2, 12)), np.zeros(12)
    args = (np.arange(60), csr.indptr.astype(np.int64), csr.indices, ideal_of(Y))
    side = ranked_sides(*args, state, gains, total)
    assert not gains.any() and set(side) == {-1, 1}
    reached = mean_ndcg(Y, side)
    random = [mean_ndcg(Y, rng.choice([-1, 1], 60)) for _ in range(50)]
    assert reached > max(random)
    same = {tuple(row): set() for row in Y}
    for row, delta in zip(Y, side, strict=True):
        same[tuple(row)].add(delta)
    assert all(len(sides) == 1 for sides in same.values())


@pytest.fixture(scope="module")
def data():
    return make_planted(600, 300, 20, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return FastXML(n_trees=10, random_state=0).fit(data.X[:450], data.Y[:450])


def test_recovers_planted_labels(data, model) -> None:
    assert model.score(data.X[450:], data.Y[450:]) > 0.7
    assert model.score(data.X[:450], data.Y[:450]) > 0.9


def test_training_points_come_to_the_leaf_they_were_counted_in(data) -> None:
    Y = sp.identity(450, format="csr", dtype=bool)  # a label a point: the leaf names its points
    model = FastXML(n_trees=3, leaf_labels=450).fit(data.X[:450], Y)
    reached = model.forest_.route(model.scaler_.transform(data.X[:450]))
    for leaves in reached.T:
        assert (np.asarray(model.forest_.leaves[leaves, np.arange(450)]) > 0).all()


def test_leaves_are_small_and_hold_shares(data) -> None:
    model = FastXML(n_trees=4, leaf_size=7, leaf_labels=3, C=100).fit(data.X, data.Y)
    forest = model.forest_
    reached = forest.route(model.scaler_.transform(data.X))
    sizes = np.bincount(reached.ravel())
    assert sizes.max() <= 10 and (sizes > 7).mean() < 0.01  # where no split was found
    assert forest.leaves.data.max() <= 1
    assert np.diff(forest.leaves.indptr).max() == 3
    assert not np.diff(forest.leaves.indptr)[forest.children[:, 0] >= 0].any()


def test_a_huge_leaf_is_the_label_frequency(data) -> None:
    model = FastXML(n_trees=2, leaf_size=10_000).fit(data.X, data.Y)
    ranking = model.predict_topk(data.X[:3], 20)
    share = model.label_frequency_ / (np.diff(data.Y.indptr) > 0).sum()
    np.testing.assert_allclose(ranking.scores[0], np.sort(share)[::-1], rtol=1e-6)


def test_the_number_of_threads_changes_nothing(data, model) -> None:
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        alone = FastXML(n_trees=10, random_state=0).fit(data.X[:450], data.Y[:450])
    finally:
        numba.set_num_threads(threads)
    for name, array in alone.forest_.arrays().items():
        np.testing.assert_array_equal(array, model.forest_.arrays()[name])


def test_more_trees_keep_the_first_ones(data, model) -> None:
    fewer = FastXML(n_trees=4, random_state=0).fit(data.X[:450], data.Y[:450]).forest_
    n_nodes = len(fewer.bias)
    np.testing.assert_array_equal(model.forest_.bias[:n_nodes], fewer.bias)
    other = FastXML(n_trees=4, random_state=1).fit(data.X[:450], data.Y[:450]).forest_
    assert len(other.bias) != n_nodes or not np.array_equal(other.bias, fewer.bias)


def test_saved_and_loaded(data, model, tmp_path) -> None:
    loaded = FastXML.load(model.save(tmp_path / "model"))
    ours, theirs = model.predict_topk(data.X, 5), loaded.predict_topk(data.X, 5)
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_array_equal(ours.scores, theirs.scores)


@pytest.mark.parametrize("n", [1, 2, 11, 40])
def test_odd_data(n: int) -> None:
    data = make_planted(40, 30, 6, random_state=0)
    X, Y = data.X[:n].tolil(), data.Y[:n].tolil()
    X[0] = 0
    if n > 2:
        Y[1] = 0
    Y[:, 3] = False
    model = FastXML(n_trees=3, leaf_size=2).fit(X.tocsr(), Y.tocsr())
    ranking = model.predict_topk(data.X, 6)
    assert not (ranking.indices == 3).any() and np.isfinite(ranking.scores).all()


def test_a_single_label(data) -> None:
    ones = sp.csr_matrix(np.ones((600, 1), bool))
    assert FastXML(n_trees=2).fit(data.X, ones).score(data.X, ones) == 1
