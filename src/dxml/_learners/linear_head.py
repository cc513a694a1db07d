"""A linear one-vs-all head that learns from a shortlist of labels a point, not from all of them.

For label l, with signs t_i = ±1 over the points that carry it or have it on their shortlist,

    min_w ½ ‖w‖² + C Σ_i max(0, 1 − t_i (xᵢᵀ w − 1))²

is solved by coordinate descent on the dual (Hsieh et al., ICML 2008), each label by itself. The
offset is fixed at −1. Negatives that are on no shortlist are never trained on; for them wᵀx is
about 0, so that −1 scores them right. With every label on every shortlist this is plain one-vs-all.
With the labels of the nearest training points on it, it is nearly that, for a small part of the
work.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.blocks import BLOCK_BYTES, cut, run_blocks, spread
from dxml._core.compiled import compiled, prange, spare
from dxml._core.packed import NO_SCALE, Packed, add_products, as_csr
from dxml._core.random_numba import seeded
from dxml._core.sparse import append_rows, plain_csr, ranges, widened
from dxml._core.threads import n_threads
from dxml._learners.dual_descent import OFFSET, descend
from dxml._learners.pair_scores import score_pairs
from dxml.progress import SILENT, Progress

__all__ = ["LinearHead", "all_signs", "fit_linear", "label_signs", "labels_for_cpu"]

IDLE = 1.25  # of the weights in use: the most that are stored
CHANGED = 8  # one label in so many may have changed since the weights were put by feature
TOL = np.float32(0.1)  # of a label's projected gradients
GPU_STEP = 4  # times that a step of one label takes a GPU, as a core of a CPU
BLOCK = 1 << 25  # weights that may come out of the labels in training at a time
WEIGHT_BYTES = 8  # of a weight that comes out, with its feature
SIGN_BYTES = 9  # of a point that a label learns from: its number, sign and multiplier

Floats = npt.NDArray[np.float32]


def label_signs(Y: sp.csr_matrix, shortlist: sp.csr_matrix) -> sp.csr_matrix:
    """The points that each label learns from, (n_labels, n_samples), int8.

    1 where the point carries the label, -1 where it only has it on its shortlist.

    Parameters
    ----------
    Y : csr_matrix of shape (n_samples, n_labels), bool
    shortlist : csr_matrix of the same shape
        Labels that a point is to tell apart; its own may be among them or not.
    """
    negative = sp.csr_matrix(
        (np.full(shortlist.nnz, -1, np.int8), shortlist.indices, shortlist.indptr),
        shape=shortlist.shape,
    )
    own = Y.astype(np.int8)
    both = own.multiply(abs(negative))
    signs = sp.csr_matrix((negative + own + both).T, dtype=np.int8)
    signs.sort_indices()
    return signs


def all_signs(Y: sp.csr_matrix) -> sp.csr_matrix:
    """As `label_signs`, with every label on every shortlist: plain one-vs-all."""
    n, n_labels = Y.shape
    signs = np.full((n_labels, n), -1, dtype=np.int8)
    signs[Y.indices, np.repeat(np.arange(n), np.diff(Y.indptr))] = 1
    places = np.tile(np.arange(n, dtype=np.int32), n_labels)
    starts = np.arange(n_labels + 1, dtype=np.int64) * n
    return plain_csr(signs.ravel(), places, starts, signs.shape)


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


def fit_linear(
    X: sp.csr_matrix,
    signs: sp.csr_matrix,
    *,
    C: float = 1.0,
    max_iter: int = 5,
    prune: float = 0.01,
    rows: npt.NDArray[np.bool_] | None = None,
    duals: Floats | None = None,
    start: sp.csr_matrix | None = None,
    seed: int = 0,
    device: str = "cpu",
    stage: str = "linear head",
    progress: Progress = SILENT,
) -> tuple[LinearHead, Floats]:
    """Train every label on its points; the head, and the multipliers α where training ended.

    Parameters
    ----------
    X : csr_matrix of shape (n_samples, n_features), float32
    signs : csr_matrix of shape (n_labels, n_samples), int8
        From `label_signs`.
    C : float
        Weight of the loss beside ½ ‖w‖².
    max_iter : int
        Passes over a label's points, at most.
    prune : float
        Weights smaller than this are dropped.
    rows : bool array of shape (n_samples,), optional
        The points that may be used; all by default.
    duals : float32 array, one for each stored value of `signs`, optional
        Multipliers to start from, as an earlier fit on the same signs gave them; 0 by default.
    start : csr_matrix of shape (n_labels, n_features), float32, optional
        Weights learnt from other points, whose multipliers stay what they are: training goes on
        from them with the points that have signs.
    device : str
        A GPU trains where there is no `start`, and where Triton is installed.
    """
    duals = np.zeros(signs.nnz, np.float32) if duals is None else duals.copy()
    n_labels, n_features = signs.shape[0], X.shape[1]
    known = sp.csr_matrix((n_labels, n_features), dtype=np.float32) if start is None else start
    squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float32).ravel()
    use = np.ones(X.shape[0], dtype=bool) if rows is None else rows
    sizes = _weights_at_most(X.indptr, signs.indptr, signs.indices, n_features)
    sizes = np.minimum(sizes + np.diff(known.indptr), n_features)
    if device != "cpu" and start is None and n_labels and _has_triton():
        return _fit_on_gpu(
            X, signs, duals, use, sizes, squares, C, max_iter, prune, seed, device, stage, progress
        )
    settings = _Settings(np.float32(0.5 / C), max_iter, np.float32(prune), seed)
    if spread():
        runs = list(cut(WEIGHT_BYTES * sizes + SIGN_BYTES * np.diff(signs.indptr), BLOCK_BYTES))
    else:
        runs = list(cut(sizes, BLOCK))
    blocks = (_label_block(run, signs, duals, known, sizes) for run in runs)
    parts = []
    with progress.stage(stage, n_labels, "labels") as bar:
        trained = run_blocks(_train_block, (X, squares, use, settings), blocks)
        for run, (weights, own) in zip(runs, trained, strict=True):
            duals[signs.indptr[run.start] : signs.indptr[run.stop]] = own
            parts.append(weights)
            bar.advance(run.stop - run.start)
    weights = sp.csr_matrix(sp.vstack(parts, format="csr")) if len(parts) > 1 else parts[0]
    weights.sort_indices()
    return LinearHead(weights), duals


class _Settings(NamedTuple):
    """As the compiled loop takes them."""

    ridge: np.float32
    max_iter: int
    prune: np.float32
    seed: int


class _LabelBlock(NamedTuple):
    """Labels in training, from `first` on: their signs, multipliers, weights and sizes."""

    first: int
    signs: sp.csr_matrix
    duals: Floats
    known: sp.csr_matrix
    sizes: npt.NDArray[np.int64]


def _label_block(
    run: slice,
    signs: sp.csr_matrix,
    duals: Floats,
    known: sp.csr_matrix,
    sizes: npt.NDArray[np.int64],
) -> _LabelBlock:
    if run == slice(0, signs.shape[0]):
        return _LabelBlock(0, signs, duals, known, sizes)
    own = duals[signs.indptr[run.start] : signs.indptr[run.stop]]
    return _LabelBlock(run.start, signs[run], own, known[run], sizes[run])


def _train_block(
    shared: tuple[sp.csr_matrix, Floats, npt.NDArray[np.bool_], _Settings], block: _LabelBlock
) -> tuple[sp.csr_matrix, Floats]:
    """The weights of the labels of a block, and the multipliers where training ended."""
    X, squares, use, settings = shared
    signs, known, sizes, duals = block.signs, block.known, block.sizes, block.duals.copy()
    room = np.concatenate([[0], np.cumsum(sizes)])
    by_size = np.argsort(-sizes, kind="stable")  # dealt out evenly to the threads
    features = np.empty(room[-1], dtype=np.int32)
    values = np.empty(room[-1], dtype=np.float32)
    filled = np.zeros(len(sizes), dtype=np.int64)
    _train(
        X.indptr,
        X.indices,
        X.data,
        X.shape[1],
        squares,
        signs.indptr,
        signs.indices,
        signs.data,
        duals,
        use,
        known.indptr.astype(np.int64),
        known.indices,
        known.data,
        block.first,
        by_size,
        settings.ridge,
        settings.max_iter,
        settings.prune,
        np.uint64(settings.seed),
        min(len(sizes), n_threads()),
        room,
        features,
        values,
        filled,
    )
    return _gather(room, features, values, filled, X.shape[1]), duals


def _has_triton() -> bool:
    return find_spec("triton") is not None


def _fit_on_gpu(
    X: sp.csr_matrix,
    signs: sp.csr_matrix,
    duals: Floats,
    use: npt.NDArray[np.bool_],
    sizes: npt.NDArray[np.int64],
    squares: Floats,
    C: float,
    max_iter: int,
    prune: float,
    seed: int,
    device: str,
    stage: str,
    progress: Progress,
) -> tuple[LinearHead, Floats]:
    """The GPU trains labels of few points side by side, the CPU those of many at the same time."""
    from dxml._learners.linear_gpu import train_labels

    long = labels_for_cpu(np.diff(signs.indptr), n_threads())
    sizes = sizes.copy()
    sizes[long] = 0
    settings: dict[str, Any] = {"C": C, "max_iter": max_iter, "prune": prune}
    with progress.stage(stage, signs.shape[0], "labels") as bar, ThreadPoolExecutor(1) as pool:
        short = pool.submit(
            train_labels,
            X,
            squares,
            signs,
            duals,
            use,
            sizes,
            tol=float(TOL),
            device=device,
            bar=bar,
            **settings,
        )
        if len(long):
            places = np.concatenate([np.arange(*signs.indptr[i : i + 2]) for i in long])
            few, fewer = fit_linear(
                X, signs[long], rows=use, duals=duals[places], seed=seed, **settings
            )
        head = LinearHead(short.result())
    if len(long):
        head = head.replaced(long, few.weights, signs.shape[0])
        duals[places] = fewer
    return head, duals


def labels_for_cpu(
    sizes: npt.NDArray[np.integer[Any]], threads: int
) -> npt.NDArray[np.integer[Any]]:
    """The labels that a CPU trains beside a GPU, by the numbers of their points.

    A GPU trains all labels at once and takes as long as the largest of them, each of whose steps
    takes it longer than a CPU. A CPU takes as long as a thread's share of them, or the largest.
    """
    order = np.argsort(-sizes, kind="stable")
    largest_first = np.append(sizes[order], 0).astype(np.float64)
    shares = np.concatenate([[0], np.cumsum(largest_first[:-1])]) / threads
    on_cpu = np.maximum(shares, np.where(np.arange(len(shares)) > 0, largest_first[0], 0))
    on_gpu = GPU_STEP * largest_first
    return np.asarray(order[: int(np.argmin(np.maximum(on_cpu, on_gpu)))])


def _gather(
    room: npt.NDArray[np.int64],
    features: npt.NDArray[np.int32],
    values: Floats,
    filled: npt.NDArray[np.int64],
    n_features: int,
) -> sp.csr_matrix:
    """The parts of the output that were filled, as one matrix of a row a label."""
    indptr = np.concatenate([[0], np.cumsum(filled)])
    kept = np.arange(indptr[-1]) + np.repeat(room[:-1] - indptr[:-1], filled)
    shape = (len(filled), n_features)
    return sp.csr_matrix((values[kept], features[kept], indptr), shape=shape)


@compiled()
def _weights_at_most(x_starts, starts, points, n_features):  # type: ignore[no-untyped-def]
    n_labels = starts.shape[0] - 1
    sizes = np.zeros(n_labels, dtype=np.int64)
    for label in range(n_labels):
        for p in range(starts[label], starts[label + 1]):
            sizes[label] += x_starts[points[p] + 1] - x_starts[points[p]]
        sizes[label] = min(sizes[label], n_features)
    return sizes


@compiled(parallel=True, nogil=True)
def _train(  # type: ignore[no-untyped-def]
    x_starts,
    x_features,
    x_data,
    n_features,
    squares,
    starts,
    points,
    signs,
    duals,
    use,
    known_starts,
    known_features,
    known_data,
    first,
    order,
    ridge,
    max_iter,
    prune,
    seed,
    n_chunks,
    room,
    out_features,
    out_values,
    filled,
):
    for chunk in prange(n_chunks):
        w = np.zeros(n_features, dtype=np.float32)
        for turn in range(chunk, order.shape[0], n_chunks):
            label = order[turn]
            begin, end = starts[label], starts[label + 1]
            active = np.empty(end - begin, dtype=np.int64)
            size = 0
            for p in range(known_starts[label], known_starts[label + 1]):
                w[known_features[p]] = known_data[p]
            for place in range(begin, end):
                i = points[place]
                if not use[i]:
                    continue
                active[size] = place
                size += 1
                if duals[place] > 0:
                    step = np.float32(signs[place]) * duals[place]
                    for j in range(x_starts[i], x_starts[i + 1]):
                        w[x_features[j]] += step * x_data[j]
            state = seeded(seed, first + label)
            descend(
                x_starts,
                x_features,
                x_data,
                squares,
                points,
                signs,
                duals,
                active,
                size,
                -1,
                np.float32(1),
                ridge,
                TOL,
                max_iter,
                state,
                w,
            )
            at = room[label]
            for place in range(begin, end):  # every weight that is not 0 is of one of these
                i = points[place]
                for j in range(x_starts[i], x_starts[i + 1]):
                    feature = x_features[j]
                    if abs(w[feature]) > prune:
                        out_features[at] = feature
                        out_values[at] = w[feature]
                        at += 1
                    w[feature] = 0
            for p in range(known_starts[label], known_starts[label + 1]):  # or of these
                feature = known_features[p]
                if abs(w[feature]) > prune:
                    out_features[at] = feature
                    out_values[at] = w[feature]
                    at += 1
                w[feature] = 0
            filled[label] = at - room[label]


@compiled(parallel=True)
def _score_all(indptr, indices, data, starts, labels, weights, out):  # type: ignore[no-untyped-def]
    for i in prange(indptr.shape[0] - 1):
        row = out[i]
        row[:] = OFFSET
        for j in range(indptr[i], indptr[i + 1]):
            value = data[j]
            for p in range(starts[indices[j]], starts[indices[j] + 1]):
                row[labels[p]] += value * weights[p]
