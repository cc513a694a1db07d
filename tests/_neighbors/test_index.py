"""The partitioned index against brute force, and k-means on planted clusters."""

from __future__ import annotations

import numpy as np
import pytest

from dxml._core.arrays import Arrays
from dxml._neighbors.index import PartitionedIndex
from dxml._neighbors.kmeans import nearest_centre
from dxml.exceptions import DataFormatError


def sphere(n: int, dim: int, seed: int) -> np.ndarray:
    points = np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def brute_force(points: np.ndarray, query: np.ndarray, k: int) -> list[int]:
    distance = np.square(points - query).sum(axis=1)
    return np.lexsort((np.arange(len(points)), distance))[:k].tolist()


@pytest.mark.parametrize("n_partitions", [1, 5])
def test_searching_every_cell_is_exact(n_partitions: int) -> None:
    points, queries = sphere(300, 8, 0), sphere(40, 8, 1)
    index = PartitionedIndex.build(points, n_partitions, np.random.default_rng(0))
    ids, distances = index.search(queries, 7, n_probe=n_partitions)
    for i, query in enumerate(queries):
        assert ids[i].tolist() == brute_force(points, query, 7)
        assert np.allclose(distances[i], np.square(points[ids[i]] - query).sum(axis=1), atol=1e-6)


@pytest.mark.parametrize("n_probe", [1, 2])
def test_a_search_looks_only_into_the_nearest_cells(n_probe: int) -> None:
    points, queries = sphere(200, 4, 2), sphere(30, 4, 3)
    index = PartitionedIndex.build(points, 6, np.random.default_rng(0))
    cell_of, _ = nearest_centre(points, index.centres)
    ids, _ = index.search(queries, 3, n_probe=n_probe)
    for i, query in enumerate(queries):
        cells = np.argsort(np.square(index.centres - query).sum(axis=1))[:n_probe]
        inside = np.flatnonzero(np.isin(cell_of, cells))
        expected = inside[brute_force(points[inside], query, 3)].tolist()
        assert ids[i][ids[i] >= 0].tolist() == expected


def test_equal_points_come_in_the_order_of_their_rows() -> None:
    points = np.repeat(sphere(2, 5, 4), 40, axis=0)
    index = PartitionedIndex.build(points, 1, np.random.default_rng(0))
    ids, _ = index.search(points[:1], 10)
    assert ids[0].tolist() == list(range(10))


def test_a_query_has_the_same_neighbours_alone_and_in_company() -> None:
    points, queries = sphere(500, 16, 5), sphere(64, 16, 6)
    index = PartitionedIndex.build(points, 4, np.random.default_rng(0))
    together = index.search(queries, 9, n_probe=2)
    for i in range(len(queries)):
        alone = index.search(queries[i : i + 1], 9, n_probe=2)
        assert np.array_equal(alone[0][0], together[0][i])
        assert np.array_equal(alone[1][0], together[1][i])


@pytest.mark.parametrize("n_probe", [1, 3])
def test_numpy_and_compiled_code_find_the_same(
    n_probe: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit: points that stand twice, cells with fewer points than are asked for."""
    points = np.concatenate([sphere(150, 12, 7), sphere(150, 12, 7)[:40]])
    index = PartitionedIndex.build(points, 5, np.random.default_rng(0))
    queries = np.concatenate([sphere(20, 12, 8), points[:5]])
    for k in (1, 6, 80):
        found = []
        for few in (True, False):
            monkeypatch.setattr("dxml._neighbors.index.spare", lambda rows, few=few: few)
            found.append(index.search(queries, k, n_probe=n_probe))
        assert np.array_equal(found[0][0], found[1][0])
        assert np.array_equal(found[0][1], found[1][1])


def test_missing_neighbours_are_minus_one() -> None:
    index = PartitionedIndex.build(sphere(3, 2, 7), 1, np.random.default_rng(0))
    ids, distances = index.search(sphere(1, 2, 8), 5)
    assert (ids[0, 3:] == -1).all() and np.isinf(distances[0, 3:]).all()
    assert sorted(ids[0, :3].tolist()) == [0, 1, 2]


def test_fewer_points_than_partitions() -> None:
    with pytest.raises(DataFormatError, match="at most the number of labelled points, 3, got 4"):
        PartitionedIndex.build(sphere(3, 2, 9), 4, np.random.default_rng(0))


def test_arrays_round_trip() -> None:
    index = PartitionedIndex.build(sphere(50, 3, 10), 2, np.random.default_rng(0))
    again = PartitionedIndex.from_arrays(
        Arrays(index.arrays()), index.points.shape[1], len(index.ids)
    )
    queries = sphere(5, 3, 11)
    assert np.array_equal(again.search(queries, 4)[0], index.search(queries, 4)[0])


def test_points_that_come_later_are_found_in_the_nearest_cell() -> None:
    points, later, queries = sphere(60, 4, 0), sphere(25, 4, 1), sphere(20, 4, 2)
    built = PartitionedIndex.build(points, 5, np.random.default_rng(0))
    grown = built.with_points(later)
    both = np.concatenate([points, later])
    assert np.array_equal(grown.centres, built.centres)
    found, _ = grown.search(queries, 6, n_probe=5)
    assert found.tolist() == [brute_force(both, query, 6) for query in queries]
    cell = np.repeat(np.arange(5), np.diff(grown.starts))[np.argsort(grown.ids)]
    gaps = np.square(later[:, None] - built.centres).sum(axis=2)
    assert cell[60:].tolist() == gaps.argmin(axis=1).tolist()
    assert (
        cell[:60].tolist()
        == np.repeat(np.arange(5), np.diff(built.starts))[np.argsort(built.ids)].tolist()
    )
