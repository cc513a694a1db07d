"""Kernel ridge regression: by hand, against numpy, and where distances vanish."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml.data import make_planted
from dxml.exceptions import DataFormatError
from dxml.learners import kernel_ridge as module
from dxml.learners.kernel_ridge import (
    KERNELS,
    Fold,
    Kernel,
    KernelVote,
    choose_kernel,
    extend_kernel,
    fit_kernel,
)
from dxml.metrics import precision_at_k
from dxml.progress import StageTimer
from dxml.topk import tie_order, topk_from_dense

CPU = torch.device("cpu")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
BOTH = [Kernel("gauss", 2, 0.1), Kernel("laplace", 1, 0.3)]


def brute_force(kernel: Kernel, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    distance = np.linalg.norm(A[:, None].astype(np.float64) - B[None], axis=2)
    if kernel.kind == "gauss":
        return np.exp(-kernel.gamma * distance**2 / 2)
    return np.exp(-kernel.gamma * distance)


def rows(n: int, d: int, density: float, seed: int = 0) -> sp.csr_matrix:
    X = sp.random(n, d, density, format="csr", random_state=seed, dtype=np.float32)
    return sp.csr_matrix(X / np.sqrt(density * d))


def some_labels(n: int, n_labels: int, seed: int = 0) -> sp.csr_matrix:
    return sp.csr_matrix(np.random.default_rng(seed).random((n, n_labels)) < 0.2)


def test_two_points_by_hand() -> None:
    """At distance 3, each its own label: K + ridge·I = [[2, e], [e, 2]] with e = exp(-3)."""
    X = sp.csr_matrix(np.float32([[0, 0], [0, 3]]))
    vote = fit_kernel(X, sp.eye(2, format="csr", dtype=bool), Kernel("laplace", 1, 1), CPU)
    e = np.exp(-3)
    votes = np.array([[2, -e], [-e, 2]]) / (4 - e**2)
    assert np.allclose(vote.votes, votes, atol=1e-6)
    at_first = vote.scores(sp.csr_matrix(np.float32([[0, 0]])), CPU)
    assert np.allclose(at_first, [1, e] @ votes, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", BOTH, ids=lambda kernel: kernel.kind)
@pytest.mark.parametrize("density", [0.1, 0.8])
def test_scores_equal_brute_force(density: float, kernel: Kernel, device: str) -> None:
    where = torch.device(device)
    X, Q, Y = rows(60, 40, density), rows(25, 40, density, 1), some_labels(60, 7)
    vote = fit_kernel(X, Y, kernel, where)
    assert sp.issparse(vote.points) == (density < 0.5)
    K = brute_force(kernel, X.toarray(), X.toarray()) + kernel.ridge * np.eye(60)
    expected = brute_force(kernel, Q.toarray(), X.toarray()) @ np.linalg.solve(K, Y.toarray())
    found = vote.scores(Q, where)
    assert found.dtype == np.float32 and np.allclose(found, expected, atol=1e-4)
    alone = np.concatenate([vote.scores(Q[i], where) for i in range(25)])
    assert np.allclose(alone, found, atol=1e-5)


@pytest.mark.parametrize("density", [0.1, 0.8])
def test_sparse_rows_equal_dense_rows(density: float) -> None:
    X, Q, Y = rows(60, 40, density), rows(25, 40, density, 1), some_labels(60, 7)
    sparse, dense = (fit_kernel(some, Y, BOTH[1], CPU) for some in (X, X.toarray()))
    assert np.array_equal(sparse.votes, dense.votes)
    assert np.allclose(sparse.scores(Q, CPU), dense.scores(Q.toarray(), CPU), atol=1e-6)
    forms = [KernelVote(points, sparse.votes, BOTH[1]) for points in (X, X.toarray())]
    assert np.allclose(forms[0].scores(Q, CPU), forms[1].scores(Q, CPU), atol=1e-5)


def test_every_way_to_multiply_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Q = rows(60, 400, 0.05), rows(25, 400, 0.05, 1)
    X, Q = sp.vstack([X, X[:1] * 0], format="csr"), sp.vstack([Q[:1] * 0, Q], format="csr")
    expected = Q.toarray() @ X.toarray().T
    assert np.allclose(module._inverted_products(X)(Q), expected, atol=1e-6)
    assert np.allclose(module._bagged_products(X, CPU)(Q), expected, atol=1e-6)
    assert np.allclose(module._dense_products(X.toarray(), CPU)(Q.toarray()), expected, atol=1e-6)
    whole = module._Distances(X, CPU).squared(Q)
    monkeypatch.setattr(module, "BLOCK", 600)
    assert torch.equal(module._Distances(X, CPU).squared(Q), whole)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("density", [0.1, 1.0])
def test_identical_rows_are_at_distance_zero(density: float, device: str) -> None:
    """Not at the root of a rounding error: exp(-sqrt(1e-7)) would be 0.9997."""
    X = rows(50, 3000, density)
    twice = sp.vstack([X, X, X * 0], format="csr")
    for points in (twice, twice.toarray()):
        squared = module._Distances(points, torch.device(device)).squared(points).cpu().numpy()
        same = np.tile(np.eye(50, dtype=bool), (2, 2))
        assert (squared[:100, :100][same] == 0).all()
        assert (squared[:100, :100][~same] > 0.1).all()
        assert not squared[100:, 100:].any()


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
    place = tie_order(np.bincount(fold.Y.indices, minlength=fold.Y.shape[1]))
    precision = precision_at_k(fold.Y_held, topk_from_dense(scores, depth, place), depth)
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


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ridge", [0.0, 1e-9])
def test_singular_kernels_get_more_ridge(ridge: float, device: str) -> None:
    X = sp.csr_matrix(np.tile(np.float32([[1, 0, 0, 0]]), (30, 1)))
    vote = fit_kernel(X, some_labels(30, 4), Kernel("gauss", 1, ridge), torch.device(device))
    assert 1e-9 < vote.kernel.ridge < 0.1
    assert np.isfinite(vote.votes).all()
    assert np.allclose(
        vote.scores(X[:1], torch.device(device)), some_labels(30, 4).mean(axis=0), atol=0.05
    )


def test_rows_that_are_no_numbers_are_refused() -> None:
    X = rows(20, 10, 0.3)
    X.data[0] = np.nan
    with pytest.raises(DataFormatError, match="not finite"):
        fit_kernel(X, some_labels(20, 4), KERNELS[0], CPU)


def test_tf32_is_off_inside_and_as_before_outside() -> None:
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    try:
        for setting in (True, False):
            matmul.allow_tf32 = setting
            with module._full_precision():
                assert not matmul.allow_tf32
            assert matmul.allow_tf32 == setting
    finally:
        matmul.allow_tf32 = before


@pytest.mark.gpu
def test_choosing_takes_two_matrices_of_memory() -> None:
    n, where = 6000, torch.device("cuda")
    X, Y = rows(n, 500, 0.05), some_labels(n, 10)
    fit_kernel(X[:50], Y[:50], KERNELS[0], where)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    choose_kernel([Fold(X, Y, X[:100], Y[:100])], where)
    assert torch.cuda.max_memory_allocated() - before < 3 * n * n * 4


def related_data(n: int = 60) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    first = X @ rng.normal(size=(4, 3)) + 0.3 * rng.normal(size=(n, 3)) > 0.4
    Y = np.concatenate([first, first[:, :2] & first[:, 1:]], axis=1)
    return sp.csr_matrix(X), sp.csr_matrix(Y)


def test_relations_are_learnt_from_points_that_were_left_out_one_by_one() -> None:
    X, Y = related_data()
    kernel = Kernel("gauss", 2, 0.3, pull=2.0)
    model = fit_kernel(X, Y, kernel, CPU)
    alone = replace(kernel, pull=0.0)
    left_out = np.empty(Y.shape)
    for i in range(X.shape[0]):
        others = np.arange(X.shape[0]) != i
        left_out[i] = fit_kernel(X[others], Y[others], alone, CPU).scores(X[i], CPU)
    target = Y.toarray() - left_out
    wanted = np.linalg.solve(left_out.T @ left_out + 2.0 * np.eye(5), left_out.T @ target)
    assert model.relations is not None
    np.testing.assert_allclose(model.relations, wanted, atol=2e-4)
    own = fit_kernel(X, Y, alone, CPU).scores(X[:7], CPU)
    np.testing.assert_allclose(model.scores(X[:7], CPU), own + own @ wanted, atol=1e-3)


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
    one = sp.csr_matrix(noisy[:, :1])
    [apart] = choose_kernel([fold._replace(Y=one[:250], Y_held=one[250:])], CPU)
    assert apart.kernel.pull == 0 and apart.relations is None


@pytest.mark.parametrize("sparse", [True, False])
def test_an_extended_kernel_solves_its_block(sparse: bool) -> None:
    rng = np.random.default_rng(0)
    X: Any = rng.normal(size=(30, 8)).astype(np.float32)
    X[rng.random(X.shape) < 0.7] = 0
    X = sp.csr_matrix(X) if sparse else X + np.float32(0.1)
    Y = sp.csr_matrix(rng.random((30, 4)) < 0.4)
    padded = Y[:20].toarray()
    padded[:, 3] = False
    truth = sp.csr_matrix(np.concatenate([padded, Y[20:].toarray()]))
    cpu, kernel = torch.device("cpu"), Kernel("gauss", 2, 0.1)
    known = fit_kernel(X[:20], Y[:20, :3], kernel, cpu)
    whole = fit_kernel(X, truth, kernel, cpu)
    every = extend_kernel(known, truth[:20], X[20:], truth[20:], np.arange(20), cpu)
    assert every.votes == pytest.approx(whole.votes, abs=1e-4)
    rows = np.array([1, 5, 6])
    some = extend_kernel(known, truth[:20], X[20:], truth[20:], rows, cpu)
    block = np.concatenate([rows, np.arange(20, 30)])
    left = truth[block].toarray() - some.scores(X[block], cpu) - 0.1 * some.votes[block]
    assert np.abs(left).max() < 1e-4
    others = np.setdiff1d(np.arange(20), rows)
    assert (some.votes[others, :3] == known.votes[others]).all() and not some.votes[others, 3].any()
    assert isinstance(some, KernelVote) and some.points.shape == (30, 8)
    relations = np.arange(9, dtype=np.float32).reshape(3, 3)
    related = extend_kernel(
        replace(known, relations=relations), truth[:20], X[20:], truth[20:], rows, cpu
    )
    assert (related.votes == some.votes).all()  # labels are told apart before they are related
    own = some.scores(X, cpu)
    expected = own[:, :3] + own[:, :3] @ relations
    assert related.scores(X, cpu)[:, :3] == pytest.approx(expected, abs=1e-6)
    assert (related.scores(X, cpu)[:, 3] == own[:, 3]).all()  # the new label, to no other


def test_new_labels_take_no_room_among_the_relations() -> None:
    """A table of every label with every other would have 160 GB here."""
    rng = np.random.default_rng(0)
    X, cpu = sp.csr_matrix(rng.random((6, 4), dtype=np.float32)), torch.device("cpu")
    Y = sp.csr_matrix(rng.random((5, 3)) < 0.5)
    known = fit_kernel(X[:5], Y, Kernel("gauss", 2, 0.1), cpu)
    known = replace(known, relations=np.eye(3, dtype=np.float32))
    many = 200_000
    wide = sp.csr_matrix((Y.data, Y.indices, Y.indptr), shape=(5, many))
    last = sp.csr_matrix(([True], ([0], [many - 1])), shape=(1, many))
    grown = extend_kernel(known, wide, X[5:], last, np.arange(5), cpu)
    assert grown.relations is not None and grown.relations.shape == (3, 3)
    assert grown.scores(X[5:], cpu)[0].argmax() == many - 1
