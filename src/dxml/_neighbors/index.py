"""PartitionedIndex: nearest neighbours, searched in the nearest k-means cells only.

Algorithm 1 line 5 and Algorithm 2 lines 2 and 3 of the paper. Distances are Euclidean. On a CPU a
matrix product finds the candidates, and their distances are then computed again one by one in a
fixed order, so that neighbours, and ties between them, do not depend on what else is in the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dxml._core.arrays import Arrays
from dxml._core.compiled import compiled, prange, spare
from dxml._neighbors.kmeans import kmeans, nearest_centre
from dxml.exceptions import DataFormatError

__all__ = ["PartitionedIndex", "check_partitions"]

BLOCK = 8_000_000  # similarities held at a time, 32 MB
ROUNDING_MARGIN = np.float32(1e-4)  # well above the rounding of products of unit vectors

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


@compiled(parallel=True)
def _keep_nearest(  # type: ignore[no-untyped-def]
    closeness, queries, which, points, ids, margin, near_ids, near_distances
):
    """Merge the best of one cell into the neighbours found so far; one query a thread."""
    k = near_ids.shape[1]
    n = points.shape[0]
    for a in prange(which.shape[0]):
        query = which[a]
        vector = queries[query]
        threshold = -np.inf
        if n > k:
            threshold = np.partition(closeness[a], n - k)[n - k] - margin
        for p in range(n):
            if closeness[a, p] < threshold:
                continue
            distance = np.float32(0)
            for c in range(vector.shape[0]):
                difference = vector[c] - points[p, c]
                distance += difference * difference
            slot = k
            while slot > 0 and (
                near_ids[query, slot - 1] < 0
                or distance < near_distances[query, slot - 1]
                or (
                    distance == near_distances[query, slot - 1]
                    and ids[p] < near_ids[query, slot - 1]
                )
            ):
                slot -= 1
            for s in range(k - 1, slot, -1):
                near_ids[query, s] = near_ids[query, s - 1]
                near_distances[query, s] = near_distances[query, s - 1]
            if slot < k:
                near_ids[query, slot] = ids[p]
                near_distances[query, slot] = distance


def check_partitions(n_partitions: int, n_points: int) -> None:
    """There can be no more cells than points."""
    if n_points < n_partitions:
        raise DataFormatError(
            f"n_partitions must be at most the number of labelled points, {n_points}, "
            f"got {n_partitions}. Ask for fewer partitions."
        )


def _keep_nearest_of_few(
    closeness: Floats,
    queries: Floats,
    which: npt.NDArray[np.int64],
    points: Floats,
    ids: Ids,
    margin: np.float32,
    near_ids: Ids,
    near_distances: Floats,
) -> None:
    """`_keep_nearest` by numpy: the same additions in the same order."""
    k, n = near_ids.shape[1], len(points)
    for row, query in zip(closeness, which.tolist(), strict=True):
        threshold = np.partition(row, n - k)[n - k] - margin if n > k else -np.inf
        candidates = np.flatnonzero(row >= threshold)
        difference = queries[query] - points[candidates]
        sums = np.add.accumulate(difference * difference, axis=1)
        own = sums[:, -1] if sums.shape[1] else np.zeros(len(candidates), np.float32)
        before = near_ids[query] >= 0
        found = np.concatenate([near_ids[query][before], ids[candidates]])
        distances = np.concatenate([near_distances[query][before], own])
        best = np.lexsort((found, distances))[:k]
        near_ids[query, : len(best)] = found[best]
        near_distances[query, : len(best)] = distances[best]


@dataclass(frozen=True)
class PartitionedIndex:
    """Points sorted by cell.

    Attributes
    ----------
    centres : float32 array of shape (n_partitions, dim)
    points : float32 array of shape (n, dim)
        The points, those of cell 0 first.
    ids : int32 array of shape (n,)
        The row that each point had when the index was built.
    starts : int64 array of shape (n_partitions + 1,)
        Cell c holds points[starts[c]:starts[c + 1]].
    """

    centres: Floats
    points: Floats
    ids: Ids
    starts: npt.NDArray[np.int64]

    @classmethod
    def build(cls, points: Floats, n_partitions: int, rng: np.random.Generator) -> PartitionedIndex:
        """Partition points of shape (n, dim) by k-means."""
        check_partitions(n_partitions, len(points))
        centres = kmeans(points, n_partitions, rng)
        cell, _ = nearest_centre(points, centres)
        order = np.argsort(cell, kind="stable").astype(np.int32)
        starts = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=n_partitions))])
        return cls(centres, points[order], order, starts.astype(np.int64))

    def with_points(self, points: Floats) -> PartitionedIndex:
        """With more points, each in its nearest cell; their rows are those after all others."""
        cells = np.repeat(np.arange(self.n_partitions), np.diff(self.starts))
        cells = np.concatenate([cells, nearest_centre(points, self.centres)[0]])
        ids = np.concatenate([self.ids, len(self.ids) + np.arange(len(points), dtype=np.int32)])
        order = np.argsort(cells, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(cells, minlength=self.n_partitions))])
        both = np.concatenate([self.points, points])[order]
        return PartitionedIndex(self.centres, both, ids[order], starts.astype(np.int64))

    @property
    def n_partitions(self) -> int:
        return len(self.centres)

    @cached_property
    def _half_squares(self) -> Floats:
        """½‖z‖² of each point; qᵀz − ½‖z‖² ranks points z by their distance to a query q."""
        return 0.5 * np.einsum("ij,ij->i", self.points, self.points)

    def search(
        self, queries: Floats, n_neighbors: int, n_probe: int = 1, device: str = "cpu"
    ) -> tuple[Ids, Floats]:
        """The nearest points of each query in its `n_probe` nearest cells.

        Returns
        -------
        ids : int32 array of shape (n_queries, n_neighbors)
            Nearest first, ties by id; -1 where the cells hold fewer points.
        distances : float32 array of the same shape
            Squared Euclidean; infinite where the id is -1.
        """
        ids = np.full((len(queries), n_neighbors), -1, dtype=np.int32)
        distances = np.full((len(queries), n_neighbors), np.inf, dtype=np.float32)
        if device != "cpu":
            return self._search_on_gpu(queries, ids, distances, n_probe, device)
        keep = _keep_nearest_of_few if spare(len(queries)) else _keep_nearest
        for cell, which in self._visits(queries, n_probe):
            inside = slice(self.starts[cell], self.starts[cell + 1])
            points, half = self.points[inside], self._half_squares[inside]
            step = max(1, BLOCK // max(len(points), 1))
            for start in range(0, len(which), step):
                part = which[start : start + step]
                closeness = queries[part] @ points.T - half  # (part, points of the cell)
                keep(
                    closeness,
                    queries,
                    part,
                    points,
                    self.ids[inside],
                    ROUNDING_MARGIN,
                    ids,
                    distances,
                )
        return ids, distances

    def _visits(self, queries: Floats, n_probe: int) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """Every (cell, queries that look into it); empty cells are passed over."""
        sizes = np.diff(self.starts)
        filled = np.flatnonzero(sizes)
        n_probe = min(n_probe, len(filled))
        if len(filled) == n_probe:
            everyone = np.arange(len(queries))
            yield from ((int(cell), everyone) for cell in filled)
            return
        centres = self.centres[filled]
        half = 0.5 * np.einsum("ij,ij->i", centres, centres)
        closeness = queries @ centres.T - half  # (n_queries, cells)
        if n_probe == 1:
            nearest = closeness.argmax(axis=1)[:, None]
        else:
            nearest = np.argsort(-closeness, axis=1, kind="stable")[:, :n_probe]
        order = np.argsort(nearest.ravel(), kind="stable")
        bounds = np.searchsorted(nearest.ravel()[order], np.arange(len(filled) + 1))
        for position, cell in enumerate(filled):
            visitors = order[bounds[position] : bounds[position + 1]] // n_probe
            if len(visitors):
                yield int(cell), visitors

    def _search_on_gpu(
        self, queries: Floats, ids: Ids, distances: Floats, n_probe: int, device: str
    ) -> tuple[Ids, Floats]:
        import torch

        k = ids.shape[1]
        vectors = torch.from_numpy(np.ascontiguousarray(queries)).to(device)
        stored = torch.from_numpy(np.ascontiguousarray(self.points)).to(device)
        row_ids = torch.from_numpy(np.ascontiguousarray(self.ids)).to(device)
        best = torch.from_numpy(distances).to(device)
        found = torch.from_numpy(ids).to(device)
        for cell, which in self._visits(queries, n_probe):
            begin, end = int(self.starts[cell]), int(self.starts[cell + 1])
            points = stored[begin:end]
            lengths = points.square().sum(dim=1)
            step = max(1, 32 * BLOCK // (end - begin))
            for part in torch.from_numpy(which).to(device).split(step):
                query = vectors[part]
                gap = lengths - 2 * query @ points.T + query.square().sum(dim=1, keepdim=True)
                nearest, position = gap.clamp_min(0).topk(min(k, end - begin), largest=False)
                merged = torch.cat([best[part], nearest], dim=1)
                order = merged.argsort(dim=1, stable=True)[:, :k]
                best[part] = merged.gather(1, order)
                new = row_ids[begin:end][position]
                found[part] = torch.cat([found[part], new], dim=1).gather(1, order)
        return found.cpu().numpy(), best.cpu().numpy()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays for a saved model."""
        return {f"index.{name}": getattr(self, name) for name in self._PARTS}

    @classmethod
    def from_arrays(cls, arrays: Arrays, dim: int, n_rows: int) -> PartitionedIndex:
        """The inverse of `arrays`; the ids are below `n_rows`."""
        centres, points = (arrays.floats(f"index.{name}", None, dim) for name in cls._PARTS[:2])
        ids = arrays.ids("index.ids", len(points), below=n_rows)
        return cls(centres, points, ids, arrays.starts("index.starts", len(centres), len(points)))

    _PARTS = ("centres", "points", "ids", "starts")
