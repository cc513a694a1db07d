"""k-means: planted clusters, distances that fall, cells that are never empty."""

from __future__ import annotations

import numpy as np

from dxml._neighbors.kmeans import kmeans, nearest_centre


def sphere(n: int, dim: int, seed: int) -> np.ndarray:
    points = np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def test_kmeans_finds_planted_clusters() -> None:
    rng = np.random.default_rng(0)
    planted = 10 * rng.standard_normal((4, 5)).astype(np.float32)
    points = np.repeat(planted, 50, axis=0) + 0.1 * rng.standard_normal((200, 5)).astype(np.float32)
    cell, distance = nearest_centre(points, kmeans(points, 4, np.random.default_rng(1)))
    assert len({tuple(cell[50 * c : 50 * c + 50]) for c in range(4)}) == 4
    assert all(len(set(cell[50 * c : 50 * c + 50])) == 1 for c in range(4))
    assert distance.max() < 1


def test_kmeans_lowers_the_distance_and_fills_every_cell() -> None:
    points = sphere(400, 6, 12)
    start = kmeans(points, 10, np.random.default_rng(3), iterations=1)
    end = kmeans(points, 10, np.random.default_rng(3))
    assert nearest_centre(points, end)[1].sum() < nearest_centre(points, start)[1].sum()
    assert len(np.unique(nearest_centre(points, end)[0])) == 10


def test_kmeans_survives_fewer_distinct_points_than_cells() -> None:
    points = np.repeat(sphere(2, 3, 13), 10, axis=0)
    centres = kmeans(points, 5, np.random.default_rng(0))
    assert centres.shape == (5, 3) and np.isfinite(centres).all()
