"""Nearest training points by the cosine of their features.

Sparse points are searched through an inverted index of the features, dense ones by matrix products
(`dxml._neighbors.index`). Both are exact. Features that occur in a large share of the points take
most of the time and say least about similarity; `rare_features` leaves them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.blocks import cut_rows, run_blocks, spread
from dxml._core.compiled import compiled, prange, spare
from dxml._core.long_rows import by_column
from dxml._core.packed import NO_SCALE, as_bits, value_at
from dxml._core.scaling import FeatureScaler, is_dense
from dxml._core.sparse import (
    column_counts,
    column_squares,
    only_values,
    ranges,
    row_squares,
    stored,
)
from dxml._core.threads import n_threads
from dxml._neighbors.index import PartitionedIndex
from dxml._neighbors.selection import select_largest, select_reached

if TYPE_CHECKING:
    from dxml._neighbors.cosine_gpu import GpuColumns

__all__ = [
    "Columns",
    "Neighbours",
    "cosine_weights",
    "merge_nearest",
    "nearest_by_cosine",
    "only_features",
    "rare_features",
    "unit_rows",
    "unit_scale",
]

GPU_PAIRS = 100_000_000  # of a query and a point, from which on a GPU is worth its start
MIN_WEIGHT = (
    1e-12  # of a vote, relative to the nearest neighbour's; above 0: every neighbour counts
)
SEARCHED = 1024  # queries of a block
MOST_SEARCHED = 4096  # and on a cluster, where a block costs some hundredths of a second, at most
SHARES = 16  # into which queries are cut there, at least, before blocks are made larger
FEW_REACHED = 16  # points to an entry of a query's features: from so many on, the rest is left out
FOUND_BYTES = 8  # of a neighbour: its id and its cosine

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


@compiled(parallel=True)
def _search(  # type: ignore[no-untyped-def]
    indptr, indices, data, starts, rows, values, scale, unit, n, n_chunks, ids, cosines
):
    scaled = scale.shape[0] > 0
    n_queries = indptr.shape[0] - 1
    for chunk in prange(n_chunks):
        total = np.zeros(n, dtype=np.float32)
        reached = np.empty(n // FEW_REACHED, dtype=np.int32)
        for i in range(chunk * n_queries // n_chunks, (chunk + 1) * n_queries // n_chunks):
            length = 0
            for j in stored(indptr, i):
                length += starts[indices[j] + 1] - starts[indices[j]]
            few, size = length <= reached.shape[0], 0
            for j in stored(indptr, i):
                value = data[j]
                for p in stored(starts, indices[j]):
                    number = value_at(values, p)
                    row = rows[p]
                    if scaled:
                        number *= scale[row]
                    if few and total[row] == 0:
                        reached[size] = row
                        size += 1
                    total[row] += value * number
            if few:
                select_reached(total, unit, reached[:size], ids[i], cosines[i])
            else:
                select_largest(total, unit, ids[i], cosines[i])
                total[:] = 0


@dataclass(frozen=True, eq=False)
class Columns:
    """Points by feature, for `nearest_by_cosine`; the arrays may lie in a file.

    Attributes
    ----------
    starts : int array of shape (n_features + 1,)
        Where each feature's entries begin, and the last one's end.
    rows : int array
        The points that have the feature, in rising order.
    values : float32, float16 or int8 array
        What they have of it.
    unit : float32 array of shape (n,)
        What makes a point's row, of the features that are compared, one of length 1.
    scale : float32 array of shape (n,), or empty
        By which a point's values are to be multiplied first; empty: by 1.
    """

    starts: npt.NDArray[Any]
    rows: npt.NDArray[Any]
    values: npt.NDArray[Any]
    unit: Floats
    scale: Floats = field(default_factory=lambda: NO_SCALE)

    @classmethod
    def of(cls, points: sp.csr_matrix) -> Columns:
        """Those of rows of any length."""
        values, rows, starts = by_column(points)
        return cls(starts, rows, values, unit_scale(points))

    @property
    def n(self) -> int:
        """Points."""
        return len(self.unit)

    def widened(self, n_features: int) -> Columns:
        """With more features, which no point has."""
        more = n_features - (len(self.starts) - 1)
        ends = np.pad(self.starts, (0, more), mode="edge")
        return replace(self, starts=ends)

    def hidden(self, points: npt.NDArray[np.integer[Any]]) -> Columns:
        """With a cosine of 0 between some points and any query, so that these are not found."""
        unit = np.array(self.unit)
        unit[points] = 0
        return replace(self, unit=unit)

    def unpacked(self) -> sp.csc_matrix:
        """As float32 in memory, rows of length 1 or 0."""
        rows = np.asarray(self.rows, dtype=np.int32)
        values = self.values.astype(np.float32)
        if len(self.scale):
            values *= self.scale[rows]
        values *= self.unit[rows]
        shape = (self.n, len(self.starts) - 1)
        return sp.csc_matrix((values, rows, self.starts), shape=shape)


def nearest_by_cosine(
    queries: sp.csr_matrix, points: Columns, n_neighbors: int
) -> tuple[Ids, Floats]:
    """The points of largest positive cosine, exactly, through the columns of `points`.

    Parameters
    ----------
    queries : csr_matrix of shape (n_queries, n_features), rows of length 1 or 0
    points : Columns

    Returns
    -------
    ids : int32 array of shape (n_queries, n_neighbors)
        Nearest first, ties by id; -1 where fewer points have a positive cosine.
    cosines : float32 array of the same shape
        0 where the id is -1.
    """
    ids = np.full((queries.shape[0], n_neighbors), -1, dtype=np.int32)
    cosines = np.zeros((queries.shape[0], n_neighbors), dtype=np.float32)
    if spare(len(ids)):
        _search_few(queries, points, ids, cosines)
        return ids, cosines
    n_chunks = min(queries.shape[0], n_threads())
    _search(
        queries.indptr,
        queries.indices,
        queries.data,
        points.starts,
        points.rows,
        as_bits(points.values),
        points.scale,
        points.unit,
        points.n,
        n_chunks,
        ids,
        cosines,
    )
    return ids, cosines


def _search_few(queries: sp.csr_matrix, points: Columns, ids: Ids, cosines: Floats) -> None:
    """`_search` by numpy: the same additions in the same order."""
    for i, (start, stop) in enumerate(pairwise(queries.indptr.tolist())):
        features, total = queries.indices[start:stop], np.zeros(points.n, np.float32)
        starts, ends = points.starts[features], points.starts[features + 1]
        places = ranges(starts, ends)
        rows, numbers = points.rows[places], points.values[places].astype(np.float32)
        if len(points.scale):
            numbers *= points.scale[rows]
        np.add.at(total, rows, np.repeat(queries.data[start:stop], ends - starts) * numbers)
        total *= points.unit
        found = np.flatnonzero(total > 0)
        if len(found) > ids.shape[1]:  # those as near as the last, and all that are nearer
            least = np.partition(total[found], -ids.shape[1])[-ids.shape[1]]
            found = found[total[found] >= least]
        found = found[np.argsort(-total[found], kind="stable")][: ids.shape[1]]
        ids[i, : len(found)], cosines[i, : len(found)] = found, total[found]


class Neighbours:
    """Training points, searched as sparse or as dense vectors, whichever they are."""

    def __init__(self, points: sp.csr_matrix) -> None:
        # cosine = 1 - distance² / 2 holds for vectors of length 1 only, so no row may be empty.
        self.dense = is_dense(points) and bool(np.diff(points.indptr).all())
        if self.dense:
            rng = np.random.default_rng(0)  # not used: k-means with one cell is the mean
            self.index = PartitionedIndex.build(unit_rows(points).toarray(), 1, rng)
        else:
            self.columns = Columns.of(points)
        self._placed: dict[str, GpuColumns] = {}

    @classmethod
    def through(cls, columns: Columns) -> Neighbours:
        """Sparse points whose columns are there already."""
        found = cls.__new__(cls)
        found.dense, found.columns, found._placed = False, columns, {}
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Without what lies on a GPU."""
        return self.__dict__ | {"_placed": {}}

    def _on(self, device: str) -> GpuColumns:
        if device not in self._placed:
            from dxml._neighbors.cosine_gpu import GpuColumns

            self._placed[device] = GpuColumns(self.columns.unpacked(), device)
        return self._placed[device]

    def widened(self, n_features: int) -> Neighbours:
        """With more features, which no point has; only for sparse points."""
        return Neighbours.through(self.columns.widened(n_features))

    def hidden(self, points: npt.NDArray[np.integer[Any]]) -> Neighbours:
        """Without some points, the others as they are; only for sparse points."""
        return Neighbours.through(self.columns.hidden(points))

    def search(
        self, queries: sp.csr_matrix, n_neighbors: int, device: str = "cpu"
    ) -> tuple[Ids, Floats]:
        """As `nearest_by_cosine`, on a GPU where `device` is one and there is work for it."""
        many = not self.dense and queries.shape[0] * self.columns.n >= GPU_PAIRS
        if many and device != "cpu":
            return self._on(device).search(queries, n_neighbors)
        search = _search_dense if self.dense else _search_sparse
        shared = (self.index if self.dense else self.columns, n_neighbors)
        count = SEARCHED
        if spread():
            count = min(max(count, queries.shape[0] // SHARES), MOST_SEARCHED)
        blocks = cut_rows(queries, count, more=n_neighbors * FOUND_BYTES)
        ids = np.empty((queries.shape[0], n_neighbors), dtype=np.int32)
        cosines, stop = np.empty(ids.shape, dtype=np.float32), 0
        for found in run_blocks(search, shared, blocks):  # each is let go when it is copied
            start, stop = stop, stop + len(found[0])
            ids[start:stop], cosines[start:stop] = found
        return ids, cosines


def _search_sparse(shared: tuple[Columns, int], queries: sp.csr_matrix) -> tuple[Ids, Floats]:
    columns, n_neighbors = shared
    return nearest_by_cosine(queries, columns, n_neighbors)


def _search_dense(
    shared: tuple[PartitionedIndex, int], queries: sp.csr_matrix
) -> tuple[Ids, Floats]:
    index, n_neighbors = shared
    ids, distances = index.search(queries.toarray(), n_neighbors)
    cosines = np.maximum(1 - distances / 2, 0)  # of vectors of length 1
    empty = np.diff(queries.indptr) == 0
    cosines[empty] = 0
    return np.where(cosines > 0, ids, np.int32(-1)), cosines


def merge_nearest(
    found: Sequence[tuple[Ids, Floats]], starts: Sequence[int], n_neighbors: int
) -> tuple[Ids, Floats]:
    """What one search of all points would find, from searches of points that follow each other.

    Parameters
    ----------
    found : (ids, cosines) of each
    starts : the number of the first point of each, in rising order
    """
    ids = np.concatenate(
        [
            np.where(ids < 0, ids, ids + np.int32(start))
            for (ids, _), start in zip(found, starts, strict=True)
        ],
        axis=1,
    )
    cosines = np.concatenate([cosines for _, cosines in found], axis=1)
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :n_neighbors]  # ties by id
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(cosines, order, axis=1)


def cosine_weights(ids: Ids, cosines: Floats, power: float) -> Floats:
    """Vote weights: the neighbours' cosines to a power, normalised to sum to 1 for each point."""
    nearest = np.maximum(cosines[:, :1], 1e-30)
    weights = np.maximum((cosines / nearest).astype(np.float64) ** power, MIN_WEIGHT)
    weights /= np.maximum((weights * (ids >= 0)).sum(axis=1, keepdims=True), MIN_WEIGHT)
    return weights.astype(np.float32)


def unit_scale(X: sp.csr_matrix) -> Floats:
    """What each row is to be multiplied by to be of length 1; 0 for rows of nothing."""
    squares = row_squares(X)
    scale = np.divide(1, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)
    return scale.astype(np.float32)


def unit_rows(X: sp.csr_matrix) -> sp.csr_matrix:
    """Rows divided by their length; the cosine is then a dot product."""
    return FeatureScaler(None, None, rows=True).transform(X)


def only_features(X: sp.csr_matrix, kept: npt.NDArray[np.bool_]) -> sp.csr_matrix:
    """X with all features but the `kept` ones set to zero; the number of columns stays the same."""
    return X if kept.all() else only_values(X, kept[X.indices])


def rare_features(
    X: sp.csr_matrix, share: float = 0.1, kept_weight: float = 0.5
) -> npt.NDArray[np.bool_]:
    """Which features to search by: those in at most `share` of the points.

    `share` is doubled until those features hold at least `kept_weight` of the squared weight of X.

    >>> rare_features(sp.csr_matrix([[1, 1, 0], [1, 0, 1], [1, 1, 0]], dtype=np.float32), 0.7)
    array([False,  True,  True])
    """
    n = max(X.shape[0], 1)
    found = column_counts(X) / n
    weight = column_squares(X)
    while share < 1 and weight[found <= share].sum() < kept_weight * weight.sum():
        share *= 2
    return np.asarray(found <= share)
