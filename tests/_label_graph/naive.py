"""What several tests of label vectors compare with."""

from __future__ import annotations

import numpy as np
import torch

from dxml._label_graph import factorisation

WINDOW = 3
N_LABELS = 9  # label 8 stands in no walk


def naive_counts(walks: np.ndarray, n_labels: int, window: int) -> np.ndarray:
    counts = np.zeros((n_labels, n_labels), np.int64)
    for walk in walks.tolist():
        for i, centre in enumerate(walk):
            for j, context in enumerate(walk):
                if i != j and abs(i - j) <= window:
                    counts[centre, context] += window - abs(i - j) + 1
    return counts


def newton_sums(problem, U, V):
    """The gradients that the solver adds up, and the loss they are of."""
    P, T = problem.tile(np.arange(len(U)), np.arange(len(V)))
    G, _ = factorisation.gradient(U, V, P, T)
    s = U @ V.T
    return G @ V, G.T @ U, float((torch.nn.functional.softplus(s) * T - P * s).sum())
