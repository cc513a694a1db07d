"""The weights of a linear one-vs-all head: scored, stored, and replaced label by label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.compiled import compiled, prange, spare
from dxml._core.packed import NO_SCALE, Packed, add_products, as_csr
from dxml._core.sparse import append_rows, plain_csr, ranges, widened
from dxml._learners.dual_descent import OFFSET
from dxml._learners.pair_scores import score_pairs

__all__ = ["LinearHead"]

IDLE = 1.25  # of the weights in use: the most that are stored
CHANGED = 8  # one label in so many may have changed since the weights were put by feature

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of weights where they lie: that of a label goes from its start to its end."""

    starts: npt.NDArray[np.integer[Any]]
    ends: npt.NDArray[np.integer[Any]]
    stored: sp.csr_matrix | Packed  # the rows there are and were, in any order
    n_features: int
    in_order: bool = False  # whether they are the rows of the labels, one after the other

    def take(self, labels: npt.NDArray[np.integer[Any]]) -> sp.csr_matrix:
        """The rows of some labels, as a matrix."""
        if isinstance(self.stored, Packed):
            return widened(self.stored.rows(labels), self.n_features)
        lengths = (self.ends - self.starts)[labels]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        kept = np.arange(indptr[-1]) + np.repeat(self.starts[labels] - indptr[:-1], lengths)
        arrays = (self.stored.data[kept], self.stored.indices[kept], indptr)
        return sp.csr_matrix(arrays, shape=(len(labels), self.n_features))


@dataclass(frozen=True, eq=False)
class _Earlier:
    """The weights of an earlier head by feature, and the labels whose weights are others now."""

    by_feature: sp.csr_matrix
    changed: npt.NDArray[np.integer[Any]]

    def then(self, labels: npt.NDArray[np.integer[Any]], n_labels: int) -> _Earlier | None:
        """With more labels changed; None where too many are."""
        new = np.arange(self.by_feature.shape[1], n_labels)
        changed = np.union1d(np.union1d(self.changed, labels), new)
        return _Earlier(self.by_feature, changed) if CHANGED * len(changed) < n_labels else None


