"""Counts on a GPU: those of the CPU, to the last pair."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch

from dxml._label_graph.cooccurrence import count_row, index_walks

N_LABELS, WINDOW = 23, 4


def random_walks() -> npt.NDArray[np.int32]:
    rng = np.random.default_rng(0)
    return rng.integers(N_LABELS - 1, size=(300, 9)).astype(np.int32)  # the last label is in none


@pytest.mark.gpu
def test_the_same_counts_as_on_a_cpu() -> None:
    from dxml._label_graph.cooccurrence_gpu import GpuWalks

    walks = random_walks()
    index = index_walks(walks, N_LABELS, WINDOW)
    on_gpu = GpuWalks(walks, N_LABELS, WINDOW, torch.device("cuda"))
    assert np.array_equal(on_gpu.counts, index.counts)
    assert np.array_equal(on_gpu.context_totals(), index.context_totals())
    column_of = np.full(N_LABELS, -1, dtype=np.int32)
    column_of[[3, 7, 11, 22]] = [2, 0, 3, 1]
    centres = np.array([5, 0, 22, 3])
    found = on_gpu.count(centres, torch.from_numpy(column_of).cuda(), 4).cpu().numpy()
    for row, centre in enumerate(centres):
        wanted = np.zeros(4, np.int64)
        count_row(*index.arrays, centre, column_of, wanted)
        assert np.array_equal(found[row], wanted)
    assert found.sum() > 0 and not found[2].any()


@pytest.mark.gpu
@pytest.mark.parametrize("hierarchical", [False, True])
def test_the_same_vectors_as_on_a_cpu(hierarchical: bool) -> None:
    from dxml._label_graph.skipgram import train_skipgram

    walks = random_walks()
    cpu = train_skipgram(walks, N_LABELS, 6, WINDOW, hierarchical=hierarchical)
    gpu = train_skipgram(walks, N_LABELS, 6, WINDOW, hierarchical=hierarchical, device="cuda")
    seen = slice(N_LABELS - 1)  # the last one's vector is random
    products = cpu[seen] @ cpu[seen].T, gpu[seen] @ gpu[seen].T  # one may be the other, turned
    assert np.allclose(*products, atol=0.05 * abs(products[0]).max())
