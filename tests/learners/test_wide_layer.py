"""The wide head: the chunked loss against the whole one, planted labels found, odd rows borne."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.nn import functional as F

from dxml._core.storage import read_folder, write_folder
from dxml.data import make_planted
from dxml.learners.logistic_loss import chunked_logistic
from dxml.learners.wide_layer import WideHead
from dxml.learners.wide_training import WideSettings, fit_wide
from dxml.metrics import precision_at_k
from dxml.progress import StageTimer
from dxml.topk import topk_from_dense

CPU = torch.device("cpu")
SMALL = WideSettings(width=32, epochs=3, batch_size=16, chunk=7)


def batch(
    n: int = 6, width: int = 4, n_labels: int = 10, dtype: torch.dtype = torch.float32
) -> tuple[torch.Tensor, ...]:
    """hidden, weight, bias of two learners, and dense labels; one point and one label have none."""
    generator = torch.Generator().manual_seed(0)
    hidden, weight, bias = (
        torch.randn(*shape, generator=generator, dtype=dtype) * 3
        for shape in ((2, n, width), (2, n_labels, width), (2, n_labels))
    )
    labels = (torch.rand(n, n_labels, generator=generator) < 0.3).to(dtype)
    labels[1], labels[:, 2], labels[0, 0] = 0, 0, 1
    return hidden, weight, bias, labels


def whole_loss(
    hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    logits = hidden @ weight.mT + bias[:, None]
    both = labels.expand_as(logits)
    return F.binary_cross_entropy_with_logits(logits, both, reduction="sum") / len(labels)


def loss_and_slopes(loss_of, parts) -> list[torch.Tensor]:  # type: ignore[no-untyped-def]
    parts = [part.detach().clone().requires_grad_() for part in parts]
    loss = loss_of(*parts)
    (2 * loss).backward()
    return [loss.detach(), *(part.grad for part in parts)]


@pytest.mark.parametrize("chunk", [1, 3, 5, 10, 64])
def test_chunks_add_up_to_the_whole(chunk: int) -> None:
    *parts, labels = batch()
    rows, columns = labels.nonzero(as_tuple=True)
    expected = loss_and_slopes(lambda *p: whole_loss(*p, labels), parts)
    found = loss_and_slopes(lambda *p: chunked_logistic(*p, rows, columns, chunk), parts)
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_slopes_by_finite_differences() -> None:
    *parts, labels = batch(3, 2, 5, torch.float64)
    rows, columns = labels.nonzero(as_tuple=True)
    inputs = [part.requires_grad_() for part in parts]
    assert torch.autograd.gradcheck(
        lambda *p: chunked_logistic(*p, rows, columns, 2), inputs, nondet_tol=0
    )


def test_loss_by_hand_and_of_huge_logits() -> None:
    one, empty = torch.ones(1, 1, 1), torch.empty(0, dtype=torch.int64)
    first = torch.zeros(1, dtype=torch.int64)
    for logit, without, wanted in ((0.0, np.log(2), np.log(2)), (200, 200, 0), (-200, 0, 200)):
        bias = torch.tensor([[float(logit)]])
        assert chunked_logistic(one, one * 0, bias, empty, empty, 4).item() == pytest.approx(
            without
        )
        assert chunked_logistic(one, one * 0, bias, first, first, 4).item() == pytest.approx(wanted)


def test_rounding_to_bfloat16_moves_the_loss_little() -> None:
    """What a GPU reads, rounded; the products themselves are tested on one, below."""
    *parts, labels = batch()
    rows, columns = labels.nonzero(as_tuple=True)
    rounded = [part.to(torch.bfloat16).float() for part in parts]
    exact, near = (
        loss_and_slopes(lambda *p: chunked_logistic(*p, rows, columns, 4), some)
        for some in (parts, rounded)
    )
    assert near[0].item() == pytest.approx(exact[0].item(), rel=0.02)
    for ours, theirs in zip(near[1:], exact[1:], strict=True):
        assert (ours - theirs).norm() < 0.03 * theirs.norm()


@pytest.mark.gpu
@pytest.mark.parametrize("chunk", [100, 4096])
def test_bfloat16_products_on_a_gpu(chunk: int) -> None:
    *parts, labels = (part.cuda() for part in batch(64, 256, 1000))
    parts[1] = parts[1] * 0.02
    rows, columns = labels.nonzero(as_tuple=True)
    expected = loss_and_slopes(lambda *p: whole_loss(*p, labels), parts)
    found = loss_and_slopes(
        lambda h, w, b: chunked_logistic(h.bfloat16(), w, b, rows, columns, chunk), parts
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == torch.float32
        assert (ours - theirs).norm() < 0.02 * theirs.norm()


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
    monkeypatch.setattr("dxml.learners.wide_layer.ROWS", 33)
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
