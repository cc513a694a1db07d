"""SLEEC against direct solutions on matrices small enough to form."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from dxml.baselines._svp import label_neighbours, singular_value_projection
from dxml.baselines.sleec import (
    SLEEC,
    _keep_largest,
    _local_map,
    _regress,
    cluster_points,
    embed,
    nearest_cluster,
)
from dxml.data import make_planted
from dxml.metrics import precision_at_k


def random_labels(n: int, n_labels: int, seed: int) -> sp.csr_matrix:
    rng = np.random.default_rng(seed)
    dense = rng.random((n, n_labels)) < 0.3
    dense[:, 0] |= ~dense.any(axis=1)
    return sp.csr_matrix(dense)


def unit_labels(Y: sp.csr_matrix) -> np.ndarray:
    dense = Y.toarray().astype(float)
    return dense / np.linalg.norm(dense, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def planted():
    data = make_planted(600, 300, 20, random_state=1)
    return data.X[:450], data.Y[:450], data.X[450:], data.Y[450:]


@pytest.fixture(scope="module")
def fitted(planted):
    X, Y, _, _ = planted
    return SLEEC(n_clusters=2, n_learners=2, dim=15, n_neighbors=10, power=4.0).fit(X, Y)


def test_label_neighbours_keeps_the_largest_cosines():
    Y = random_labels(40, 12, 0)
    cosines = unit_labels(Y) @ unit_labels(Y).T
    graph = label_neighbours(Y, 5).toarray()
    assert np.allclose(graph, graph.T)
    stored = graph > 0
    assert np.allclose(graph[stored], cosines[stored], atol=1e-6)
    for i in range(40):
        fifth = np.sort(cosines[i])[-5]
        assert stored[i][cosines[i] > fifth + 1e-6].all()  # all that are surely among the five
        kept_by_row = stored[i] & (cosines[i] >= fifth - 1e-6)
        assert kept_by_row.sum() >= 5


def test_label_neighbours_by_hand():
    Y = sp.csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=bool))
    half = 1 / np.sqrt(2)
    expected = [[1, half, 0], [half, 1, 0], [0, 0, 1]]
    assert np.allclose(label_neighbours(Y, 3).toarray(), expected)  # a cosine of 0 is no pair


def test_equal_label_vectors_share_their_neighbours_out():
    Y = sp.csr_matrix(np.ones((30, 1), dtype=bool))
    graph = label_neighbours(Y, 4)
    degrees = np.diff(graph.indptr)
    assert degrees.max() == degrees.min() == 7  # itself, three on either side


def test_first_step_is_the_leading_eigenvectors():
    graph = label_neighbours(random_labels(60, 10, 1), 60)
    Z, errors = singular_value_projection(graph, 4, 1, np.random.default_rng(0))
    values, vectors = np.linalg.eigh(graph.toarray().astype(float))
    best = (vectors[:, -4:] * values[-4:]) @ vectors[:, -4:].T
    assert np.allclose(Z @ Z.T, best, atol=2e-3)
    missed = np.where(graph.toarray() != 0, graph.toarray() - best, 0)
    assert errors[0] == pytest.approx(
        np.linalg.norm(missed) / np.linalg.norm(graph.toarray()), rel=1e-2
    )


def test_projection_recovers_a_low_rank_matrix_from_some_of_its_entries():
    rng = np.random.default_rng(3)
    truth = rng.standard_normal((80, 3))
    gram = truth @ truth.T
    seen = rng.random((80, 80)) < 0.4
    seen |= seen.T
    graph = sp.csr_matrix(np.where(seen, gram, 0).astype(np.float32))
    Z, errors = singular_value_projection(graph, 3, 150, rng)
    assert all(later <= earlier + 1e-4 for earlier, later in itertools.pairwise(errors))
    assert errors[-1] < 1e-3
    assert np.linalg.norm(Z @ Z.T - gram) < 0.01 * np.linalg.norm(gram)  # the unseen ones as well


def test_projection_agrees_with_the_dense_algorithm():
    graph = label_neighbours(random_labels(50, 15, 4), 10)
    dense, M = graph.toarray().astype(float), np.zeros((50, 50))
    for step in range(6):
        moved = M + (1.5 if step else 1.0) * np.where(dense != 0, dense - M, 0)
        values, vectors = np.linalg.eigh(moved)
        top = np.argsort(-values)[:5]
        M = (vectors[:, top] * np.maximum(values[top], 0)) @ vectors[:, top].T
    exact = np.linalg.norm(np.where(dense != 0, dense - M, 0)) / np.linalg.norm(dense)
    _, errors = singular_value_projection(graph, 5, 6, np.random.default_rng(0))
    assert errors[-1] == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize("direct", [True, False])
def test_regression_is_ridge(monkeypatch, direct):
    from dxml.baselines import sleec

    original = sleec.Gram
    monkeypatch.setattr(sleec, "Gram", lambda X: original(X, direct=6000 if direct else 0))
    rng = np.random.default_rng(0)
    X = sp.random(40, 12, 0.4, format="csr", random_state=0, dtype=np.float32)
    Z = rng.standard_normal((40, 3)).astype(np.float32)
    weights, bias = _regress(X, Z, 0.7)
    expected = Ridge(alpha=0.7).fit(X.toarray(), Z)
    assert np.allclose(weights, expected.coef_.T, atol=5e-3)
    assert np.allclose(bias, expected.intercept_, atol=5e-3)


def test_a_local_map_is_that_of_all_features():
    """Features that a cluster does not have get no weight, and count as dropped."""
    X = sp.random(40, 12, 0.4, format="csr", random_state=0, dtype=np.float32)
    wide = sp.csr_matrix((X.data, 3 * X.indices + 1, X.indptr), shape=(40, 40))
    Z = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
    weights, bias = _local_map(wide, Z, 0.7, 0.25)  # 30 of 120 weights, of which 36 are not zero
    expected, same = _regress(wide, Z, 0.7)
    sizes = np.abs(expected)
    kept = np.where(sizes >= np.sort(sizes, axis=None)[-30], expected, 0)
    assert np.allclose(weights.toarray(), kept, atol=1e-5)
    assert weights.nnz == 30
    assert np.allclose(bias, same, atol=1e-5)


def test_keep_largest():
    weights = np.array([[1, -5, 0.5], [-2, 0.1, 3]], dtype=np.float32)
    assert _keep_largest(weights, 3).toarray().tolist() == [[0, -5, 0], [-2, 0, 3]]
    assert np.array_equal(_keep_largest(weights, 6).toarray(), weights)


def test_embed_is_a_product_scaled_to_length_one():
    X = sp.random(7, 9, 0.5, format="csr", random_state=1, dtype=np.float32)
    V = sp.random(9, 4, 0.5, format="csr", random_state=2, dtype=np.float32)
    bias = np.full(4, 0.1, dtype=np.float32)
    rows = X.toarray() @ V.toarray() + bias
    expected = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.allclose(embed(X, V, bias), expected, atol=1e-6)
    assert not embed(sp.csr_matrix((1, 9), dtype=np.float32), V, 0 * bias).any()


def test_clusters_of_separate_points_are_found():
    X = sp.csr_matrix(np.repeat(np.eye(2, dtype=np.float32), [5, 8], axis=0))
    apart = 0
    for seed in range(20):
        first, second = np.sort(np.random.default_rng(seed).choice(13, 2, replace=False))
        centres = cluster_points(X, 2, np.random.default_rng(seed))
        home = nearest_cluster(X, centres)
        if first < 5 <= second:  # the points that the centres start from are not equal
            apart += 1
            assert home.tolist() == [0] * 5 + [1] * 8
        else:
            assert home.tolist() == [0] * 13
    assert 5 <= apart <= 15


def test_planted_labels_are_recovered(planted, fitted):
    _, _, X, Y = planted
    assert precision_at_k(Y, fitted.predict_topk(X, 1), 1)[0] > 0.8


def test_the_vote_is_a_cosine_weighted_mean(planted, fitted):
    _, Y, unseen, _ = planted
    row = unseen[:1]
    total, weight = np.zeros(Y.shape[1]), 0.0
    scaled = fitted.scaler_.transform(sp.csr_matrix(row, dtype=np.float32))
    for learner in fitted.learners_:
        cluster = learner.clusters[nearest_cluster(scaled, learner.centres)[0]]
        cosines = cluster.points @ embed(scaled, cluster.weights, cluster.bias)[0]
        for i in np.argsort(-cosines)[:10]:
            total += cosines[i] ** 4 * Y[cluster.rows[i]].toarray().ravel()
            weight += cosines[i] ** 4
    ranking = fitted.predict_topk(row, 3)
    assert np.allclose(ranking.scores[0], np.sort(total / weight)[::-1][:3], atol=1e-4)


def test_one_cluster_needs_one_learner(planted):
    X, Y, _, _ = planted
    model = SLEEC(n_learners=4, dim=5, n_neighbors=5, power=1.0).fit(X, Y)
    assert len(model.learners_) == 1
    assert len(model.learners_[0].clusters) == 1


def test_neighbours_and_power_are_chosen_where_not_given(planted):
    X, Y, _, _ = planted
    settings = {"dim": 10, "max_iter": 3, "validation_fraction": 0.4}
    # Twelve points kept a label, beside a crowd that outvotes them from 20 neighbours on.
    kinds = np.eye(21)[np.concatenate([np.repeat(np.arange(20), 20), np.full(400, 20)])]
    assert SLEEC(**settings, power=0.0).fit(kinds, kinds).n_neighbors_ == 10
    model = SLEEC(**settings, n_neighbors=50).fit(kinds, kinds)  # as many vote, but near ones count
    assert model.power_ > 0 and model.score(kinds, kinds) == 1
    assert SLEEC(**settings, power=0.0).fit(*two_crowds()).n_neighbors_ >= 50
    assert SLEEC(dim=10, max_iter=3, n_neighbors=7).fit(X, Y).n_neighbors_ == 7


def two_crowds():
    """2,000 points of two kinds, two in five with the other's label: many must vote."""
    rng = np.random.default_rng(0)
    kind = np.arange(2000) % 2
    X = np.zeros((2000, 60), dtype=np.float32)
    for _ in range(4):
        X[np.arange(2000), 30 * kind + rng.integers(0, 30, 2000)] = 1
    label = np.where(rng.random(2000) < 0.6, kind, 1 - kind)
    return sp.csr_matrix(X), sp.csr_matrix(np.eye(2, dtype=bool)[label])


def test_contract_in_short(tmp_path, planted, fitted):
    X, Y, unseen, _ = planted
    ranking = fitted.predict_topk(unseen[:20], 5)
    single = [fitted.predict_topk(unseen[i : i + 1], 5) for i in range(20)]
    assert np.array_equal(ranking.indices, np.vstack([one.indices for one in single]))
    assert np.allclose(ranking.scores, np.vstack([one.scores for one in single]), atol=1e-6)
    again = SLEEC(**fitted.get_params()).fit(X, Y).predict_topk(unseen[:20], 5)
    assert np.array_equal(ranking.scores, again.scores)
    loaded = SLEEC.load(fitted.save(tmp_path / "model")).predict_topk(unseen[:20], 5)
    assert np.array_equal(ranking.indices, loaded.indices)
    assert np.array_equal(ranking.scores, loaded.scores)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_fewer_points_than_anything(n):
    rng = np.random.default_rng(n)
    X, Y = rng.random((n, 4)), np.ones((n, 1), dtype=bool)
    X[0] = 0
    model = SLEEC(n_clusters=3).fit(X, Y)
    assert model.predict_topk(X, 1).indices.tolist() == [[0]] * n
