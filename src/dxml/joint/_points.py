"""The training points that a model keeps: they are searched for neighbours, and they vote."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.blocks import cluster_cores
from dxml._core.holes import NO_HOLES, Holes
from dxml._core.scaling import is_dense
from dxml._core.sparse import append_rows, emptied, ranges, widened
from dxml._neighbors.cosine import (
    MOST_SEARCHED,
    Neighbours,
    cosine_weights,
    merge_nearest,
    only_features,
    unit_rows,
)
from dxml._neighbors.voting import vote
from dxml.joint._known_features import count_features, features_of
from dxml.joint._stored_points import Rows, StoredPoints, rows_of
from dxml.topk import moved, tie_order

__all__ = [
    "EmbeddedSpace",
    "FeatureSpace",
    "Known",
    "Near",
    "Space",
    "searched_at_a_time",
    "tie_order_of",
]

BLOCK = 1024  # queries that are compared with all embedded points at a time
OWN_BLOCK = 1 << 16  # training points whose own neighbours are held at a time, here
BLOCKS_A_CORE = 2  # of training points whose own neighbours are held at a time, on a cluster
JOINED = 4  # times the size of a run of points, up to which the run before it takes it in
SHORTLIST_POWER = 2.0  # of the cosine, by which neighbours vote for what is on a shortlist

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


class Near(NamedTuple):
    """Nearest training points of some queries, nearest first.

    Attributes
    ----------
    ids : int32 array of shape (n_queries, n_neighbors)
        -1 where a query has fewer neighbours.
    cosines : float32 array of the same shape
    """

    ids: Ids
    cosines: Floats

    def first(self, count: int) -> Near:
        """The nearest `count` of them."""
        return Near(np.ascontiguousarray(self.ids[:, :count]), self.cosines[:, :count])

    def rows(self, which: Mask) -> Near:
        """Those of some queries."""
        return Near(self.ids[which], self.cosines[which])

    def run(self, start: int, stop: int) -> Near:
        """Those of the queries from `start` to before `stop`."""
        return Near(self.ids[start:stop], self.cosines[start:stop])

    def without(self, points: npt.NDArray[np.int64]) -> Near:
        """A point taken off the list of each query.

        One column fewer; where a query did not find that point, its last neighbour goes.
        """
        own = self.ids == points[:, None]
        own[:, -1] |= ~own.any(axis=1)
        shape = (len(self.ids), self.ids.shape[1] - 1)
        return Near(self.ids[~own].reshape(shape), self.cosines[~own].reshape(shape))


class Space(Protocol):
    """Where neighbours are looked for."""

    def search(self, X: sp.csr_matrix, n_neighbors: int, device: str) -> Near:
        """The nearest training points of scaled rows."""

    def compared_share(self, X: sp.csr_matrix) -> npt.NDArray[np.float64]:
        """How much of each row, by squared weight, its neighbours are found by; 1: all of it."""

    def add(self, X: sp.csr_matrix, points: sp.csr_matrix) -> Space:
        """With more training points after the others: `points` are all of them."""

    def drop(self, kept: Mask) -> Space:
        """With these training points only."""

    def hide(self, rows: Places) -> Space | None:
        """Without these training points, which keep their places; None: that cannot be done."""

    def widen(self, n_features: int) -> Space:
        """With more features, which no training point has."""


@dataclass(eq=False)
class _Run:
    """Points from `start` to before `stop`, and their index once they were searched."""

    start: int
    stop: int
    index: Neighbours | None = None

    @property
    def size(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """Cosines of the features.

    Points that come later are indexed by themselves. A run of points that is not much smaller than
    the one before it joins it, so there are few, and a point is seldom indexed again.

    Attributes
    ----------
    points : csr_matrix or StoredPoints of shape (n_samples, n_features)
        Scaled rows.
    searched : bool array of shape (n_features,)
        The features that are compared; very common ones cost much and tell little.
    holes : Holes
        Points that are not found.
    """

    points: Rows
    searched: Mask
    holes: Holes = NO_HOLES
    _runs: tuple[_Run, ...] = field(default=(), repr=False)

    def search(self, X: sp.csr_matrix, n_neighbors: int, device: str) -> Near:
        queries = unit_rows(self._compared(X))
        if len(self._indices) == 1:
            return Near(*self._indices[0][1].search(queries, n_neighbors, device))
        found = [index.search(queries, n_neighbors, device) for _, index in self._indices]
        return Near(*merge_nearest(found, [start for start, _ in self._indices], n_neighbors))

    def compared_share(self, X: sp.csr_matrix) -> npt.NDArray[np.float64]:
        n, squares = X.shape[0], np.square(X.data, dtype=np.float64)
        row = np.repeat(np.arange(n), np.diff(X.indptr))
        whole = np.bincount(row, squares, n)
        compared = np.bincount(row, squares * self.searched[X.indices], n)
        return np.divide(compared, whole, out=np.ones(n), where=whole > 0)

    def add(self, X: sp.csr_matrix, points: sp.csr_matrix) -> FeatureSpace:
        n = self.points.shape[0]
        runs = [*(self._runs or self._first_run), _Run(n, points.shape[0])]
        while len(runs) > 1 and JOINED * runs[-1].size >= runs[-2].size:
            last, before = runs.pop(), runs.pop()
            runs.append(_Run(before.start, last.stop))
        return replace(self, points=points, _runs=tuple(runs))

    def drop(self, kept: Mask) -> FeatureSpace:
        return FeatureSpace(rows_of(self.points)[kept], self.searched)

    def hide(self, rows: Places) -> FeatureSpace | None:
        """Takes a pass over one number a point, as a search does; not for dense points."""
        runs = []
        for run in self._runs or self._first_run:
            own = rows[(rows >= run.start) & (rows < run.stop)] - run.start
            index = run.index
            if index is None or not len(own):
                runs.append(run)
            elif index.dense:
                return None
            else:
                runs.append(_Run(run.start, run.stop, index.hidden(own)))
        return replace(self, holes=self.holes.add(rows), _runs=tuple(runs))

    def widen(self, n_features: int) -> FeatureSpace:
        """New features are rare ones, so they are compared."""
        searched = np.ones(n_features, dtype=bool)
        searched[: len(self.searched)] = self.searched
        runs = []
        for run in self._runs or self._first_run:
            index = run.index
            if index is not None:
                index = None if index.dense else index.widened(n_features)
            runs.append(_Run(run.start, run.stop, index))
        points = widened(rows_of(self.points), n_features)
        return FeatureSpace(points, searched, self.holes, tuple(runs))

    @property
    def _first_run(self) -> tuple[_Run]:
        """All points; those of a folder have their index there."""
        stored = isinstance(self.points, StoredPoints)
        index = Neighbours.through(self.points.columns) if stored else None
        return (_Run(0, self.points.shape[0], index),)

    @cached_property
    def _indices(self) -> list[tuple[int, Neighbours]]:
        """The first point of each run, and the index of the run.

        There is one run where the points are dense: those are searched by matrix products.
        """
        runs = self._runs or self._first_run
        found = [self._indexed(run) for run in runs]
        if len(runs) > 1 and (
            is_dense(rows_of(self.points)) or any(index.dense for index in found)
        ):
            runs = (_Run(0, self.points.shape[0]),)
            found = [self._indexed(run) for run in runs]
        object.__setattr__(self, "_runs", runs)
        return [(run.start, index) for run, index in zip(runs, found, strict=True)]

    def _indexed(self, run: _Run) -> Neighbours:
        if run.index is None:
            rows = self._compared(rows_of(self.points)[run.start : run.stop])
            places = self.holes.places
            own = places[(places >= run.start) & (places < run.stop)] - run.start
            run.index = Neighbours(emptied(rows, own) if len(own) else rows)
        return run.index

    def _compared(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Rows of the features that are compared."""
        return X if self.searched.all() else only_features(X, self.searched)


