"""The encoder: lazy updates against dense ones, losses by hand, planted targets reached."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._core.arrays import Arrays
from dxml._core.sparse import sparse_product
from dxml.paper import training
from dxml.paper.encoder import FeatureEncoder
from dxml.paper.input_layer import CpuInputLayer, GpuInputLayer, InputLayer, idle_steps
from dxml.paper.losses import LOSSES
from dxml.paper.training import EncoderSettings, fit_encoder


def sparse_rows(n: int, d: int, density: float, seed: int) -> sp.csr_matrix:
    X = sp.random(n, d, density, format="csr", random_state=seed, dtype=np.float32)
    return sp.csr_matrix(X)


def test_sparse_product_equals_scipy() -> None:
    X = sparse_rows(20, 50, 0.1, 0)
    W = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32)
    assert np.allclose(sparse_product(X, W), X @ W, atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_embedding_equals_the_formula(activation: str) -> None:
    rng = np.random.default_rng(1)
    X = sparse_rows(9, 30, 0.2, 1)
    w1, b1, w2, b2 = (
        rng.standard_normal(shape).astype(np.float32) for shape in ((30, 6), 6, (6, 4), 4)
    )
    encoder = FeatureEncoder(w1, b1, w2, b2, activation)  # type: ignore[arg-type]
    hidden = X @ w1 + b1
    if activation == "relu":
        hidden = np.maximum(hidden, 0)
    expected = hidden @ w2 + b2
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    embedded = encoder.embed(X)
    assert np.allclose(embedded, expected, atol=1e-5)
    assert all(np.array_equal(encoder.embed(X[i])[0], embedded[i]) for i in range(9))
    again = FeatureEncoder.from_arrays(Arrays(encoder.arrays()), len(encoder.w1), activation)  # type: ignore[arg-type]
    assert np.array_equal(again.embed(X), embedded)


def test_a_point_without_features_is_embedded_by_the_biases() -> None:
    ones = np.ones((2, 2), np.float32)
    encoder = FeatureEncoder(ones, np.array([1, 0], np.float32), ones, np.zeros(2, np.float32))
    assert np.allclose(encoder.embed(sp.csr_matrix((1, 2), dtype=np.float32)), 0.5**0.5)


def test_idle_steps_are_powers_of_one_step() -> None:
    rate, momentum, decay = 0.1, 0.9, 0.01
    w, v = 2.0, -1.0
    powers = idle_steps(rate, momentum, decay, 5)
    for t in range(6):
        ww, wv, vw, vv = powers[t]
        assert np.allclose([ww * 2 + wv * -1, vw * 2 + vv * -1], [w, v], rtol=1e-5)
        v = momentum * v + decay * w
        w -= rate * v


def dense_sgd(X: sp.csr_matrix, W: np.ndarray, batches: list, grads: list) -> np.ndarray:
    """The oracle: torch's SGD over the whole weight matrix."""
    weight = torch.nn.Parameter(torch.from_numpy(W.copy()))
    optimiser = torch.optim.SGD([weight], lr=0.1, momentum=0.9, weight_decay=0.01)
    for rows, gradient in zip(batches, grads, strict=True):
        product = torch.from_numpy(X[rows].toarray()) @ weight
        optimiser.zero_grad()
        product.backward(torch.from_numpy(gradient))
        optimiser.step()
    return weight.detach().numpy()


@pytest.mark.parametrize("kind", ["numba", "torch"])
def test_lazy_updates_equal_dense_sgd(kind: str) -> None:
    rng = np.random.default_rng(2)
    X = sparse_rows(40, 200, 0.02, 2)
    W = rng.standard_normal((200, 5)).astype(np.float32)
    batches = [rng.choice(40, 6, replace=False) for _ in range(15)]
    grads = [rng.standard_normal((6, 5)).astype(np.float32) for _ in batches]
    layer: InputLayer
    if kind == "numba":
        layer = CpuInputLayer(X, W.copy(), 0.1, 0.9, 0.01, 15)
    else:
        layer = GpuInputLayer(X, W.copy(), 0.1, 0.9, 0.01, 15, "cpu")
    for rows, gradient in zip(batches, grads, strict=True):
        layer.forward(rows)
        layer.step(torch.from_numpy(gradient))
    assert np.allclose(layer.weights(), dense_sgd(X, W, batches, grads), atol=1e-5)


