"""Kernel ridge regression: by hand, against numpy, and where distances vanish."""

from __future__ import annotations

import pickle
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._learners import distances, steady_product
from dxml._learners import kernel_ridge as module
from dxml._learners.kernel_ridge import KERNELS, Kernel, KernelVote, extend_kernel, fit_kernel
from dxml.exceptions import DataFormatError

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
    assert np.allclose(alone, found, atol=0 if device == "cpu" else 1e-5)


@pytest.mark.parametrize("density", [0.1, 0.8])
def test_sparse_rows_equal_dense_rows(density: float) -> None:
    X, Q, Y = rows(60, 40, density), rows(25, 40, density, 1), some_labels(60, 7)
    sparse, dense = (fit_kernel(some, Y, BOTH[1], CPU) for some in (X, X.toarray()))
    assert np.array_equal(sparse.votes, dense.votes)
    assert np.allclose(sparse.scores(Q, CPU), dense.scores(Q.toarray(), CPU), atol=1e-6)
    forms = [KernelVote(points, sparse.votes, BOTH[1]) for points in (X, X.toarray())]
    assert np.allclose(forms[0].scores(Q, CPU), forms[1].scores(Q, CPU), atol=1e-5)


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


def related_data(n: int = 60) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    first = X @ rng.normal(size=(4, 3)) + 0.3 * rng.normal(size=(n, 3)) > 0.4
    Y = np.concatenate([first, first[:, :2] & first[:, 1:]], axis=1)
    return sp.csr_matrix(X), sp.csr_matrix(Y)


