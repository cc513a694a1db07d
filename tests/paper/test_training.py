"""The encoder: lazy updates against dense ones, losses by hand, planted targets reached."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.paper import _training as training
from dxml.paper._losses import LOSSES
from dxml.paper._training import EncoderSettings, fit_encoder

from .rows import sparse_rows


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
