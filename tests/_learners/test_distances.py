"""Squared distances: every way to multiply, and where they vanish."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._learners import distances as module

CPU = torch.device("cpu")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def rows(n: int, d: int, density: float, seed: int = 0) -> sp.csr_matrix:
    X = sp.random(n, d, density, format="csr", random_state=seed, dtype=np.float32)
    return sp.csr_matrix(X / np.sqrt(density * d))


def test_every_way_to_multiply_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Q = rows(60, 400, 0.05), rows(25, 400, 0.05, 1)
    X, Q = sp.vstack([X, X[:1] * 0], format="csr"), sp.vstack([Q[:1] * 0, Q], format="csr")
    expected = Q.toarray() @ X.toarray().T
    assert np.allclose(module._inverted_products(X)(Q), expected, atol=1e-6)
    assert np.allclose(module._bagged_products(X, CPU)(Q), expected, atol=1e-6)
    assert np.allclose(module._dense_products(X.toarray(), CPU)(Q.toarray()), expected, atol=1e-6)
    whole = module.Distances(X, CPU).squared(Q)
    monkeypatch.setattr(module, "BLOCK", 600)
    assert torch.equal(module.Distances(X, CPU).squared(Q), whole)


@pytest.mark.parametrize("density", [0.1, 1.0])
def test_those_without_torch_are_the_same(density: float) -> None:
    """What may be rounding alone is 0 there too: the first rows are points."""
    X = rows(60, 400, density)
    for points in (X, X.toarray()):
        asked = sp.vstack([X[:20], rows(25, 400, density, 1)], format="csr")
        expected = module.Distances(points, CPU).squared(asked).numpy()
        steady = module.SteadyDistances(points)
        found = steady.squared(asked)
        np.testing.assert_allclose(found, expected, atol=2e-6)
        assert (np.diag(found[:20]) == 0).all() and (found[20:] > 0.1).all()
        for i in range(45):  # its length too, which is no difference of sums over all rows
            np.testing.assert_array_equal(steady.squared(asked[i])[0], found[i])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("density", [0.1, 1.0])
def test_identical_rows_are_at_distance_zero(density: float, device: str) -> None:
    """Not at the root of a rounding error: exp(-sqrt(1e-7)) would be 0.9997."""
    X = rows(50, 3000, density)
    twice = sp.vstack([X, X, X * 0], format="csr")
    for points in (twice, twice.toarray()):
        squared = module.Distances(points, torch.device(device)).squared(points).cpu().numpy()
        same = np.tile(np.eye(50, dtype=bool), (2, 2))
        assert (squared[:100, :100][same] == 0).all()
        assert (squared[:100, :100][~same] > 0.1).all()
        assert not squared[100:, 100:].any()


def test_tf32_is_off_inside_and_as_before_outside() -> None:
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    try:
        for setting in (True, False):
            matmul.allow_tf32 = setting
            with module.full_precision():
                assert not matmul.allow_tf32
            assert matmul.allow_tf32 == setting
    finally:
        matmul.allow_tf32 = before
