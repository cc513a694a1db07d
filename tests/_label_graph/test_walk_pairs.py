"""The factorisation from the walks' pairs: that of the counts, where nothing is sampled."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch

from dxml._label_graph import skipgram, walk_pairs
from dxml._label_graph.cooccurrence import index_walks
from dxml._label_graph.factorisation import factorise

from .test_cooccurrence_gpu import N_LABELS, WINDOW, random_walks

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def walks_and_pairs(device: str) -> tuple[Any, Any]:
    """The index of the walks and the class of their pairs."""
    if device == "cpu":
        return index_walks(random_walks(), N_LABELS, WINDOW), walk_pairs.WalkPairs
    from dxml._label_graph.cooccurrence_gpu import GpuWalks
    from dxml._label_graph.walk_pairs_gpu import GpuWalkPairs

    return GpuWalks(random_walks(), N_LABELS, WINDOW, torch.device(device)), GpuWalkPairs


@pytest.mark.parametrize("device", DEVICES)
def test_the_same_products_as_from_the_counts(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    walks, kind = walks_and_pairs(device)
    monkeypatch.setattr(sys.modules[kind.__module__], "PLACES", 10_000)
    seen = np.flatnonzero(walks.counts)
    problem = skipgram.NegativeProblem.build(walks, seen, 5, 0.75)
    counted = factorise(problem, 6, 3, 0, device)
    pairs = kind(walks, seen, problem.noise, problem.scale)
    paired = walk_pairs.factorise_pairs(pairs, problem.noise, problem.totals, 6, 3, 0, 1000, device)
    products = (counted.U @ counted.V.T).cpu(), (paired.U @ paired.V.T).cpu()
    assert torch.allclose(*products, atol=0.02)
    assert products[0].abs().max() > 0.5


@pytest.mark.parametrize("device", DEVICES)
def test_labels_that_occur_together_are_near_also_where_most_are_sampled_away(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """600 pairs of labels that walk from one to the other alone, 80 labels on the other side."""
    monkeypatch.setattr(skipgram, "MAX_OTHERS", 80)
    monkeypatch.setattr(skipgram, "GPU_MAX_OTHERS", 80)
    rng = np.random.default_rng(0)
    first = np.repeat(np.arange(0, 1200, 2), 20)
    steps = rng.integers(2, size=(len(first), 12))
    walks = (first[:, None] + steps).astype(np.int32)
    vectors = skipgram.train_skipgram(walks, 1200, 32, 3, device=device)
    vectors = skipgram.center_and_scale(vectors)
    nearest = (vectors @ vectors.T - 2 * np.eye(1200)).argmax(axis=1)
    assert (nearest == (np.arange(1200) ^ 1)).mean() > 0.95


def test_the_bits_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skipgram, "MAX_OTHERS", 8)
    monkeypatch.setattr(walk_pairs, "ROWS", 5)
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(skipgram.train_skipgram(random_walks(), N_LABELS, 6, WINDOW))
    torch.set_num_threads(before)
    assert np.array_equal(*found)
