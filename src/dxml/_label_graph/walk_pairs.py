"""The factorisation of `factorisation` for many labels: every pair of the walks is a term.

With negative sampling the gradient of a row is a sum over the pairs of the walks and a sum over all
labels. In the first sum a label's own contexts count, which are rare: it is taken over the label's
places in the walks, evenly chosen where there are many. In the second sum the frequent labels
count: it is taken over those and a random sample of the others. `factorisation` samples both alike,
which leaves a label among hundreds of thousands without most of its contexts.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dxml._core.compiled import compiled
from dxml._label_graph.cooccurrence import WalkIndex
from dxml._label_graph.factorisation import (
    Factors,
    descend,
    inverse_gram,
    one_thread,
    sample_rows,
    start_of,
    step_length,
)
from dxml.progress import SILENT, Progress

__all__ = ["Pairs", "WalkPairs", "factorise_pairs"]

PLACES = 64  # of a label in the walks that a CPU goes through; 20 pairs each with a window of 10
ROWS = 512  # labels whose sums over the sample are made at a time, on a CPU
GPU_ROWS = 1 << 13

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]


class Pairs(Protocol):
    """The pairs of the walks: what they add to gradients and curvatures."""

    def add(self, at: slice, A: Tensor, B: Tensor, columns: bool, step: Tensor, h: Tensor) -> None:
        """Add the pairs of some rows of A with rows of B to `step` and `h`, of those rows.

        `columns` says that A has the contexts' vectors, and not the labels'.
        """


def factorise_pairs(
    pairs: Pairs,
    noise: Doubles,
    totals: Doubles,
    dim: int,
    sweeps: int,
    seed: int,
    max_others: int,
    device: str | torch.device = "cpu",
    progress: Progress = SILENT,
) -> Factors:
    """As `factorise` of a `NegativeProblem`, which has the same `noise` and `totals`."""
    place = torch.device(device)
    rng = np.random.default_rng(seed)
    n = len(totals)
    U = torch.from_numpy(start_of(n, dim, rng)).to(place)
    V = torch.zeros_like(U)
    row_mass = torch.from_numpy(totals).float().to(place)
    column_mass = torch.from_numpy(noise).float().to(place)
    curvature = row_mass
    with _pool(place) as pool, progress.stage("skip-gram", 2 * sweeps * n, "rows") as stage:

        def half_sweep(A: Tensor, B: Tensor, columns: bool, shrink: float) -> Tensor:
            """A Newton step for every row of A, for fixed B; returns each row's curvature."""
            own, other = (column_mass, row_mass) if columns else (row_mass, column_mass)
            ids, weights = sample_rows(totals if columns else noise, max_others, rng)
            chosen = torch.from_numpy(ids).to(place)
            others, mass = B[chosen], other[chosen] * torch.from_numpy(weights).to(place)
            tangent = _Tangent.of(B, other)
            solve = shrink * inverse_gram(B, curvature)
            curved = torch.empty(n, device=place)

            def block(begin: int) -> int:
                at = slice(begin, min(begin + _rows(place), n))
                s = A[at] @ others.T
                weight = own[at, None] * mass
                h = (s * s).mul_(4).add_(16).rsqrt_().mul_(weight).sum(1)
                level, slope, whole = tangent.at(A[at])
                rest = s.sigmoid().sub_(level).sub_(s.mul_(slope))
                step = rest.mul_(weight) @ others
                step += own[at, None] * whole
                pairs.add(at, A, B, columns, step, h)
                descend(A[at], step, h, solve)
                curved[at] = h
                return at.stop - at.start

            for done in (pool.map if pool else map)(block, range(0, n, _rows(place))):
                stage.advance(done)
            return curved

        for sweep in range(sweeps):
            curvature = half_sweep(V, U, True, step_length(sweep))
            curvature = half_sweep(U, V, False, step_length(sweep))
    return Factors(U, V)


