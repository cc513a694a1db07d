"""Sparse rows for the encoder's tests."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def sparse_rows(n: int, d: int, density: float, seed: int) -> sp.csr_matrix:
    X = sp.random(n, d, density, format="csr", random_state=seed, dtype=np.float32)
    return sp.csr_matrix(X)
