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
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.blocks import BLOCK_BYTES, cut, run_blocks, spread
from dxml._core.compiled import compiled, prange
from dxml._core.random_numba import seeded
from dxml._core.sparse import plain_csr, runs_of_rows, stored
from dxml._core.stages import remembered
from dxml._core.storage import pack_csr
from dxml._core.threads import n_threads
from dxml._learners.dual_descent import descend
from dxml._learners.linear_head import LinearHead
from dxml.progress import SILENT, Progress

__all__ = ["fit_linear", "labels_for_cpu"]

TOL = np.float32(0.1)  # of a label's projected gradients
GPU_STEP = 4  # times that a step of one label takes a GPU, as a core of a CPU
BLOCK = 1 << 25  # weights that may come out of the labels in training at a time
WEIGHT_BYTES = 8  # of a weight that comes out, with its feature
LOOKED_THROUGH = 4  # weights that are looked through in the time for one value of a point
SIGN_BYTES = 9  # of a point that a label learns from: its number, sign and multiplier

Floats = npt.NDArray[np.float32]


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
        From `dxml._learners.linear_examples`.
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
    inputs: dict[str, Any] = {"X": X, "signs": signs, "C": C, "max_iter": max_iter}
    inputs |= {"prune": prune, "rows": rows}
    inputs |= {"duals": duals, "start": start, "seed": seed, "device": device}

    def compute() -> dict[str, npt.NDArray[Any]]:
        head, ended = _fit(
            X, signs, C, max_iter, prune, rows, duals, start, seed, device, stage, progress
        )
        return {**pack_csr("weights", head.weights), "duals": ended}

    found = remembered("linear", inputs, compute)
    data, indices, indptr = (found[f"weights.{part}"] for part in ("data", "indices", "indptr"))
    weights = plain_csr(data, indices, indptr, (signs.shape[0], X.shape[1]))
    return LinearHead(weights), found["duals"]


def _fit(
    X: sp.csr_matrix,
    signs: sp.csr_matrix,
    C: float,
    max_iter: int,
    prune: float,
    rows: npt.NDArray[np.bool_] | None,
    duals: Floats | None,
    start: sp.csr_matrix | None,
    seed: int,
    device: str,
    stage: str,
    progress: Progress,
) -> tuple[LinearHead, Floats]:
    """`fit_linear`, computed."""
    duals = np.zeros(signs.nnz, np.float32) if duals is None else duals.copy()
    n_labels, n_features = signs.shape[0], X.shape[1]
    known = sp.csr_matrix((n_labels, n_features), dtype=np.float32) if start is None else start
    squares = _squares(X)
    use = np.ones(X.shape[0], dtype=bool) if rows is None else rows
    sizes = _weights_at_most(X.indptr, signs.indptr, signs.indices, n_features)
    sizes = np.minimum(sizes + np.diff(known.indptr), n_features)
    if device != "cpu" and start is None and n_labels and _has_triton():
        return _fit_on_gpu(
            X, signs, duals, use, sizes, squares, C, max_iter, prune, seed, device, stage, progress
        )
    settings = _Settings(np.float32(0.5 / C), TOL, max_iter, np.float32(prune), seed)
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


def _squares(X: sp.csr_matrix) -> Floats:
    """The squared length of each row."""
    found = np.zeros(X.shape[0], dtype=np.float32)
    for run in runs_of_rows(X.indptr):
        rows = X[run]
        found[run] = np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float32).ravel()
    return found


class _Settings(NamedTuple):
    """As the compiled loop takes them."""

    ridge: np.float32
    tol: np.float32
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
    by_size = np.argsort(-sizes, kind="stable")  # dealt out evenly to the threads
    n_chunks = min(len(sizes), n_threads())
    rooms = [sizes[by_size[chunk::n_chunks]].sum() for chunk in range(n_chunks)]
    room = np.concatenate([[0], np.cumsum(rooms)]).astype(np.int64)
    features = np.empty(room[-1], dtype=np.int32)
    values = np.empty(room[-1], dtype=np.float32)
    begins, filled = np.zeros((2, len(sizes)), dtype=np.int64)
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
        settings.tol,
        settings.max_iter,
        settings.prune,
        np.uint64(settings.seed),
        n_chunks,
        sizes,
        room,
        features,
        values,
        begins,
        filled,
    )
    return _gather(begins, features, values, filled, X.shape[1]), duals


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
    begins: npt.NDArray[np.int64],
    features: npt.NDArray[np.int32],
    values: Floats,
    filled: npt.NDArray[np.int64],
    n_features: int,
) -> sp.csr_matrix:
    """The weights of each label, which lie from where it begins, as one matrix of a row a label."""
    indptr = np.concatenate([[0], np.cumsum(filled)])
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    _copy(begins, indptr, features, values, indices, data)
    return sp.csr_matrix((data, indices, indptr), shape=(len(filled), n_features))


@compiled(parallel=True)
def _copy(begins, indptr, features, values, indices, data):  # type: ignore[no-untyped-def]
    for label in prange(indptr.shape[0] - 1):
        first, last = begins[label], begins[label] + indptr[label + 1] - indptr[label]
        indices[indptr[label] : indptr[label + 1]] = features[first:last]
        data[indptr[label] : indptr[label + 1]] = values[first:last]


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
    tol,
    max_iter,
    prune,
    seed,
    n_chunks,
    sizes,
    room,
    out_features,
    out_values,
    begins,
    filled,
):
    """A thread writes the weights of its labels one after the other, so that memory is touched as
    far as there are weights, of which each label has far fewer than may come out of it."""
    for chunk in prange(n_chunks):
        w = np.zeros(n_features, dtype=np.float32)
        free = room[chunk]
        for turn in range(chunk, order.shape[0], n_chunks):
            label = order[turn]
            begin, end = starts[label], starts[label + 1]
            active = np.empty(end - begin, dtype=np.int64)
            size = 0
            for p in stored(known_starts, label):
                w[known_features[p]] = known_data[p]
            for place in range(begin, end):
                i = points[place]
                if not use[i]:
                    continue
                active[size] = place
                size += 1
                if duals[place] > 0:
                    step = np.float32(signs[place]) * duals[place]
                    for j in stored(x_starts, i):
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
                tol,
                max_iter,
                state,
                w,
            )
            begins[label] = free
            filled[label] = _take_out(
                x_starts,
                x_features,
                points[begin:end],
                known_features[known_starts[label] : known_starts[label + 1]],
                prune,
                w,
                out_features[free : free + sizes[label]],
                out_values[free : free + sizes[label]],
            )
            free += filled[label]


@compiled()
def _take_out(x_starts, x_features, points, known, prune, w, features, values):  # type: ignore[no-untyped-def]
    """Write the weights above `prune`, looking at all, or at those of the points' features.

    `w` is 0 afterwards.
    """
    size = 0
    if LOOKED_THROUGH * features.shape[0] >= w.shape[0]:
        for feature in range(w.shape[0]):
            if abs(w[feature]) > prune:
                features[size], values[size] = feature, w[feature]
                size += 1
        w[:] = 0
        return size
    for i in points:  # every weight that is not 0 is of one of these
        for j in stored(x_starts, i):
            feature = x_features[j]
            if abs(w[feature]) > prune:
                features[size], values[size] = feature, w[feature]
                size += 1
            w[feature] = 0
    for feature in known:  # or of these
        if abs(w[feature]) > prune:
            features[size], values[size] = feature, w[feature]
            size += 1
        w[feature] = 0
    return size
