"""The encoder against the paper's formula."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml.paper._encoder import FeatureEncoder

from .rows import sparse_rows


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_embedding_equals_the_formula(activation: str) -> None:
    rng = np.random.default_rng(1)
    X = sparse_rows(9, 30, 0.2, 1)
    w1, b1, w2, b2 = (
        rng.standard_normal(shape).astype(np.float32) for shape in ((30, 6), 6, (6, 4), 4)
    )
    encoder = FeatureEncoder(w1, b1, w2, b2, activation)  # type: ignore[arg-type]
    hidden = X @ w1 + b1
    if activation == "relu":
        hidden = np.maximum(hidden, 0)
    expected = hidden @ w2 + b2
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    embedded = encoder.embed(X)
    assert np.allclose(embedded, expected, atol=1e-5)
    assert all(np.array_equal(encoder.embed(X[i])[0], embedded[i]) for i in range(9))
    again = FeatureEncoder.from_arrays(Arrays(encoder.arrays()), len(encoder.w1), activation)  # type: ignore[arg-type]
    assert np.array_equal(again.embed(X), embedded)


def test_a_point_without_features_is_embedded_by_the_biases() -> None:
    ones = np.ones((2, 2), np.float32)
    encoder = FeatureEncoder(ones, np.array([1, 0], np.float32), ones, np.zeros(2, np.float32))
    assert np.allclose(encoder.embed(sp.csr_matrix((1, 2), dtype=np.float32)), 0.5**0.5)
