"""The sparse input layer: products as scipy's, lazy updates as dense SGD."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._core.sparse import sparse_product
from dxml.paper._input_layer import CpuInputLayer, GpuInputLayer, InputLayer, idle_steps

from .rows import sparse_rows


def test_sparse_product_equals_scipy() -> None:
    X = sparse_rows(20, 50, 0.1, 0)
    W = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32)
    assert np.allclose(sparse_product(X, W), X @ W, atol=1e-5)


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