@dataclass(frozen=True, eq=False)
class EmbeddedSpace:
    """Cosines of what a part makes of the points.

    Attributes
    ----------
    points : csr_matrix of shape (n_samples, n_features)
    embed : function from scaled rows and a device to a torch tensor of unit rows there
    """

    points: sp.csr_matrix
    embed: Callable[[sp.csr_matrix, str], object]
    _placed: dict[str, object] = field(default_factory=dict, repr=False)

    def search(self, X: sp.csr_matrix, n_neighbors: int, device: str) -> Near:
        import torch

        points, queries = self._on(device), self.embed(X, device)
        assert isinstance(points, torch.Tensor) and isinstance(queries, torch.Tensor)
        ids, cosines = [], []
        for start in range(0, len(queries), BLOCK):
            best = torch.topk(queries[start : start + BLOCK] @ points.T, n_neighbors)
            cosines.append(best.values.cpu().numpy())
            ids.append(best.indices.to(torch.int32).cpu().numpy())
        return Near(np.concatenate(ids), np.maximum(np.concatenate(cosines), 0))

    def compared_share(self, X: sp.csr_matrix) -> npt.NDArray[np.float64]:
        return np.ones(X.shape[0])

    def add(self, X: sp.csr_matrix, points: sp.csr_matrix) -> EmbeddedSpace:
        import torch

        placed: dict[str, object] = {}
        for device, known in self._placed.items():
            fresh = self.embed(X, device)
            assert isinstance(known, torch.Tensor) and isinstance(fresh, torch.Tensor)
            placed[device] = torch.cat([known, fresh])
        return EmbeddedSpace(points, self.embed, placed)

    def drop(self, kept: Mask) -> EmbeddedSpace:
        import torch

        placed: dict[str, object] = {}
        for device, known in self._placed.items():
            assert isinstance(known, torch.Tensor)
            placed[device] = known[torch.from_numpy(kept).to(known.device)]
        return EmbeddedSpace(self.points[kept], self.embed, placed)

    def hide(self, rows: Places) -> None:
        """Every point is compared with a query, those hidden too: they are dropped instead."""

    def widen(self, n_features: int) -> EmbeddedSpace:
        """What the part makes of a point does not depend on features that it never saw."""
        return EmbeddedSpace(widened(self.points, n_features), self.embed, self._placed)

    def _on(self, device: str) -> object:
        if device not in self._placed:
            self._placed[device] = self.embed(self.points, device)
        return self._placed[device]


