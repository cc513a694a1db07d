"""Training of the wide layer: planted labels, seeds, dropout, going on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._learners.wide_layer import WideHead
from dxml._learners.wide_training import WideSettings, fit_wide
from dxml.data import make_planted
from dxml.metrics import precision_at_k
from dxml.progress import StageTimer
from dxml.topk import topk_from_dense

CPU = torch.device("cpu")
SMALL = WideSettings(width=32, epochs=3, batch_size=16, chunk=7)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_planted_labels_are_found(device: str) -> None:
    data = make_planted(900, 300, 40, noise=0.05, random_state=1)
    settings = WideSettings(width=128, epochs=15, batch_size=64, learning_rate=5e-3, chunk=16)
    where, timer = torch.device(device), StageTimer()
    head, history = fit_wide(
        data.X[:700], data.Y[:700], settings, seed=0, device=where, stage="s", progress=timer
    )
    ranking = topk_from_dense(head.scores(data.X[700:], where), 1, np.arange(40, dtype=np.int32))
    assert precision_at_k(data.Y[700:], ranking, 1)[0] > 0.85
    assert len(history) == 15 and history[-1] < history[0] / 2
    assert timer.seconds["s"] > 0
    if device == "cuda":
        assert np.allclose(head.scores(data.X, where), head.scores(data.X, CPU), atol=1e-3)
        assert np.allclose(head.hidden(data.X[:1], where), head.hidden(data.X[:1], CPU), atol=1e-4)
        assert head.hidden(sp.csr_matrix((2, 300), dtype=np.float32), where).shape == (2, 128)


def test_one_seed_one_head_and_nobody_elses_numbers() -> None:
    data = make_planted(50, 30, 20, features_per_point=8)
    before = torch.get_rng_state()
    first, second, other = (
        fit_wide(data.X, data.Y, SMALL, seed=seed, device=CPU) for seed in (5, 5, 6)
    )
    assert torch.equal(torch.get_rng_state(), before)
    for name, array in first[0].arrays().items():
        assert array.dtype == np.float32
        assert np.array_equal(array, second[0].arrays()[name])
        assert not np.array_equal(array, other[0].arrays()[name])
    assert first[1] == second[1]


def test_dropout_changes_the_result() -> None:
    data = make_planted(50, 30, 20, features_per_point=8)
    losses = [
        fit_wide(data.X, data.Y, WideSettings(width=16, epochs=2, **shares), seed=0, device=CPU)[1]
        for shares in (
            {"feature_dropout": 0, "hidden_dropout": 0},
            {"feature_dropout": 0.5, "hidden_dropout": 0},
            {"feature_dropout": 0, "hidden_dropout": 0.5},
        )
    ]
    assert len({tuple(loss) for loss in losses}) == 3


def test_first_weights() -> None:
    """With no learning: the spreads, and the log-odds of the labels within -8 and 0."""
    X = sp.csr_matrix(np.tile(np.float32([2, 0]), (2_000, 1)))
    point = np.arange(2_000)
    Y = sp.csr_matrix(np.stack([point < 1_999, point < 200, point < 0], axis=1))
    settings = WideSettings(width=1000, epochs=1, batch_size=2_000, learning_rate=0)
    head, _ = fit_wide(X, Y, settings, seed=0, device=CPU)
    assert head.inner.std() == pytest.approx(0.3 * (2 / 4) ** 0.5, rel=0.05)
    assert head.outer.std() == pytest.approx(0.1 / 1000**0.5, rel=0.05)
    assert not head.inner_bias.any()
    odds = (200.5 / 2_001) / (1 - 200.5 / 2_001)
    assert head.outer_bias == pytest.approx([0, np.log(odds), -8], abs=1e-5)


@pytest.mark.parametrize("n", [1, 10, 33])
def test_odd_rows_do_no_harm(n: int) -> None:
    """Empty rows, rows without labels, labels without points, batches of one, ten steps."""
    rng = np.random.default_rng(0)
    X = sp.random(n, 12, 0.2, format="csr", random_state=0, dtype=np.float32)
    labels = rng.random((n, 9)) < 0.3
    labels[::2], labels[:, 4] = False, False
    settings = WideSettings(width=8, epochs=1, batch_size=1, chunk=4)
    for features, truth in ((X, labels), (X * 0, labels), (X, labels & False)):
        matrix = sp.csr_matrix(features)
        matrix.eliminate_zeros()
        head, history = fit_wide(matrix, sp.csr_matrix(truth), settings, seed=0, device=CPU)
        scores = head.scores(matrix, CPU)
        assert scores.shape == (n, 9) and np.isfinite(scores).all() and np.isfinite(history).all()


@pytest.mark.parametrize("learners", [1, 2])
def test_training_goes_on_from_known_weights(learners: int) -> None:
    """At no learning rate nothing changes; at some the loss goes on falling from where it was."""
    data = make_planted(200, 60, 12, random_state=0)
    settings = replace(SMALL, learners=learners, hidden_dropout=0.0, feature_dropout=0.0)
    head, first = fit_wide(data.X, data.Y, settings, seed=0, device=CPU)
    still = replace(settings, epochs=1, learning_rate=0.0)
    same, _ = fit_wide(data.X, data.Y, still, seed=1, device=CPU, start=head)
    for ours, theirs in zip(same.arrays().values(), head.arrays().values(), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-6)
    _, more = fit_wide(data.X, data.Y, settings, seed=1, device=CPU, start=head)
    assert first[0] > first[-1] > more[0] > more[-1]


def test_learners_are_averaged() -> None:
    """Without chance in what drops, learners of one start would stay alike: their mean is one."""
    data = make_planted(120, 40, 9, random_state=1)
    settings = replace(SMALL, epochs=1, learning_rate=0.0, hidden_dropout=0.0, feature_dropout=0.0)
    one, _ = fit_wide(data.X, data.Y, settings, seed=0, device=CPU)
    twice = WideHead(
        np.concatenate([one.inner, one.inner]),
        np.tile(one.inner_bias, 2),
        np.concatenate([one.outer, one.outer], axis=1) / 2,
        one.outer_bias,
    )
    wider = replace(settings, width=2 * settings.width, learners=2)
    both, _ = fit_wide(data.X, data.Y, wider, seed=0, device=CPU, start=twice)
    assert np.allclose(both.scores(data.X, CPU), one.scores(data.X, CPU), atol=1e-5)
    trained = replace(wider, learning_rate=1e-2)
    same, _ = fit_wide(data.X, data.Y, trained, seed=0, device=CPU, start=twice)
    alone, _ = fit_wide(
        data.X, data.Y, replace(settings, learning_rate=1e-2), seed=0, device=CPU, start=one
    )
    assert np.allclose(same.scores(data.X, CPU), alone.scores(data.X, CPU), atol=1e-3)


@pytest.mark.gpu
def test_a_gpu_holds_all_features_dense() -> None:
    X = sp.random(4000, 5000, 0.002, format="csr", random_state=0, dtype=np.float32)
    Y = sp.csr_matrix(np.eye(4, dtype=bool)[np.arange(4000) % 4])
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    settings = WideSettings(width=8, epochs=1, batch_size=64)
    fit_wide(X, Y, settings, seed=0, device=torch.device("cuda"))
    assert torch.cuda.max_memory_allocated() - before >= 2 * 4000 * 5000
