"""A trained wide layer: one point as in a batch, saved and restored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._core.storage import read_folder, write_folder
from dxml._learners.wide_layer import WideHead
from dxml._learners.wide_training import WideSettings, fit_wide
from dxml.data import make_planted

CPU = torch.device("cpu")
SMALL = WideSettings(width=32, epochs=3, batch_size=16, chunk=7)


@pytest.mark.parametrize("density", [0.02, 0.6])
def test_a_point_alone_is_as_in_a_batch(density: float) -> None:
    rng = np.random.default_rng(1)
    X = sp.random(70, 50, density, format="csr", random_state=1, dtype=np.float32)
    weights = [rng.standard_normal(s).astype(np.float32) for s in ((24, 50), 24, (5, 24), 5)]
    head = WideHead(*weights)
    hidden = np.maximum(X @ weights[0].T + weights[1], 0)
    assert np.allclose(head.hidden(X, CPU), hidden, atol=1e-5)
    assert np.allclose(head.scores(X, CPU), hidden @ weights[2].T + weights[3], atol=1e-4)
    assert isinstance(head.hidden_tensor(X, CPU), torch.Tensor)
    alone = np.concatenate([head.hidden(X[i], CPU) for i in range(70)])
    assert np.allclose(alone, head.hidden(X, CPU), rtol=1e-5, atol=1e-5)
    assert head.scores(X[:0], CPU).shape == (0, 5)


def test_large_batches_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_planted(100, 30, 20, features_per_point=8)
    head, _ = fit_wide(data.X, data.Y, SMALL, seed=0, device=CPU)
    scores, hidden = head.scores(data.X, CPU), head.hidden(data.X, CPU)
    monkeypatch.setattr("dxml._learners.wide_layer.ROWS", 33)
    assert np.allclose(head.scores(data.X, CPU), scores, atol=1e-5)
    assert np.allclose(head.hidden(data.X, CPU), hidden, atol=1e-5)


def test_saved_and_restored(tmp_path: Path) -> None:
    data = make_planted(50, 30, 20, features_per_point=8)
    head, _ = fit_wide(data.X, data.Y, SMALL, seed=0, device=CPU)
    write_folder(tmp_path / "model", {}, head.arrays("net"))
    again = WideHead.from_arrays(
        read_folder(tmp_path / "model")[1], head.inner.shape[1], *head.outer.shape, "net"
    )
    assert again.inner.shape == (32, 30)
    assert np.array_equal(again.scores(data.X, CPU), head.scores(data.X, CPU))
