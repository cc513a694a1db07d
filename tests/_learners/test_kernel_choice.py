"""The kernel that ranks held-out points best, and relations only where they help."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._learners import kernel_choice as module
from dxml._learners.kernel_choice import Fold, choose_kernel
from dxml._learners.kernel_ridge import KERNELS, Kernel, fit_kernel
from dxml.data import make_planted
from dxml.metrics import precision_at_k
from dxml.progress import StageTimer
from dxml.topk import tie_order, topk_from_dense

CPU = torch.device("cpu")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def rows(n: int, d: int, density: float, seed: int = 0) -> sp.csr_matrix:
    X = sp.random(n, d, density, format="csr", random_state=seed, dtype=np.float32)
    return sp.csr_matrix(X / np.sqrt(density * d))


def some_labels(n: int, n_labels: int, seed: int = 0) -> sp.csr_matrix:
    return sp.csr_matrix(np.random.default_rng(seed).random((n, n_labels)) < 0.2)


@pytest.mark.parametrize("device", DEVICES)
def test_the_better_kernel_is_chosen(device: str) -> None:
    data = make_planted(400, 200, 30, noise=0.05, random_state=2)
    X, Y, X_held, Y_held = data.X[:300], data.Y[:300], data.X[300:], data.Y[300:]
    good, flat, sharp = Kernel("gauss", 2, 0.1), Kernel("gauss", 1e-7, 9), Kernel("gauss", 4e3, 1)
    timer, where = StageTimer(), torch.device(device)
    for candidates in ([flat, good, sharp], [good, good], [sharp, flat, good]):
        [chosen] = choose_kernel([Fold(X, Y, X_held, Y_held)], where, candidates, timer)
        assert chosen.kernel == good
        again = fit_kernel(X, Y, good, where)
        assert np.allclose(chosen.votes, again.votes, atol=1e-5)
    assert "kernel" in timer.seconds


def wavy_fold(n_labels: int, seed: int) -> Fold:
    """Labels that go up and down with the features, so that now one kernel is best, now another."""
    rng, X = np.random.default_rng(seed), rows(140, 20, 0.4, seed)
    waves = np.cos(3 * (X @ rng.standard_normal((20, n_labels))))
    Y = sp.csr_matrix(waves + 0.3 * rng.standard_normal(waves.shape) > 0.8)
    return Fold(X[:90], Y[:90], X[90:], Y[90:])


def reached(fold: Fold, kernel: Kernel) -> float:
    """Mean of P@1, P@3 and P@5 on the held-out points, as far as there are labels."""
    depth = min(5, fold.Y.shape[1])
    scores = fit_kernel(fold.X, fold.Y, kernel, CPU).scores(fold.X_held, CPU)
    order = tie_order(np.bincount(fold.Y.indices, minlength=fold.Y.shape[1]))
    precision = precision_at_k(fold.Y_held, topk_from_dense(scores, depth, order), depth)
    return float(np.mean([precision[i] for i in (0, 2, 4) if i < depth]))


@pytest.mark.parametrize("n_labels", [3, 30])
def test_the_best_of_the_usual_kernels_is_chosen(n_labels: int) -> None:
    winners = set()
    for seed in range(6):
        fold = wavy_fold(n_labels, seed)
        tried = [reached(fold, kernel) for kernel in KERNELS]
        [chosen] = choose_kernel([fold], CPU)
        assert chosen.votes.shape == (90, n_labels)
        winner = KERNELS.index(replace(chosen.kernel, pull=0.0))
        assert tried[winner] >= max(tried) - 1e-9, f"{tried}, chosen {chosen.kernel}"
        winners.add(winner)
    assert len(winners) > 1, "one kernel is always best here, and nothing is tested"


@pytest.mark.gpu
def test_choosing_takes_two_matrices_of_memory() -> None:
    n, where = 6000, torch.device("cuda")
    X, Y = rows(n, 500, 0.05), some_labels(n, 10)
    fit_kernel(X[:50], Y[:50], KERNELS[0], where)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    choose_kernel([Fold(X, Y, X[:100], Y[:100])], where)
    assert torch.cuda.max_memory_allocated() - before < 3 * n * n * 4


def test_relations_are_kept_only_where_held_out_points_rank_better() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    noisy = rng.random((400, 12)) < 0.1
    groups = (X @ rng.normal(size=(5, 2))).argmax(axis=1)
    block = np.repeat(np.eye(2, dtype=bool), 6, axis=1)[groups] & (rng.random((400, 12)) < 0.6)
    X_all = sp.csr_matrix(X)
    related = sp.csr_matrix(block | (noisy & (rng.random((400, 12)) < 0.2)))
    fold = Fold(X_all[:250], related[:250], X_all[250:], related[250:])
    [chosen] = choose_kernel([fold], CPU)
    again = fit_kernel(X_all[:250], related[:250], chosen.kernel, CPU)
    assert chosen.kernel.pull > 0 and chosen.relations is not None
    np.testing.assert_allclose(again.relations, chosen.relations, atol=1e-3)
    [alone] = choose_kernel([fold], CPU, related=False)
    assert alone.kernel == replace(chosen.kernel, pull=0.0) and alone.relations is None
    one = sp.csr_matrix(noisy[:, :1])
    [apart] = choose_kernel([fold._replace(Y=one[:250], Y_held=one[250:])], CPU)
    assert apart.kernel.pull == 0 and apart.relations is None


def test_a_second_regression_is_kept_only_where_held_out_points_rank_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two groups of labels, a point has one; which label of its group is on it is chance."""
    monkeypatch.setattr(module, "PULLS", ())
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    groups = (X @ rng.normal(size=(5, 2))).argmax(axis=1)
    block = np.repeat(np.eye(2, dtype=bool), 6, axis=1)[groups] & (rng.random((400, 12)) < 0.6)
    X_all, Y = sp.csr_matrix(X), sp.csr_matrix(block)
    fold = Fold(X_all[:250], Y[:250], X_all[250:], Y[250:])
    [chosen] = choose_kernel([fold], CPU, second=True)
    assert chosen.kernel.second in module.SECONDS and chosen.second is not None
    again = fit_kernel(fold.X, fold.Y, chosen.kernel, CPU)
    np.testing.assert_allclose(
        again.scores(fold.X_held, CPU), chosen.scores(fold.X_held, CPU), atol=1e-3
    )
    assert reached(fold, chosen.kernel) > reached(fold, replace(chosen.kernel, second=0.0))
    [alone] = choose_kernel([fold], CPU)
    assert alone.kernel == replace(chosen.kernel, second=0.0) and alone.second is None
    monkeypatch.setattr(module, "LEAST_GAIN", 1.0)
    [not_kept] = choose_kernel([fold], CPU, second=True)
    assert not_kept.kernel == alone.kernel and not_kept.second is None
