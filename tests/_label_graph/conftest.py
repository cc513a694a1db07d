"""Walks that several tests of label vectors share."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from dxml._label_graph.graph import label_graph
from dxml._label_graph.walks import random_walks


@pytest.fixture
def walks() -> np.ndarray:
    rng = np.random.default_rng(0)
    return (8 * rng.random((30, 7)) ** 2).astype(np.int32)


@pytest.fixture(scope="module")
def cliques() -> np.ndarray:
    """Walks on six cliques of ten labels, neighbours in a ring of cliques joined by one point."""
    rows = [np.arange(10 * c, 10 * c + 10) for c in range(6)]
    rows += [np.array([10 * c, (10 * c + 15) % 60]) for c in range(6)]
    Y = np.zeros((12, 62), bool)  # labels 60 and 61 are isolated
    for row, labels in zip(Y, rows, strict=True):
        row[labels] = True
    return random_walks(label_graph(csr_matrix(Y)), 20, 20, seed=0)
