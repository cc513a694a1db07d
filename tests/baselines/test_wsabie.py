"""WSABIE: its steps by hand, its gradient numerically, its ranking by brute force."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.baselines.wsabie import WSABIE, _descend, _draw_violator, _move, rank_weights
from dxml.data import make_planted
from dxml.metrics import precision_at_k


@pytest.fixture(scope="module")
def planted():
    data = make_planted(600, 300, 20, random_state=1)
    return data.X[:450], data.Y[:450], data.X[450:], data.Y[450:]


@pytest.fixture(scope="module")
def fitted(planted):
    X, Y, _, _ = planted
    return WSABIE(dim=20).fit(X, Y)


def seed(value: int = 1) -> np.ndarray:
    return np.array([value], dtype=np.uint64)


def test_rank_weights_are_harmonic_numbers():
    assert np.allclose(rank_weights(4), [0, 1, 3 / 2, 11 / 6, 25 / 12])


def test_move_stays_in_the_ball():
    row = np.array([3, 0], dtype=np.float32)
    _move(row, np.float32(1), np.array([0, 4], dtype=np.float32), np.float32(10))
    assert row.tolist() == [3, 4]
    _move(row, np.float32(0), np.zeros(2, dtype=np.float32), np.float32(2.5))
    assert np.allclose(row, [1.5, 2])


def test_only_labels_of_others_that_violate_the_margin_are_drawn():
    z = np.ones(1, dtype=np.float32)
    W = np.array([[5], [1], [-3], [2]], dtype=np.float32)
    owner = np.array([7, -1, -1, 6])  # label 0 is point 7's own
    candidates = np.arange(4, dtype=np.int32)
    state, drawn = seed(), []
    for _ in range(200):
        label, draws = _draw_violator(z, np.float32(0), W, candidates, owner, 7, 50, state)
        assert draws >= 1
        drawn.append(label)
    assert set(drawn) == {1, 3}
    assert 60 < drawn.count(1) < 140  # evenly
    label, draws = _draw_violator(z, np.float32(9), W, candidates, owner, 7, 50, state)
    assert (label, draws) == (-1, 50)


def one_step(V, b, W, x, own, step=0.1, max_norm=100.0, start=1):
    """An epoch over the single point x with the labels `own`; the arrays change in place."""
    X, n = sp.csr_matrix(x[None], dtype=np.float32), len(W)
    loss = _descend(
        *(X.indptr, X.indices, X.data),
        *(np.array([0, len(own)], dtype=np.int32), np.array(own, dtype=np.int32)),
        *(np.array([0]), np.arange(n, dtype=np.int32), rank_weights(n)),
        *(np.float32(step), np.float32(max_norm), 1000, V, b, W, np.full(n, -1), seed(start), 0.0),
    )
    return loss / len(own)


def test_a_step_by_hand():
    # z = 1, f = (0.5, 1): label 1 violates. Two candidates: rank ⌊1 / draws⌋ is 1 on the first draw
    # and 0, without a cost, after it.
    losses = []
    for start in range(1, 41):
        V, b = np.array([[1.0], [0.0]], dtype=np.float32), np.zeros(1, dtype=np.float32)
        W = np.array([[0.5], [1.0]], dtype=np.float32)
        _, draws = _draw_violator(
            *(np.ones(1, np.float32), np.float32(-0.5), W.copy()),
            *(np.arange(2, dtype=np.int32), np.array([0, -1]), 0, 1000, seed(start)),
        )
        losses.append(one_step(V, b, W, np.array([1.0, 0.0]), [0], start=start))
        if draws == 1:
            assert losses[-1] == pytest.approx(1.5)
            assert np.allclose(W, [[0.6], [0.9]])
            assert np.allclose(V, [[0.95], [0.0]])
            assert np.allclose(b, [-0.05])
        else:
            assert losses[-1] == 0
            assert W.tolist() == [[0.5], [1.0]] and V.tolist() == [[1.0], [0.0]] and not b.any()
    assert 10 <= np.count_nonzero(losses) <= 30  # one draw in two is the first


def test_a_step_follows_the_gradient_of_the_pair_loss():
    rng = np.random.default_rng(0)
    V, W = rng.standard_normal((6, 4)), rng.standard_normal((9, 4)) * 0.1
    b, x = rng.standard_normal(4), rng.random(6)
    new = [array.astype(np.float32) for array in (V, b, W)]
    loss = one_step(*new, x, [2], step=1e-3)
    assert loss > 0
    z = x @ V + b
    moved = np.flatnonzero(np.abs(new[2] - W).max(axis=1) > 1e-6)
    (wrong,) = set(moved.tolist()) - {2}
    cost = loss / (1 - W[2] @ z + W[wrong] @ z)
    assert np.abs(rank_weights(9) - cost).min() < 1e-4  # some L(k)
    assert np.allclose(new[2][2] - W[2], 1e-3 * cost * z, atol=1e-6)
    assert np.allclose(new[2][wrong] - W[wrong], -1e-3 * cost * z, atol=1e-6)
    direction = cost * (W[2] - W[wrong])
    assert np.allclose(new[0] - V, 1e-3 * np.outer(x, direction), atol=1e-6)
    assert np.allclose(new[1] - b, 1e-3 * direction, atol=1e-6)


def test_a_point_with_every_label_moves_nothing():
    V, b = np.ones((2, 1), dtype=np.float32), np.zeros(1, dtype=np.float32)
    W = np.array([[0.5], [1.0]], dtype=np.float32)
    assert one_step(V, b, W, np.ones(2), [0, 1]) == 0
    assert W.tolist() == [[0.5], [1.0]]


def test_planted_labels_are_recovered_and_the_loss_falls(planted, fitted):
    _, _, X, Y = planted
    assert precision_at_k(Y, fitted.predict_topk(X, 1), 1)[0] > 0.8
    assert fitted.history_[-1] < 0.5 * fitted.history_[0]
    lengths = np.linalg.norm(fitted.map_.weights, axis=1)
    assert lengths.max() <= fitted.max_norm * (1 + 1e-5)


def test_the_ranking_is_that_of_the_bilinear_scores(planted, fitted):
    X = planted[2][:30]
    scaled = fitted.scaler_.transform(sp.csr_matrix(X, dtype=np.float32)).toarray()
    codes = scaled @ fitted.map_.weights + fitted.map_.bias
    scores = codes @ fitted.label_vectors_.T
    ranking = fitted.predict_topk(X, 5)
    assert np.allclose(ranking.scores, -np.sort(-scores, axis=1)[:, :5], atol=1e-4)


def test_labels_without_points_are_never_named():
    rng = np.random.default_rng(0)
    X, Y = rng.random((30, 5)), np.zeros((30, 4), dtype=bool)
    Y[:15, 1], Y[15:, 3] = True, True
    model = WSABIE(dim=3).fit(X, Y)
    assert set(model.predict_topk(X, 4).indices.ravel().tolist()) == {1, 3, -1}
    assert not model.label_vectors_[[0, 2]].any()


@pytest.mark.parametrize("n", [1, 3])
def test_a_single_label(n):
    X, Y = np.zeros((n, 2)), np.ones((n, 1), dtype=bool)
    assert WSABIE().fit(X, Y).predict_topk(X, 1).indices.tolist() == [[0]] * n


def test_contract_in_short(tmp_path, planted, fitted):
    X, Y, unseen, _ = planted
    ranking = fitted.predict_topk(unseen[:20], 5)
    single = [fitted.predict_topk(unseen[i : i + 1], 5) for i in range(20)]
    assert np.array_equal(ranking.scores, np.vstack([one.scores for one in single]))
    again = WSABIE(**fitted.get_params()).fit(X, Y).predict_topk(unseen[:20], 5)
    assert np.array_equal(ranking.scores, again.scores)
    loaded = WSABIE.load(fitted.save(tmp_path / "model")).predict_topk(unseen[:20], 5)
    assert np.array_equal(ranking.indices, loaded.indices)
    assert np.array_equal(ranking.scores, loaded.scores)
