"""Training of the first layer on sparse rows: only weights of features in the batch are updated.

SGD with momentum and weight decay moves every weight at every step, also those whose feature does
not occur in the batch. For such a row one step is linear in its weight w and velocity v,

    v ← μ v + λ w,   w ← w − η v,    that is   (w, v) ← M (w, v),

so t missed steps are M^t, and they are applied when the feature next occurs. Up to rounding the
result equals that of the dense update, but the work and memory of a step depend only on the batch.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from dxml._core.compiled import compiled, prange
from dxml._core.sparse import sparse_product

__all__ = ["CpuInputLayer", "GpuInputLayer", "InputLayer", "idle_steps"]

Floats = npt.NDArray[np.float32]


class InputLayer(Protocol):
    """X @ W for a batch of rows, and the SGD step on W."""

    def start_epoch(self, batches: list[npt.NDArray[np.int64]]) -> None:
        """Say which batches will come, in this order."""

    def forward(self, rows: npt.NDArray[np.int64]) -> Tensor:
        """The products of these rows, shape (B, hidden), a leaf tensor that requires a gradient."""

    def step(self, gradient: Tensor) -> None:
        """Update W, given the gradient at the last `forward`'s result."""

    def weights(self) -> Floats:
        """W of shape (n_features, hidden), every row up to date."""


def idle_steps(rate: float, momentum: float, decay: float, n_steps: int) -> Floats:
    """M^t for t = 0 … n_steps as rows (ww, wv, vw, vv): w' = ww·w + wv·v, v' = vw·w + vv·v."""
    one = np.array([[1 - rate * decay, -rate * momentum], [decay, momentum]])
    powers = np.empty((n_steps + 1, 2, 2))
    powers[0] = np.eye(2)
    for t in range(n_steps):
        powers[t + 1] = one @ powers[t]
    return powers.reshape(-1, 4).astype(np.float32)


@compiled(parallel=True)
def _catch_up(features, now, last, powers, w, v):  # type: ignore[no-untyped-def]
    for i in prange(features.shape[0]):
        f = features[i]
        missed = now - last[f]
        last[f] = now
        if missed == 0:
            continue
        ww, wv, vw, vv = powers[missed]
        for c in range(w.shape[1]):
            weight, velocity = w[f, c], v[f, c]
            w[f, c] = ww * weight + wv * velocity
            v[f, c] = vw * weight + vv * velocity


@compiled(parallel=True)
def _update(  # type: ignore[no-untyped-def]
    features, starts, rows, data, gradient, rate, momentum, decay, last, now, w, v
):
    for i in prange(features.shape[0]):
        f = features[i]
        weight, velocity = w[f], v[f]
        for c in range(weight.shape[0]):
            velocity[c] = momentum * velocity[c] + decay * weight[c]
        for j in range(starts[f], starts[f + 1]):
            value, row = data[j], gradient[rows[j]]
            for c in range(weight.shape[0]):
                velocity[c] += value * row[c]
        for c in range(weight.shape[0]):
            weight[c] -= rate * velocity[c]
        last[f] = now


class CpuInputLayer:
    """Row by row in numba, in a fixed order: the same bits for any number of threads."""

    def __init__(
        self, X: sp.csr_matrix, weights: Floats, rate: float, momentum: float, decay: float, n: int
    ) -> None:
        self._x = X
        self._w = weights
        self._v = np.zeros_like(weights)
        self._last = np.zeros(weights.shape[0], dtype=np.int64)
        self._now = 0
        self._powers = idle_steps(rate, momentum, decay, n)
        self._settings = (np.float32(rate), np.float32(momentum), np.float32(decay))
        self._columns: Any = None

    def start_epoch(self, batches: list[npt.NDArray[np.int64]]) -> None:
        """Nothing to prepare."""

    def forward(self, rows: npt.NDArray[np.int64]) -> Tensor:
        batch = self._x[rows]
        self._columns = batch.tocsc()
        self._features = np.flatnonzero(np.diff(self._columns.indptr))
        _catch_up(self._features, self._now, self._last, self._powers, self._w, self._v)
        return torch.from_numpy(sparse_product(batch, self._w)).requires_grad_()

    def step(self, gradient: Tensor) -> None:
        self._now += 1
        csc = self._columns
        _update(
            self._features,
            csc.indptr,
            csc.indices,
            csc.data,
            gradient.numpy(),
            *self._settings,
            self._last,
            self._now,
            self._w,
            self._v,
        )

    def weights(self) -> Floats:
        everything = np.arange(self._w.shape[0])
        _catch_up(everything, self._now, self._last, self._powers, self._w, self._v)
        return self._w