class _Tangent(NamedTuple):
    """Σ_j m_j σ(s_j) b_j over all rows of B, with σ replaced by its tangent at the mean score.

    It needs no sample, since the sums over j do not depend on s. The sample then estimates what the
    tangent leaves over, which varies less.
    """

    mean: Tensor  # Σ_j m_j b_j / Σ_j m_j
    total: Tensor  # Σ_j m_j
    gram: Tensor  # Σ_j m_j b_j b_jᵀ

    @classmethod
    def of(cls, B: Tensor, mass: Tensor) -> _Tangent:
        weighted = B * mass[:, None]
        total = mass.sum()
        return cls(weighted.sum(0) / total, total, weighted.T @ B)

    def at(self, A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Level and slope of the tangent for every row of A, σ ≈ level + slope · s, and the sum."""
        centre = A @ self.mean
        chance = centre.sigmoid()
        slope = chance * (1 - chance)
        level = chance - slope * centre
        whole = level[:, None] * (self.total * self.mean) + slope[:, None] * (A @ self.gram)
        return level[:, None], slope[:, None], whole


def _rows(device: torch.device) -> int:
    return ROWS if device.type == "cpu" else GPU_ROWS


@contextmanager
def _pool(device: torch.device) -> Iterator[ThreadPoolExecutor | None]:
    """Threads that take a block each and compute it with one thread; none beside a GPU."""
    if device.type != "cpu":
        yield None
        return
    with (
        one_thread() as threads,
        ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool,
    ):
        yield pool


class WalkPairs:
    """The pairs around the labels' places in the walks, on a CPU.

    Parameters
    ----------
    walks : WalkIndex
    seen : int64 array
        The labels that have rows.
    noise : float64 array, as `NegativeProblem` has it
    scale : float
    """

    def __init__(self, walks: WalkIndex, seen: Ints, noise: Doubles, scale: float) -> None:
        row_of = np.full(walks.n_labels, -1, dtype=np.int32)
        row_of[seen] = np.arange(len(seen), dtype=np.int32)
        self.walks, self.seen, self.row_of = walks, seen, row_of
        self.noise, self.scale = noise.astype(np.float32), np.float32(scale)

    def add(self, at: slice, A: Tensor, B: Tensor, columns: bool, step: Tensor, h: Tensor) -> None:
        """As `Pairs.add`."""
        _add_pairs(
            *self.walks.arrays,
            self.seen[at],
            self.row_of,
            self.noise,
            A[at].numpy(),
            B.numpy(),
            at.start,
            columns,
            self.scale,
            PLACES,
            step.numpy(),
            h.numpy(),
        )


@compiled(nogil=True, fastmath=True)
def _add_pairs(  # type: ignore[no-untyped-def]
    tokens,
    length,
    indptr,
    positions,
    window,
    labels,
    row_of,
    noise,
    A,
    B,
    first,
    columns,
    scale,
    most,
    step,
    curvature,
):
    dim = A.shape[1]
    for here in range(len(labels)):
        start = indptr[labels[here]]
        count = indptr[labels[here] + 1] - start
        used = min(count, most)
        times = scale * np.float32(count) / np.float32(max(used, 1))
        for turn in range(used):
            place = np.int64(positions[start + turn * count // used])
            begin = place // length * length
            for there in range(max(begin, place - window), min(begin + length, place + window + 1)):
                row = row_of[tokens[there]]
                if row < 0 or there == place:
                    continue
                s = np.float32(0)
                for axis in range(dim):
                    s += A[here, axis] * B[row, axis]
                chance = np.float32(1) / (np.float32(1) + np.exp(-s))
                dropped = noise[first + here] if columns else noise[row]
                pairs = times * np.float32(window + 1 - abs(there - place))
                slope = pairs * (chance - np.float32(1) - dropped * chance)
                for axis in range(dim):
                    step[here, axis] += slope * B[row, axis]
                curved = np.sqrt(np.float32(16) + np.float32(4) * s * s)
                curvature[here] += pairs * (np.float32(1) - dropped) / curved
