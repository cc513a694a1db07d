"""Pairs on a GPU: what the CPU adds, row by row."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dxml._label_graph import walk_pairs
from dxml._label_graph.cooccurrence import index_walks

from .test_cooccurrence_gpu import N_LABELS, WINDOW, random_walks


@pytest.mark.gpu
@pytest.mark.parametrize("columns", [False, True])
def test_the_same_sums_as_on_a_cpu(columns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from dxml._label_graph import walk_pairs_gpu
    from dxml._label_graph.cooccurrence_gpu import GpuWalks

    monkeypatch.setattr(walk_pairs, "PLACES", 10_000)
    monkeypatch.setattr(walk_pairs_gpu, "PLACES", 10_000)
    index = index_walks(random_walks(), N_LABELS, WINDOW)
    on_gpu = GpuWalks(random_walks(), N_LABELS, WINDOW, torch.device("cuda"))
    seen = np.flatnonzero(index.counts)
    rng = np.random.default_rng(1)
    noise = rng.random(len(seen)) / 10
    U, V = (torch.from_numpy(rng.standard_normal((len(seen), 6), np.float32)) for _ in range(2))
    sums = []
    for pairs, device in (
        (walk_pairs.WalkPairs(index, seen, noise, 0.3), "cpu"),
        (walk_pairs_gpu.GpuWalkPairs(on_gpu, seen, noise, 0.3), "cuda"),
    ):
        step, h = torch.zeros(10, 6, device=device), torch.zeros(10, device=device)
        pairs.add(slice(5, 15), U.to(device), V.to(device), columns, step, h)
        sums.append(torch.cat([step, h[:, None]], dim=1).cpu())
    assert torch.allclose(*sums, rtol=1e-4, atol=1e-2)
    assert sums[0].abs().max() > 10
