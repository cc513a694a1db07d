"""The pairs of the walks on a GPU, as `walk_pairs.WalkPairs` adds them on a CPU.

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

__all__ = ["GpuWalkPairs"]

PLACES = 128  # of a label in the walks

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


class GpuWalkPairs:
    """As `WalkPairs`, from walks on a device."""

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
        """As `WalkPairs.add`."""
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
            PLACES=PLACES,
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
