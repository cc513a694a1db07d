"""The factorisation of `factorisation` for many labels on a GPU: pairs from the walks, each a term.

With negative sampling the gradient of a row is a sum over the pairs of the walks and a sum over all
labels. In the first sum a label's own contexts count, which are rare: it is taken over the label's
places in the walks, evenly chosen where there are many. In the second sum the frequent labels
count: it is taken over those and a random sample of the others. `factorisation` samples both alike,
which leaves a label among hundreds of thousands without most of its contexts.

The kernel is in Triton, which comes with torch's builds for CUDA.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
import triton
import triton.language as tl
from torch import Tensor

from dxml._label_graph.cooccurrence_gpu import GpuWalks
from dxml._label_graph.factorisation import (
    Factors,
    descend,
    inverse_gram,
    sample_rows,
    start_of,
    step_length,
)
from dxml.progress import SILENT, Progress, Stage

__all__ = ["factorise_walks"]

MAX_PLACES = 512  # of a label in the walks
ROWS = 1 << 13  # labels whose sums over the sample are made at a time

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


def factorise_walks(
    walks: GpuWalks,
    seen: Ints,
    noise: Doubles,
    totals: Doubles,
    scale: float,
    dim: int,
    sweeps: int,
    seed: int,
    max_others: int,
    progress: Progress = SILENT,
) -> Factors:
    """As `factorise` of a `NegativeProblem`, which has the same first arguments."""
    device = walks.tokens.device
    rng = np.random.default_rng(seed)
    n = len(seen)
    U = torch.from_numpy(start_of(n, dim, rng)).to(device)
    V = torch.zeros_like(U)
    pairs = _Pairs(walks, seen, noise, scale)
    row_mass = torch.from_numpy(totals).float().to(device)
    column_mass = torch.from_numpy(noise).float().to(device)
    curvature = row_mass
    with progress.stage("skip-gram", 2 * sweeps * n, "rows") as stage:
        for sweep in range(sweeps):
            shrink = step_length(sweep)
            solve = shrink * inverse_gram(U, curvature)
            some = sample_rows(totals, max_others, rng)
            curvature = _half_sweep(V, U, pairs, column_mass, row_mass, some, True, solve, stage)
            solve = shrink * inverse_gram(V, curvature)
            some = sample_rows(noise, max_others, rng)
            curvature = _half_sweep(U, V, pairs, row_mass, column_mass, some, False, solve, stage)
    return Factors(U, V)


def _half_sweep(
    A: Tensor,
    B: Tensor,
    pairs: _Pairs,
    own_mass: Tensor,
    other_mass: Tensor,
    sample: tuple[Ints, npt.NDArray[np.float32]],
    columns: bool,
    solve: Tensor,
    stage: Stage,
) -> Tensor:
    """A Newton step for every row of A, for fixed B; returns each row's curvature."""
    ids = torch.from_numpy(sample[0]).to(A.device)
    others = B[ids]
    mass = other_mass[ids] * torch.from_numpy(sample[1]).to(A.device)
    curvature = torch.empty(len(A), device=A.device)
    for begin in range(0, len(A), ROWS):
        at = slice(begin, min(begin + ROWS, len(A)))
        s = A[at] @ others.T
        weight = own_mass[at, None] * mass
        h = (s * s).mul_(4).add_(16).rsqrt_().mul_(weight).sum(1)
        step = s.sigmoid_().mul_(weight) @ others
        pairs.add(at, A, B, columns, step, h)
        descend(A[at], step, h, solve)
        curvature[at] = h
        stage.advance(at.stop - at.start)
    return curvature


class _Pairs:
    """The pairs of the walks: what they add to the gradients."""

    def __init__(self, walks: GpuWalks, seen: Ints, noise: Doubles, scale: float) -> None:
        device = walks.tokens.device
        row_of = np.full(walks.n_labels, -1, dtype=np.int32)
        row_of[seen] = np.arange(len(seen), dtype=np.int32)
        self.walks, self.scale = walks, scale
        self.row_of = torch.from_numpy(row_of).to(device)
        self.starts = torch.from_numpy(walks.indptr[seen]).to(device)
        self.counts = torch.from_numpy(walks.counts[seen]).to(device)
        self.noise = torch.from_numpy(noise).float().to(device)

    def add(self, at: slice, A: Tensor, B: Tensor, columns: bool, step: Tensor, h: Tensor) -> None:
        """Add the pairs of some rows of A to their steps and curvatures."""
        walks, dim = self.walks, A.shape[1]
        _add_pairs[(at.stop - at.start,)](
            walks.tokens,
            walks.length,
            walks.window,
            walks.positions,
            self.starts[at],
            self.counts[at],
            self.row_of,
            self.noise,
            A[at],
            B,
            at.start,
            columns,
            self.scale,
            step,
            h,
            dim,
            PLACES=MAX_PLACES,
            DIM=triton.next_power_of_2(dim),
            SPAN=triton.next_power_of_2(2 * walks.window),
            num_warps=4,
        )


@triton.jit(do_not_specialize=["first"])
def _add_pairs(  # type: ignore[no-untyped-def]
    tokens,
    length,
    window,
    positions,
    starts,
    counts,
    row_of,
    noise,
    A,
    B,
    first,
    columns,
    scale,
    step,
    curvature,
    dim,
    PLACES: tl.constexpr,
    DIM: tl.constexpr,
    SPAN: tl.constexpr,
):
    here = tl.program_id(0)
    axes = tl.arange(0, DIM)
    inside = axes < dim
    own = tl.load(A + here * dim + axes, mask=inside, other=0.0)
    start = tl.load(starts + here)
    count = tl.load(counts + here)
    used = tl.minimum(count, PLACES)
    times = scale * count.to(tl.float32) / used.to(tl.float32)
    lanes = tl.arange(0, SPAN)  # the places before, then those after
    offset = tl.where(lanes < window, lanes - window, lanes - window + 1)
    weight = (window + 1 - tl.abs(offset)).to(tl.float32)
    gradient = tl.zeros((DIM,), tl.float32)
    total = 0.0
    for turn in range(0, used):
        place = tl.load(positions + start + turn * count // used).to(tl.int64)
        begin = place // length * length
        there = place + offset
        real = (lanes < 2 * window) & (there >= begin) & (there < begin + length)
        token = tl.load(tokens + there, mask=real, other=0)
        row = tl.load(row_of + token, mask=real, other=-1)
        real = real & (row >= 0)
        other = tl.load(
            B + row.to(tl.int64)[:, None] * dim + axes[None, :],
            mask=real[:, None] & inside[None, :],
            other=0.0,
        )
        s = tl.sum(other * own[None, :], axis=1)
        chance = tl.sigmoid(s)
        if columns:
            dropped = tl.zeros((SPAN,), tl.float32) + tl.load(noise + first + here)
        else:
            dropped = tl.load(noise + row, mask=real, other=0.0)
        pairs = tl.where(real, weight * times, 0.0)
        slope = pairs * (chance - 1.0 - dropped * chance)
        gradient += tl.sum(slope[:, None] * other, axis=0)
        total += tl.sum(pairs * (1.0 - dropped) / tl.sqrt(16.0 + 4.0 * s * s))
    before = tl.load(step + here * dim + axes, mask=inside, other=0.0)
    tl.store(step + here * dim + axes, before + gradient, mask=inside)
    tl.store(curvature + here, tl.load(curvature + here) + total)