class LinearHead:
    """Weights of every label, by label.

    Parameters
    ----------
    weights : csr_matrix or Packed of shape (n_labels, n_features)
        Packed ones are scored as they are, and unpacked once one of them changes.
    """

    _earlier: _Earlier | None = None

    def __init__(self, weights: sp.csr_matrix | Packed) -> None:
        starts, ends = weights.indptr[:-1], weights.indptr[1:]
        self._rows = _Rows(starts, ends, weights, weights.shape[1], in_order=True)

    @property
    def n_labels(self) -> int:
        return len(self._rows.starts)

    @property
    def packed(self) -> Packed | None:
        """All weights as they are stored, where they were packed and none has changed."""
        rows = self._rows
        same = isinstance(rows.stored, Packed) and rows.stored.shape[1] == rows.n_features
        return rows.stored if same else None

    @cached_property
    def weights(self) -> sp.csr_matrix:
        """All weights, of shape (n_labels, n_features)."""
        rows = self._rows
        if rows.in_order:
            return widened(as_csr(rows.stored), rows.n_features)
        return rows.take(np.arange(self.n_labels))

    def rows(self, labels: npt.NDArray[np.integer[Any]]) -> sp.csr_matrix:
        """The weights of some labels; those of labels that it does not have are empty."""
        known = labels < self.n_labels
        found = self._rows.take(labels[known])
        ends = np.zeros(len(labels), dtype=found.indptr.dtype)
        ends[known] = np.diff(found.indptr)
        indptr = np.concatenate([[0], np.cumsum(ends)])
        return sp.csr_matrix(
            (found.data, found.indices, indptr), shape=(len(labels), found.shape[1])
        )

    def widened(self, n_features: int) -> LinearHead:
        """With more features, which weigh nothing."""
        wider = _head(replace(self._rows, n_features=n_features))
        if (earlier := self._indexed) is not None:
            indptr = np.pad(
                earlier.by_feature.indptr, (0, n_features - self._rows.n_features), mode="edge"
            )
            shape = (n_features, earlier.by_feature.shape[1])
            arrays = earlier.by_feature.data, earlier.by_feature.indices, indptr
            wider._earlier = replace(earlier, by_feature=plain_csr(*arrays, shape))
        return wider

    def replaced(
        self, labels: npt.NDArray[np.integer[Any]], weights: sp.csr_matrix, n_labels: int
    ) -> LinearHead:
        """With other weights of some labels, and room for `n_labels` labels.

        Takes no time for the weights of the others, on average over many calls: the new ones are
        written behind those there are, until a quarter of all lies idle.
        """
        rows = self._rows
        before = as_csr(rows.stored)
        first, stored = before.nnz, append_rows(before, weights)
        more = (0, n_labels - self.n_labels)
        starts, ends = np.pad(rows.starts, more), np.pad(rows.ends, more)
        starts[labels], ends[labels] = first + weights.indptr[:-1], first + weights.indptr[1:]
        grown = _head(_Rows(starts, ends, stored, weights.shape[1]))
        if stored.shape[0] > 2 * n_labels or stored.nnz > IDLE * max(
            int((ends - starts).sum()), 1000
        ):
            grown = LinearHead(grown.weights)
        if (earlier := self._indexed) is not None:
            grown._earlier = earlier.then(labels, n_labels)
        return grown

    @property
    def _indexed(self) -> _Earlier | None:
        """By feature, as far as that was needed: this head, or an earlier one."""
        if "by_feature" in self.__dict__:
            return _Earlier(self.by_feature, np.empty(0, np.int64))
        return self._earlier

    def scores(self, X: sp.csr_matrix, pairs: sp.csr_matrix) -> Floats:
        """wᵀx − 1 of each stored (point, label) of `pairs`, in its order: ±1 are clear answers."""
        out = np.empty(pairs.nnz, dtype=np.float32)
        if spare(X.shape[0]):
            self._score_few(X, pairs, out)
            return out
        rows = self._rows
        scale = rows.stored.scale if isinstance(rows.stored, Packed) else NO_SCALE
        where = (rows.starts, rows.ends, rows.stored.indices, rows.stored.data)
        score_pairs(X, pairs, *where, scale, out)
        return out

    def _score_few(self, X: sp.csr_matrix, pairs: sp.csr_matrix, out: Floats) -> None:
        """`score_pairs` by numpy: the same additions in the same order."""
        rows = self._rows
        scale = rows.stored.scale if isinstance(rows.stored, Packed) else NO_SCALE
        out[:] = OFFSET
        for i, (first, last) in enumerate(pairwise(X.indptr.tolist())):
            pair = slice(*pairs.indptr[i : i + 2])
            labels = pairs.indices[pair]
            add_products(
                out[pair],
                X.indices[first:last],
                X.data[first:last],
                (rows.starts[labels], rows.ends[labels]),
                rows.stored,
                scale[labels] if len(scale) else NO_SCALE,
            )

    def all_scores(self, X: sp.csr_matrix) -> Floats:
        """wᵀx − 1 of every label, (n_samples, n_labels).

        Where a few labels have changed since weights were last put in the order of the features,
        only the weights of those are.
        """
        earlier = self._earlier
        if earlier is None:
            return _all_scores(X, self.by_feature)
        out = np.empty((X.shape[0], self.n_labels), dtype=np.float32)
        out[:, : earlier.by_feature.shape[1]] = _all_scores(X, earlier.by_feature)
        out[:, earlier.changed] = _all_scores(X, self._changed_by_feature)
        return out

    @cached_property
    def _changed_by_feature(self) -> sp.csr_matrix:
        assert self._earlier is not None
        return sp.csr_matrix(self.rows(self._earlier.changed).T)

    @cached_property
    def by_feature(self) -> sp.csr_matrix:
        """The weights, of shape (n_features, n_labels)."""
        return sp.csr_matrix(self.weights.T)


def _all_scores(X: sp.csr_matrix, weights: sp.csr_matrix) -> Floats:
    """wᵀx − 1 of every row of X with every column of the weights."""
    out = np.empty((X.shape[0], weights.shape[1]), dtype=np.float32)
    if spare(X.shape[0]):
        out[:] = OFFSET
        for row, (first, last) in zip(out, pairwise(X.indptr.tolist()), strict=True):
            features = X.indices[first:last]
            starts, ends = weights.indptr[features], weights.indptr[features + 1]
            places = ranges(starts, ends)
            products = np.repeat(X.data[first:last], ends - starts) * weights.data[places]
            np.add.at(row, weights.indices[places], products)
        return out
    _score_all(X.indptr, X.indices, X.data, weights.indptr, weights.indices, weights.data, out)
    return out


def _head(rows: _Rows) -> LinearHead:
    head = LinearHead.__new__(LinearHead)
    head._rows = rows
    return head


@compiled(parallel=True)
def _score_all(indptr, indices, data, starts, labels, weights, out):  # type: ignore[no-untyped-def]
    for i in prange(indptr.shape[0] - 1):
        row = out[i]
        row[:] = OFFSET
        for j in range(indptr[i], indptr[i + 1]):
            value = data[j]
            for p in range(starts[indices[j]], starts[indices[j] + 1]):
                row[labels[p]] += value * weights[p]
