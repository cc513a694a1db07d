"""The linear head on a GPU: the optimum that the CPU finds, label by label."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from dxml._learners import linear_training
from dxml._learners.linear_examples import label_signs
from dxml._learners.linear_training import fit_linear
from dxml.data import make_planted

LONG = 400  # passes, enough for both to arrive


def task() -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Rows, and signs over random shortlists; a label has no point at all."""
    data = make_planted(120, 60, 9, random_state=0)
    rng = np.random.default_rng(0)
    shortlist = sp.csr_matrix(rng.random(data.Y.shape) < 0.4)
    labels = sp.csr_matrix(data.Y, dtype=bool)
    signs = label_signs(labels, shortlist)
    nothing = sp.csr_matrix((1, signs.shape[1]), dtype=np.int8)
    return data.X, sp.vstack([nothing, signs], format="csr", dtype=np.int8)


def objective(
    X: sp.csr_matrix, signs: sp.csr_matrix, w: npt.NDArray[np.float32], C: float
) -> npt.NDArray[np.float64]:
    """½ ‖w‖² + C Σ max(0, 1 − t (wᵀx − 1))² of every label."""
    scores = w @ X.T.toarray() - 1
    t = signs.toarray()
    loss = np.maximum(0, 1 - t * scores) ** 2 * (t != 0)
    return 0.5 * (w.astype(np.float64) ** 2).sum(axis=1) + C * loss.sum(axis=1)


def run(device: str, **settings: object) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    X, signs = task()
    head, duals = fit_linear(X, signs, prune=0.0, device=device, **settings)  # type: ignore[arg-type]
    return head.weights.toarray(), duals


@pytest.mark.gpu
def test_the_same_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_training, "TOL", np.float32(1e-5))
    weights, duals = run("cuda", C=2.0, max_iter=LONG)
    wanted, wanted_duals = run("cpu", C=2.0, max_iter=LONG)
    X, signs = task()
    best = objective(X, signs, wanted, 2.0)
    assert np.allclose(objective(X, signs, weights, 2.0), best, rtol=1e-4)
    assert np.allclose(weights, wanted, atol=2e-3)
    assert np.allclose(duals, wanted_duals, atol=2e-2)
    assert not weights[0].any()


@pytest.mark.gpu
def test_labels_of_many_points_are_trained_by_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_training, "TOL", np.float32(1e-5))
    X, signs = task()
    alone, _ = fit_linear(X, signs, prune=0.0, max_iter=LONG)
    sizes = np.diff(signs.indptr)
    some = np.flatnonzero(sizes > np.median(sizes))
    monkeypatch.setattr(linear_training, "labels_for_cpu", lambda *_: some)
    _, duals = fit_linear(X, signs, prune=0.0, max_iter=5, device="cuda")
    head, _ = fit_linear(X, signs, prune=0.0, duals=duals, max_iter=LONG, device="cuda")
    assert 0 < len(some) < len(sizes)
    assert np.allclose(head.weights.toarray(), alone.weights.toarray(), atol=2e-3)


@pytest.mark.gpu
def test_a_few_passes_come_as_near_as_on_a_cpu() -> None:
    X, signs = task()
    few = objective(X, signs, run("cuda", C=1.0, max_iter=5)[0], 1.0)
    wanted = objective(X, signs, run("cpu", C=1.0, max_iter=5)[0], 1.0)
    assert few.sum() < 1.02 * wanted.sum()


@pytest.mark.gpu
def test_rows_that_are_not_used_and_duals_to_start_from() -> None:
    X, signs = task()
    use = np.arange(X.shape[0]) % 3 > 0
    kept = sp.csr_matrix(signs.multiply(use[None, :]), dtype=np.int8)
    wanted, _ = fit_linear(X, kept, prune=0.0, max_iter=LONG)
    head, duals = fit_linear(X, signs, prune=0.0, rows=use, max_iter=3, device="cuda")
    assert not duals[~use[signs.indices]].any()
    head, duals = fit_linear(
        X, signs, prune=0.0, rows=use, duals=duals, max_iter=LONG, device="cuda"
    )
    assert np.allclose(head.weights.toarray(), wanted.weights.toarray(), atol=0.05)


@pytest.mark.gpu
def test_repeatable_sorted_and_pruned() -> None:
    X, signs = task()
    first, duals = fit_linear(X, signs, prune=0.05, device="cuda")
    again, _ = fit_linear(X, signs, prune=0.05, device="cuda")
    assert np.array_equal(first.weights.data, again.weights.data)
    assert abs(first.weights.data).min() > 0.05
    assert first.weights.has_canonical_format
    assert len(duals) == signs.nnz