class PlacedLayer:
    """Rows, weights and their velocities on a device, for input layers in torch.

    Parameters
    ----------
    n : int
        Most steps that a feature may be idle.
    """

    def __init__(
        self,
        X: sp.csr_matrix,
        weights: Floats,
        rate: float,
        momentum: float,
        decay: float,
        n: int,
        device: str,
    ) -> None:
        self._lengths = np.diff(X.indptr).astype(np.int64)
        self._indptr = torch.from_numpy(X.indptr.astype(np.int64)).to(device)
        self._indices = torch.from_numpy(X.indices.astype(np.int32)).to(device)
        self._data = torch.from_numpy(X.data).to(device)
        self._w = torch.from_numpy(weights).to(device)
        self._v = torch.zeros_like(self._w)
        self._last = torch.zeros(len(weights), dtype=torch.int64, device=device)
        self._now = 0
        self._powers = torch.from_numpy(idle_steps(rate, momentum, decay, n)).to(device)
        self._rate, self._momentum, self._decay = rate, momentum, decay
        self._device = device


class GpuInputLayer(PlacedLayer):
    """The same in torch: a batch becomes a dense matrix over the features that occur in it."""

    def start_epoch(self, batches: list[npt.NDArray[np.int64]]) -> None:
        """Nothing to prepare."""

    def forward(self, rows: npt.NDArray[np.int64]) -> Tensor:
        total = int(self._lengths[rows].sum())
        chosen = torch.from_numpy(rows).to(self._device, non_blocking=True)
        starts = self._indptr[chosen]
        lengths = self._indptr[chosen + 1] - starts
        order = torch.arange(len(rows), device=self._device)
        owner = order.repeat_interleave(lengths, output_size=total)  # (nnz,)
        first = lengths.cumsum(0) - lengths
        entry = torch.arange(total, device=self._device) - first[owner] + starts[owner]
        self._features, columns = self._indices[entry].long().unique(return_inverse=True)
        self._catch_up(self._features)
        self._batch = torch.zeros(len(rows), len(self._features), device=self._device)
        self._batch[owner, columns] = self._data[entry]
        return (self._batch @ self._w[self._features]).requires_grad_()  # (B, hidden)

    def step(self, gradient: Tensor) -> None:
        self._now += 1
        weight_gradient = self._batch.T @ gradient  # (features of the batch, hidden)
        weight, velocity = self._w[self._features], self._v[self._features]
        velocity = velocity * self._momentum + weight_gradient + self._decay * weight
        self._v[self._features] = velocity
        self._w[self._features] = weight - self._rate * velocity
        self._last[self._features] = self._now

    def weights(self) -> Floats:
        for part in torch.arange(len(self._w), device=self._device).split(65_536):
            self._catch_up(part)
        return self._w.cpu().numpy()

    def _catch_up(self, features: Tensor) -> None:
        ww, wv, vw, vv = self._powers[self._now - self._last[features]].T[:, :, None]
        weight, velocity = self._w[features], self._v[features]
        self._w[features] = ww * weight + wv * velocity
        self._v[features] = vw * weight + vv * velocity
        self._last[features] = self._now