def test_relations_of_fewer_points_than_labels_solve_a_system_of_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """3,000 labels and 6 points: the system of the labels would have 3,000 unknowns."""
    rng = np.random.default_rng(0)
    scores, left = rng.normal(size=(2, 6, 3000)).astype(np.float32)
    related = module.relations_of(torch.from_numpy(scores), torch.from_numpy(left), 2.0).numpy()
    residual = scores.T @ (scores @ related - left) + 2.0 * related  # the gradient, at the least
    assert np.abs(residual).max() < 1e-3 < np.abs(scores.T @ left).max()
    sizes, solve = [], torch.linalg.solve

    def noted(matrix: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        sizes.append(len(matrix))
        return solve(matrix, right)

    monkeypatch.setattr(torch.linalg, "solve", noted)
    for each, rest in ((scores, left), (scores.T, left.T)):
        module.relations_of(torch.from_numpy(each), torch.from_numpy(rest), 2.0)
    assert sizes == [6, 6]


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


def test_a_vote_is_pickled_after_it_has_scored() -> None:
    X, Y = rows(30, 8, 0.4), some_labels(30, 4)
    vote = fit_kernel(X, Y, BOTH[0], CPU)
    before = vote.scores(X, CPU)
    again = pickle.loads(pickle.dumps(vote))
    assert np.array_equal(again.scores(X, CPU), before)
    assert np.array_equal(vote.scores(X, CPU), before)


@pytest.mark.parametrize("more", [{}, {"pull": 1.0}, {"second": 2.0}], ids=str)
@pytest.mark.parametrize("kind", ["gauss", "laplace"])
@pytest.mark.parametrize("density", [0.2, 0.9])
def test_a_point_has_the_same_bits_alone_and_by_numpy(
    density: float, kind: Any, more: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are training points, a row of nothing, and many more."""
    X, Y = rows(300, 70, density), some_labels(300, 23)
    vote = fit_kernel(X, Y, Kernel(kind, 1.5, 0.1, **more), CPU)
    assert sp.issparse(vote.points) == (density < 0.5)
    asked = sp.vstack([X[:3], X[:1] * 0, rows(80, 70, density, 1)], format="csr")
    expected = vote.scores(asked, CPU)
    assert expected.std() > 0.05
    for size in (1, 2, 3, 17, 64):
        np.testing.assert_array_equal(vote.scores(asked[3 : 3 + size], CPU), expected[3:][:size])
    monkeypatch.setattr(module, "BLOCK", 2100)
    np.testing.assert_array_equal(vote.scores(asked, CPU), expected)
    for numpy in (distances, steady_product):
        monkeypatch.setattr(numpy, "spare", lambda rows: True)
    monkeypatch.setattr(distances, "_invert", None)
    monkeypatch.setattr(steady_product, "_compiled", None)
    np.testing.assert_array_equal(vote.scores(asked, CPU), expected)
    assert pickle.loads(pickle.dumps(vote)).votes.shape == (300, 23)


def test_votes_for_very_many_labels_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the inverse, where points carry few labels; by two triangles otherwise."""
    X, Y = rows(60, 30, 0.3), sp.csr_matrix(some_labels(60, 100).multiply(some_labels(60, 100, 1)))
    plain = [fit_kernel(X, Y, kernel, CPU).votes for kernel in BOTH]
    monkeypatch.setattr(module, "MANY_LABELS", 100)
    calls, inverse = [], torch.cholesky_inverse
    monkeypatch.setattr(torch, "cholesky_inverse", lambda L: calls.append(1) or inverse(L))
    for kernel, votes in zip(BOTH, plain, strict=True):
        found = fit_kernel(X, Y, kernel, CPU).votes
        np.testing.assert_allclose(found, votes, atol=1e-5)
    assert len(calls) == 2
    fit_kernel(X, some_labels(60, 100), BOTH[0], CPU)  # a fifth of the labels a point
    assert len(calls) == 2


def test_the_second_regression_learns_what_left_out_points_lack() -> None:
    """Its rows are leave-one-out scores, so that a point's own labels are not among them."""
    X, Y = related_data()
    kernel = Kernel("gauss", 2, 0.3, second=2.0)
    model, alone = fit_kernel(X, Y, kernel, CPU), replace(kernel, second=0.0)
    left_out = np.empty(Y.shape)
    for i in range(X.shape[0]):
        others = np.arange(X.shape[0]) != i
        left_out[i] = fit_kernel(X[others], Y[others], alone, CPU).scores(X[i], CPU)

    def as_rows(scores: np.ndarray) -> np.ndarray:
        roots = np.sqrt(np.maximum(scores, 0))
        return roots / np.linalg.norm(roots, axis=1, keepdims=True)

    learnt = as_rows(left_out)
    among = np.exp(-4 * (1 - learnt @ learnt.T)) + 2.0 * np.eye(len(learnt))
    wanted = np.linalg.solve(among, Y.toarray() - left_out)
    assert model.second is not None and model.second.second is None
    np.testing.assert_allclose(model.second.votes, wanted, atol=1e-3)
    own = fit_kernel(X, Y, alone, CPU).scores(X[:7], CPU)
    more = np.exp(-4 * (1 - as_rows(own) @ learnt.T)) @ wanted
    assert np.abs(more).max() > 0.05
    np.testing.assert_allclose(model.scores(X[:7], CPU), own + more, atol=2e-3)


def test_without_a_point_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a GPU, which divided by the number of points; this one stands for it."""
    X, gpu = rows(9, 5, 0.5), SimpleNamespace(type="cuda")
    vote = KernelVote(X[:0], np.zeros((0, 3), np.float32), KERNELS[0])
    on_device = distances.Distances(vote.points, CPU), torch.zeros(0, 3)
    monkeypatch.setitem(vote._placed, str(gpu), on_device)
    for where in (gpu, CPU):
        assert np.array_equal(vote.own_scores(X, where), np.zeros((9, 3)))  # type: ignore[arg-type]


def test_a_second_regression_has_every_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """Relations are learnt from some of many, which have no rows of their own."""
    monkeypatch.setattr(module, "LEFT_OUT", 10)
    X, Y = related_data()
    second = fit_kernel(X, Y, Kernel("gauss", 2, 0.3, second=2.0), CPU).second
    assert second is not None and second.votes.shape == Y.shape == second.points.shape


def test_points_and_labels_that_come_later_leave_the_second_regression_alone() -> None:
    X, Y = related_data()
    n, cpu = X.shape[0], CPU
    known = fit_kernel(X[: n - 5], Y[: n - 5, :3], Kernel("gauss", 2, 0.3, second=2.0), cpu)
    padded = sp.csr_matrix(sp.hstack([Y[:, :3], np.zeros((n, 1), bool)], format="csr"))
    grown = extend_kernel(known, padded[: n - 5], X[n - 5 :], padded[n - 5 :], np.arange(9), cpu)
    assert grown.second is known.second
    own = grown.own_scores(X[:4], cpu)
    assert known.second is not None
    more = known.second.scores(module.rows_of_scores(own[:, :3]), cpu)
    found = grown.scores(X[:4], cpu)
    np.testing.assert_allclose(found[:, :3], own[:, :3] + more, atol=1e-6)
    assert (found[:, 3] == own[:, 3]).all()


def test_rows_of_scores_have_length_one_or_none() -> None:
    found = module.rows_of_scores(np.float32([[0.09, 0.16, -1], [0, -2, 0]]))
    np.testing.assert_allclose(found, [[0.6, 0.8, 0], [0, 0, 0]], atol=1e-6)
