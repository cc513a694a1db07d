"""A wide ReLU layer over sparse features and a one-vs-all logistic head over it.

`WideHead` holds and applies the weights; `dxml._learners.wide_training` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional as F

from dxml._core.arrays import Arrays
from dxml._core.compiled import compiled, prange
from dxml._core.precision import unpack
from dxml._core.sparse import plain_csr
from dxml._neighbors.cosine import only_features

__all__ = ["WideHead"]

Floats = npt.NDArray[np.float32]
Weights = tuple[Tensor, Tensor, Tensor, Tensor]

ROWS = 4096  # points whose hidden layer is computed at a time
DENSE_SHARE = 0.1  # of non-zeros from which on a CPU multiplies a large batch as a dense one


@compiled(parallel=True)
def _rectified(indptr, indices, data, weights, bias, out):  # type: ignore[no-untyped-def]
    for i in prange(indptr.shape[0] - 1):
        row = out[i]
        row[:] = bias
        for j in range(indptr[i], indptr[i + 1]):
            value = data[j]
            weight = weights[indices[j]]
            for c in range(row.shape[0]):
                row[c] += value * weight[c]
        for c in range(row.shape[0]):
            row[c] = max(row[c], np.float32(0))


@dataclass(frozen=True, eq=False)
class WideHead:
    """Trained weights of both layers.

    Attributes
    ----------
    inner : float32 (width, n_features)
        Kept column by column, so that a point's few features are read as whole runs. Points may
        have more features, which came later; they weigh nothing.
    inner_bias : float32 (width,)
    outer : float32 (n_labels, width)
    outer_bias : float32 (n_labels,)
    """

    inner: Floats
    inner_bias: Floats
    outer: Floats
    outer_bias: Floats
    _placed: dict[str, Weights] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inner", np.asfortranarray(self.inner))

    def hidden(self, X: sp.csr_matrix, device: torch.device) -> Floats:
        """The rectified hidden layer, (n_samples, width)."""
        return self.hidden_tensor(X, device).cpu().numpy()

    def scores(self, X: sp.csr_matrix, device: torch.device) -> Floats:
        """Logits of all labels, (n_samples, n_labels)."""
        out = np.empty((X.shape[0], len(self.outer)), dtype=np.float32)
        for start in range(0, X.shape[0], ROWS):
            part = X[start : start + ROWS] if X.shape[0] > ROWS else X
            out[start : start + ROWS] = self.scores_tensor(part, device).cpu().numpy()
        return out

    def hidden_tensor(self, X: sp.csr_matrix, device: torch.device) -> Tensor:
        """`hidden`, left on the device."""
        X = self._without_later(X)
        n, d = X.shape
        if device.type != "cpu":
            return self._hidden_on_gpu(X, device)
        if n >= 32 and X.nnz > DENSE_SHARE * n * d:
            return self._hidden_from_dense(X, device)
        out = np.empty((n, len(self.inner_bias)), dtype=np.float32)
        weights, bias = np.asarray(self.inner).T, np.asarray(self.inner_bias)
        _rectified(X.indptr, X.indices, X.data, weights, bias, out)
        return torch.from_numpy(out)

    def scores_tensor(self, X: sp.csr_matrix, device: torch.device) -> Tensor:
        """`scores`, left on the device."""
        *_, outer, bias = self._on(device)
        return torch.addmm(bias, self.hidden_tensor(X, device), outer.T)

    def _without_later(self, X: sp.csr_matrix) -> sp.csr_matrix:
        d = self.inner.shape[1]
        if X.shape[1] == d:
            return X
        kept = only_features(X, np.arange(X.shape[1]) < d)
        return plain_csr(kept.data, kept.indices, kept.indptr, (X.shape[0], d))

    def widened(self, n_features: int) -> WideHead:
        """With zeros as the weights of the features that came later."""
        more = np.zeros((len(self.inner), n_features - self.inner.shape[1]), dtype=np.float32)
        return replace(self, inner=np.concatenate([self.inner, more], axis=1))

    def _hidden_from_dense(self, X: sp.csr_matrix, device: torch.device) -> Tensor:
        weights, bias, *_ = self._on(device)
        out = torch.empty(X.shape[0], len(bias))
        for start in range(0, X.shape[0], ROWS):
            part = torch.from_numpy(X[start : start + ROWS].toarray())
            torch.addmm(bias, part, weights, out=out[start : start + ROWS])
        return out.relu_()

    def _hidden_on_gpu(self, X: sp.csr_matrix, device: torch.device) -> Tensor:
        weights, bias, *_ = self._on(device)
        features, starts, values = (
            torch.from_numpy(array).to(device) for array in (X.indices, X.indptr, X.data)
        )
        product = F.embedding_bag(
            features,
            weights,
            starts,
            mode="sum",
            per_sample_weights=values,
            include_last_offset=True,
        )  # (n, width)
        return product.add_(bias).relu_()

    def _on(self, device: torch.device) -> Weights:
        """The weights as tensors, the inner ones by feature: (n_features, width)."""
        key = str(device)
        if key not in self._placed:
            arrays = (self.inner.T, self.inner_bias, self.outer, self.outer_bias)
            first, second, third, fourth = (
                torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in arrays
            )
            self._placed[key] = first, second, third, fourth
        return self._placed[key]

    def arrays(self, prefix: str = "wide") -> dict[str, npt.NDArray[Any]]:
        """The weights under the names of a saved model, the inner ones by feature."""
        return {
            f"{prefix}.inner_by_feature": self.inner.T,
            f"{prefix}.inner_bias": self.inner_bias,
            f"{prefix}.outer": self.outer,
            f"{prefix}.outer_bias": self.outer_bias,
        }

    @classmethod
    def from_arrays(
        cls, arrays: Arrays, n_features: int, n_labels: int, width: int, prefix: str = "wide"
    ) -> WideHead:
        """The inverse of `arrays`, in whatever precision they were saved."""

        def read(name: str, *shape: int) -> Floats:
            return unpack(f"{prefix}.{name}", arrays.packed(f"{prefix}.{name}", *shape))

        return cls(
            read("inner_by_feature", n_features, width).T,
            read("inner_bias", width),
            read("outer", n_labels, width),
            read("outer_bias", n_labels),
        )