@dataclass(frozen=True, eq=False)
class Known:
    """Training points and their labels.

    Attributes
    ----------
    held : csr_matrix or StoredPoints of shape (n_samples, n_features)
        Scaled rows.
    labels : csr_matrix of shape (n_samples, n_labels), bool
    tie_order : int32 array of shape (n_labels,)
        From `dxml.topk.tie_order`.
    space : Space
        Where the points are searched.
    holes : Holes
        Rows of points that were dropped. No search finds them, and `n_points` and `counts` are
        without them. Rows that parts are given or find are those of `held`.
    """

    held: Rows
    labels: sp.csr_matrix
    tie_order: Ids
    space: Space
    holes: Holes = NO_HOLES

    @property
    def points(self) -> sp.csr_matrix:
        """The points, row by row; those of a folder are read into memory for it."""
        return rows_of(self.held)

    @property
    def n_points(self) -> int:
        return self.n_rows - len(self.holes)

    @property
    def n_rows(self) -> int:
        """Rows that are held: points and holes."""
        return int(self.held.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.held.shape[1])

    @property
    def n_labels(self) -> int:
        return int(self.labels.shape[1])

    @cached_property
    def carried(self) -> Mask:
        """Labels that a point carries; the others are not predicted."""
        return self.counts > 0

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """Points that carry each label."""
        found = np.bincount(self.labels.indices, minlength=self.n_labels)
        return found - self._carriers(self.holes.places) if len(self.holes) else found

    @cached_property
    def feature_counts(self) -> npt.NDArray[np.int64]:
        """Points that have each feature."""
        return count_features(self.held, self.holes)

    def _carriers(self, rows: Places) -> npt.NDArray[np.int64]:
        """How many of some rows carry each label."""
        return np.bincount(self.labels_of(rows), minlength=self.n_labels)

    def labels_of(self, rows: Places) -> Ids:
        """The labels of some rows, one row's after the other's."""
        starts, ends = self.labels.indptr[rows], self.labels.indptr[rows + 1]
        found: Ids = self.labels.indices[ranges(starts, ends)]
        return found

    @cached_property
    def without_holes(self) -> Known:
        """The points alone."""
        return self.drop(self.holes.kept(self.n_rows)) if len(self.holes) else self

    def search(self, X: sp.csr_matrix, n_neighbors: int, device: str) -> Near:
        """The nearest points of scaled rows, all of them where there are fewer."""
        return self.space.search(X, min(n_neighbors, self.n_points), device)

    def shortlist(self, near: Near, size: int) -> sp.csr_matrix:
        """Labels that each query may have: up to `size` of its neighbours' labels, best voted.

        A query without a neighbour gets the most frequent labels.
        """
        size = min(size, self.n_labels)
        weights = cosine_weights(*near, SHORTLIST_POWER)
        found = vote(near.ids, weights, self.labels, size, self.tie_order)
        alone = found.indices[:, 0] < 0
        if alone.any():
            found.indices[alone] = np.argsort(self.tie_order)[:size]
        return found.to_csr(self.n_labels)

    def own_shortlists(self, n_neighbors: int, size: int, device: str) -> sp.csr_matrix:
        """`shortlist` of every point, by its nearest points but itself.

        Neighbours take many times the memory of what is on a shortlist, so those of some points
        are found at a time. What a vote needs beside them is held for fewer.
        """
        points, n, found = self.points, self.n_rows, []
        most = searched_at_a_time(cluster_cores() if device == "cpu" else 0)
        for start, stop in _runs_of(n, most):
            near = self.search(points[start:stop], n_neighbors + 1, device)
            for first, last in _runs_of(stop - start, OWN_BLOCK):
                own = np.arange(start + first, start + last)
                found.append(self.shortlist(near.run(first, last).without(own), size))
        return found[0] if len(found) == 1 else sp.csr_matrix(sp.vstack(found, format="csr"))

    def add(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> Known:
        """With more points; Y may have columns for new labels.

        Takes time for the new points, and a few passes over arrays of all labels and features.
        """
        labels, points = append_rows(self.labels, Y), append_rows(self.points, X)
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        counts[: self.n_labels] += self.counts
        order = moved(self.tie_order, counts, np.unique(Y.indices))
        grown = Known(points, labels, order, self.space.add(X, points), self.holes)
        features = self.__dict__.get("feature_counts")
        if features is not None:
            features = features + np.bincount(X.indices, minlength=len(features))
        return _counted(grown, counts, features)

    def drop(self, kept: Mask) -> Known:
        """With these rows only; no hole is among them."""
        labels = self.labels[kept]
        return Known(self.points[kept], labels, tie_order_of(labels), self.space.drop(kept))

    def hide(self, rows: Places) -> Known | None:
        """With holes in place of these rows; None where they can only be dropped.

        Takes a few passes over an array of one number a label, and what `Space.hide` takes.
        """
        space = self.space.hide(rows)
        if space is None:
            return None
        counts = self.counts - self._carriers(rows)
        order = moved(self.tie_order, counts, np.unique(self.labels_of(rows)))
        fewer = replace(self, tie_order=order, space=space, holes=self.holes.add(rows))
        features = self.__dict__.get("feature_counts")
        if features is not None and not isinstance(self.held, StoredPoints):
            features = features - features_of(self.held, rows)
            return _counted(fewer, counts, features)
        return _counted(fewer, counts)

    def widen(self, n_features: int) -> Known:
        """With more features, which no point has."""
        points = widened(self.points, n_features)
        return _counted(replace(self, held=points, space=self.space.widen(n_features)), self.counts)

    def unlabel(self, row: int, label: int) -> Known:
        """With a label taken off a point that carries it."""
        start, stop = self.labels.indptr[row : row + 2]
        place = start + int(np.flatnonzero(self.labels.indices[start:stop] == label)[0])
        indptr = self.labels.indptr.copy()
        indptr[row + 1 :] -= 1
        indices = np.delete(self.labels.indices, place)
        labels = sp.csr_matrix(
            (np.ones(len(indices), bool), indices, indptr), shape=self.labels.shape
        )
        counts = self.counts.copy()
        counts[label] -= 1
        order = moved(self.tie_order, counts, np.array([label]))
        corrected = replace(self, labels=labels, tie_order=order)
        return _counted(corrected, counts, self.__dict__.get("feature_counts"))

    def regroup(
        self, main: npt.NDArray[np.int64], merged: Mapping[int, npt.NDArray[np.int64]]
    ) -> Known:
        """With some labels left out, and others as one; see `Regrouping`."""
        place = np.full(self.n_labels, -1, dtype=np.int64)
        place[main] = np.arange(len(main))
        for new, old in merged.items():
            place[old] = new
        columns = place[self.labels.indices]
        rows = np.repeat(np.arange(self.n_points), np.diff(self.labels.indptr))
        kept = columns >= 0
        pairs = np.unique(rows[kept] * len(main) + columns[kept])
        ends = np.searchsorted(pairs, np.arange(self.n_points + 1) * len(main))
        labels = sp.csr_matrix(
            (np.ones(len(pairs), bool), (pairs % len(main)).astype(np.int32), ends),
            shape=(self.n_points, len(main)),
        )
        return Known(self.held, labels, tie_order_of(labels), self.space)


def _counted(
    known: Known,
    counts: npt.NDArray[np.int64],
    feature_counts: npt.NDArray[np.int64] | None = None,
) -> Known:
    """With the counts of its labels, and of its features, which need not be counted then."""
    known.__dict__["counts"] = counts
    if feature_counts is not None:
        known.__dict__["feature_counts"] = feature_counts
    return known


def searched_at_a_time(n_cores: int) -> int:
    """Points whose own neighbours are found at a time: on a cluster two blocks for each core."""
    return max(OWN_BLOCK, BLOCKS_A_CORE * n_cores * MOST_SEARCHED)


def _runs_of(n: int, size: int) -> Iterator[tuple[int, int]]:
    """Where runs of n items begin and end; the last is of half the size to one and a half."""
    return pairwise([*range(0, max(n - size // 2, 1), size), n])


def tie_order_of(labels: sp.csr_matrix) -> Ids:
    """The rule for equal scores, from the frequencies of the labels."""
    return tie_order(np.bincount(labels.indices, minlength=labels.shape[1]))
