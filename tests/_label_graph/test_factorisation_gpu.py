"""The factorisation from walks: that of the counts, where nothing is sampled."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dxml._label_graph import skipgram

from .test_cooccurrence_gpu import N_LABELS, WINDOW, random_walks


@pytest.mark.gpu
def test_the_same_products_as_from_the_counts() -> None:
    from dxml._label_graph.cooccurrence_gpu import GpuWalks
    from dxml._label_graph.factorisation import factorise
    from dxml._label_graph.factorisation_gpu import factorise_walks

    walks = GpuWalks(random_walks(), N_LABELS, WINDOW, torch.device("cuda"))
    seen = np.flatnonzero(walks.counts)
    problem = skipgram.NegativeProblem.build(walks, seen, 5, 0.75)
    counted = factorise(problem, 6, 3, 0, "cuda")
    given = (problem.noise, problem.totals, problem.scale)
    paired = factorise_walks(walks, seen, *given, 6, 3, 0, 1000)
    products = (counted.U @ counted.V.T).cpu(), (paired.U @ paired.V.T).cpu()
    assert torch.allclose(*products, atol=0.02)
    assert products[0].abs().max() > 0.5


@pytest.mark.gpu
def test_labels_that_occur_together_are_near_also_where_most_are_sampled_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """600 pairs of labels that walk from one to the other alone, 40 labels on the other side."""
    monkeypatch.setattr(skipgram, "MAX_OTHERS", 40)
    rng = np.random.default_rng(0)
    first = np.repeat(np.arange(0, 1200, 2), 20)
    steps = rng.integers(2, size=(len(first), 12))
    walks = (first[:, None] + steps).astype(np.int32)
    vectors = skipgram.train_skipgram(walks, 1200, 32, 3, device="cuda")
    vectors = skipgram.center_and_scale(vectors)
    nearest = (vectors @ vectors.T - 2 * np.eye(1200)).argmax(axis=1)
    assert (nearest == (np.arange(1200) ^ 1)).mean() > 0.95