def test_losses_by_hand() -> None:
    points = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    targets = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
    # Differences (0, -2) and (0, 0): smooth-l1 gives 1.5 + 0, the square 2 + 0; halved by the mean.
    assert LOSSES["smooth_l1"](points, targets, 0.5).item() == pytest.approx(0.75)
    assert LOSSES["squared"](points, targets, 0.5).item() == pytest.approx(1.0)
    right = torch.tensor([[3.0, 0.0], [0.0, 2.0]])  # directions of the points: own distance 0
    assert LOSSES["triplet"](points, right, 0.5).item() == pytest.approx(0, abs=1e-5)
    assert LOSSES["contrastive"](points, right, 2.0).item() == pytest.approx(
        0.5 * (2 - 2**0.5) ** 2, abs=1e-4
    )
    wrong = right.flip(0)  # own distance √2, other 0
    assert LOSSES["triplet"](points, wrong, 0.5).item() == pytest.approx(2.5, abs=1e-4)
    same = torch.ones(2, 2)  # two points with one target are no pair to push apart
    assert LOSSES["triplet"](points, same, 0.5).item() == 0


@pytest.mark.parametrize("loss", list(LOSSES))
def test_training_reaches_planted_targets(loss: str) -> None:
    rng = np.random.default_rng(3)
    group = rng.integers(0, 4, 200)
    X = sp.csr_matrix((np.ones(200, np.float32), (np.arange(200), group)), shape=(200, 4))
    goals = np.eye(4, 6, dtype=np.float32)[group]
    settings = EncoderSettings(
        hidden=16, dropout=0, loss=loss, epochs=40, batch_size=20, learning_rate=0.05
    )  # type: ignore[arg-type]
    encoder, history = fit_encoder(X, goals, settings, rng=np.random.default_rng(0))
    points = encoder.embed(X)
    nearest = np.argmax(points @ np.eye(4, 6, dtype=np.float32).T, axis=1)
    assert (nearest == group).mean() == 1
    assert history[-1] < history[0] and len(history) == 40


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_dense_steps_equal_sparse_steps(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU's way, captured or not, trains the same network as the CPU's."""
    X = sparse_rows(50, 20, 0.2, 8)
    goals = np.random.default_rng(9).standard_normal((50, 3)).astype(np.float32)
    settings = EncoderSettings(hidden=8, epochs=4, batch_size=12, dropout=0, init_scale=0.5)
    sparse, losses = fit_encoder(X, goals, settings, rng=np.random.default_rng(0))

    def dense(X, first, head, goals, settings, generator, n_steps):  # type: ignore[no-untyped-def]
        return training._DenseSteps(X, first, head, goals, settings, generator)

    monkeypatch.setattr(training, "_choose_steps", dense)
    other, other_losses = fit_encoder(
        X, goals, settings, rng=np.random.default_rng(0), device=device
    )
    assert np.allclose(losses, other_losses, atol=1e-5)
    assert np.allclose(sparse.embed(X), other.embed(X), atol=1e-4)
    assert np.allclose(sparse.embed(X), other.embed(X, device), atol=1e-4)


def test_one_seed_one_encoder() -> None:
    X = sparse_rows(50, 20, 0.2, 4)
    goals = np.random.default_rng(5).standard_normal((50, 3)).astype(np.float32)
    first, second, other = (
        fit_encoder(X, goals, EncoderSettings(hidden=8, epochs=3), rng=np.random.default_rng(seed))
        for seed in (0, 0, 1)
    )
    assert np.array_equal(first[0].w1, second[0].w1) and first[1] == second[1]
    assert not np.array_equal(first[0].w1, other[0].w1)


def test_dropout_and_linear_change_the_result() -> None:
    X = sparse_rows(50, 20, 0.2, 6)
    goals = np.random.default_rng(7).standard_normal((50, 3)).astype(np.float32)
    results = [
        fit_encoder(X, goals, settings, rng=np.random.default_rng(0))[1]
        for settings in (
            EncoderSettings(hidden=8, epochs=2, dropout=0),
            EncoderSettings(hidden=8, epochs=2, dropout=0.5),
            EncoderSettings(hidden=8, epochs=2, dropout=0, activation="linear"),
        )
    ]
    assert results[0] != results[1] and results[0] != results[2]
