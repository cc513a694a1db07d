"""The search in torch: the neighbours of the search through numba, on any device."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._neighbors import cosine, cosine_gpu
from dxml._neighbors.cosine import Columns, Neighbours, nearest_by_cosine, unit_rows
from dxml._neighbors.cosine_gpu import GpuColumns


def random_rows(n: int, seed: int) -> sp.csr_matrix:
    rows = sp.random(n, 60, density=0.1, format="csr", dtype=np.float32, random_state=seed)
    nothing = sp.csr_matrix((1, 60), dtype=np.float32)  # a point of which nothing is known
    return unit_rows(sp.vstack([nothing, rows], format="csr", dtype=np.float32))


@pytest.mark.parametrize("room", [1 << 28, 1 << 14])  # one block, and many
def test_the_same_neighbours_as_on_a_cpu(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cosine_gpu, "_free_memory", lambda device: float(room))
    points, queries = random_rows(300, 0), random_rows(41, 1)
    ids, cosines = GpuColumns(points.tocsc(), "cpu").search(queries, 9)
    wanted = nearest_by_cosine(queries, Columns.of(points), 9)
    assert np.array_equal(ids, wanted[0])
    assert np.allclose(cosines, wanted[1], atol=1e-6)
    assert (ids[0] == -1).all() and not cosines[0].any()


def test_ties_go_to_the_lower_id() -> None:
    points = unit_rows(sp.csr_matrix(np.eye(3, dtype=np.float32)[[0, 1, 1, 2, 1]]))
    ids, cosines = GpuColumns(points.tocsc(), "cpu").search(points[1], 4)
    assert ids.tolist() == [[1, 2, 4, -1]]
    assert cosines.tolist() == [[1, 1, 1, 0]]


def test_no_query() -> None:
    points = random_rows(10, 0)
    ids, cosines = GpuColumns(points.tocsc(), "cpu").search(points[:0], 4)
    assert ids.shape == cosines.shape == (0, 4)


@pytest.mark.gpu
def test_a_gpu_finds_what_a_cpu_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cosine, "GPU_PAIRS", 0)
    points, queries = random_rows(3000, 0), random_rows(500, 1)
    index = Neighbours(points)
    ids, cosines = index.search(queries, 20, "cuda")
    wanted = index.search(queries, 20)
    assert torch.cuda.is_available()
    assert (ids == wanted[0]).mean() > 0.999  # rounding may turn two that are nearly equal
    assert np.allclose(cosines, wanted[1], atol=1e-6)
    again = index.search(queries, 20, "cuda")
    assert np.array_equal(ids, again[0]) and np.array_equal(cosines, again[1])
