"""The encoder f_x: sparse features → hidden layer → a point on the unit sphere.

Two fully connected layers with a ReLU between them (or none, for the paper's ablation) and an
ℓ2-normalised output: section 3.3 of the paper and its "Network Structure". This file holds the
trained weights and applies them; `dxml.paper._training` makes them.

On a CPU each row is computed by itself in a fixed order, so a point has the same embedding to the
last bit alone and in a batch, and for any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.compiled import compiled, prange

__all__ = ["Activation", "FeatureEncoder"]

Activation = Literal["relu", "linear"]
Floats = npt.NDArray[np.float32]


@compiled(parallel=True)
def _embed(indptr, indices, data, w1, b1, w2, b2, rectify, out):  # type: ignore[no-untyped-def]
    for i in prange(indptr.shape[0] - 1):
        hidden = b1.copy()
        for j in range(indptr[i], indptr[i + 1]):
            value = data[j]
            weight = w1[indices[j]]
            for c in range(hidden.shape[0]):
                hidden[c] += value * weight[c]
        point = b2.copy()
        for h in range(hidden.shape[0]):
            value = hidden[h]
            if value > 0 or (value < 0 and not rectify):
                weight = w2[h]
                for c in range(point.shape[0]):
                    point[c] += value * weight[c]
        squares = np.float32(0)
        for c in range(point.shape[0]):
            squares += point[c] * point[c]
        if squares > 0:
            scale = np.float32(1) / np.sqrt(squares)
            for c in range(point.shape[0]):
                out[i, c] = point[c] * scale
        else:
            out[i, :] = 0


@dataclass(frozen=True)
class FeatureEncoder:
    """Trained weights of f_x.

    Attributes
    ----------
    w1 : float32 (n_features, hidden)
    b1 : float32 (hidden,)
    w2 : float32 (hidden, dim)
    b2 : float32 (dim,)
    activation : "relu" or "linear"
    """

    w1: Floats
    b1: Floats
    w2: Floats
    b2: Floats
    activation: Activation = "relu"

    @property
    def dim(self) -> int:
        return int(self.w2.shape[1])

    def embed(self, X: sp.csr_matrix, device: str = "cpu") -> Floats:
        """Unit vectors of shape (n_samples, dim); zero rows where the network's output is zero."""
        if device != "cpu":
            return self._embed_on_gpu(X, device)
        out = np.empty((X.shape[0], self.dim), dtype=np.float32)
        rectify = self.activation == "relu"
        w1, b1, w2, b2 = (np.asarray(array) for array in (self.w1, self.b1, self.w2, self.b2))
        _embed(X.indptr, X.indices, X.data, w1, b1, w2, b2, rectify, out)
        return out

    def _embed_on_gpu(self, X: sp.csr_matrix, device: str, rows: int = 8192) -> Floats:
        import torch

        w1, b1, w2, b2 = (
            torch.from_numpy(np.ascontiguousarray(array)).to(device)
            for array in (self.w1, self.b1, self.w2, self.b2)
        )
        parts = []
        for start in range(0, X.shape[0], rows):
            batch = X[start : start + rows]
            features, starts, values = (
                torch.from_numpy(array).to(device)
                for array in (batch.indices, batch.indptr, batch.data)
            )
            hidden = b1 + torch.nn.functional.embedding_bag(
                features,
                w1,
                starts,
                mode="sum",
                per_sample_weights=values,
                include_last_offset=True,
            )  # (rows, hidden)
            if self.activation == "relu":
                hidden = hidden.relu_()
            point = torch.nn.functional.normalize(hidden @ w2 + b2)  # (rows, dim)
            parts.append(point.cpu().numpy())
        return np.concatenate(parts) if parts else np.empty((0, self.dim), np.float32)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The weights under the names of a saved model."""
        return {f"encoder.{name}": getattr(self, name) for name in ("w1", "b1", "w2", "b2")}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_features: int, activation: Activation) -> FeatureEncoder:
        """The inverse of `arrays`."""
        b1, b2 = (arrays.floats(f"encoder.{name}", None) for name in ("b1", "b2"))
        w1 = arrays.floats("encoder.w1", n_features, len(b1))
        return cls(w1, b1, arrays.floats("encoder.w2", len(b1), len(b2)), b2, activation)
