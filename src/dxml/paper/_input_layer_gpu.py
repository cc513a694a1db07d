"""The first layer's training on a GPU by kernels in Triton: `CpuInputLayer`, step by step.

The features of every batch are sorted beforehand, many batches at a time, so a step waits for
nothing. A weight row is read and written by one program, in a fixed order, so the result is
repeatable. Triton comes with torch's builds for CUDA.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
import triton
import triton.language as tl
from torch import Tensor

from dxml.paper._input_layer import PlacedLayer

__all__ = ["KernelInputLayer"]

PLANNED = 1 << 26  # non-zeros whose batches are sorted at a time
PROGRAMS = 4096  # that share the features of a batch
TAKE = 64  # features of a row that are read together: what waits for memory waits once for all
TAKE_ROWS = 8  # rows of a feature that are read together

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Batches:
    """Some batches by their features, in buffers that stay where they are.

    Attributes
    ----------
    chosen : int64 (n_rows,)
        The rows of all batches, one batch after the other.
    features : int32 (n_features of all batches,)
        Those of a batch lie together, in rising order.
    starts : int64, one more
        The non-zeros of features[u] are starts[u] to before starts[u + 1].
    rows, data : int32 and float32 (n_nonzeros,)
        The row in its batch, and the value, of each non-zero.
    """

    chosen: Tensor
    features: Tensor
    starts: Tensor
    rows: Tensor
    data: Tensor

    @classmethod
    def empty(cls, n_rows: int, n_nonzeros: int, device: str) -> _Batches:
        """Room for so many."""
        return cls(
            torch.zeros(n_rows, dtype=torch.int64, device=device),
            torch.zeros(n_nonzeros, dtype=torch.int32, device=device),
            torch.zeros(n_nonzeros + 1, dtype=torch.int64, device=device),
            torch.zeros(n_nonzeros, dtype=torch.int32, device=device),
            torch.zeros(n_nonzeros, device=device),
        )


class KernelInputLayer(PlacedLayer):
    """An `InputLayer` on a GPU.

    `begin` says which batch is at hand. `forward_into` and `apply` then read where it lies from the
    GPU's own memory, so they can be recorded once and replayed for every batch of a size.
    """

    def __init__(
        self,
        X: sp.csr_matrix,
        weights: Floats,
        rate: float,
        momentum: float,
        decay: float,
        n: int,
        device: str,
    ) -> None:
        super().__init__(X, weights, rate, momentum, decay, n, device)
        self._block = min(128, triton.next_power_of_2(weights.shape[1]))
        self._tiles = triton.cdiv(weights.shape[1], self._block)
        self._room = _Batches.empty(X.shape[0], max(X.nnz, 1), device)
        # First and last feature of the batch at hand, its first row, the steps before it.
        self._cursor = torch.zeros(4, dtype=torch.int64, device=device)
        self._groups: list[list[Rows]] = []
        self._cursors: list[Tensor] = []

    def start_epoch(self, batches: list[Rows]) -> None:
        """Say which batches will come, in this order."""
        sizes = np.cumsum([int(self._lengths[rows].sum()) for rows in batches]) // PLANNED
        ends = [*(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(batches)]
        starts = [0, *ends[:-1]]
        self._groups = [batches[a:b] for a, b in zip(starts, ends, strict=True)][::-1]

    def begin(self) -> None:
        """Go on to the next batch."""
        if not self._cursors:
            self._cursors = self._sort(self._groups.pop())
        self._cursor.copy_(self._cursors.pop())
        self._now += 1

    def rest(self) -> None:
        """Let no batch be at hand: `apply` then changes nothing."""
        self._cursor.zero_()

    def forward_into(self, product: Tensor) -> None:
        """The products of the batch at hand, (n_rows, hidden)."""
        hidden = self._w.shape[1]
        _catch_up[(PROGRAMS, self._tiles)](
            self._room.features,
            self._cursor,
            self._last,
            self._powers,
            self._w,
            self._v,
            hidden,
            BLOCK=self._block,
            num_warps=1,
        )
        _products[(len(product), self._tiles)](
            self._room.chosen,
            self._cursor,
            self._indptr,
            self._indices,
            self._data,
            self._w,
            product,
            hidden,
            BLOCK=self._block,
            TAKE=TAKE,
            num_warps=8,
        )

    def apply(self, gradient: Tensor) -> None:
        """Update W by the gradient at the products."""
        _update[(PROGRAMS, self._tiles)](
            self._room.features,
            self._cursor,
            self._room.starts,
            self._room.rows,
            self._room.data,
            gradient,
            self._last,
            self._w,
            self._v,
            *(self._rate, self._momentum, self._decay),
            self._w.shape[1],
            BLOCK=self._block,
            TAKE=TAKE_ROWS,
            num_warps=1,
        )

    def forward(self, rows: Rows) -> Tensor:
        self.begin()
        product = torch.empty((len(rows), self._w.shape[1]), device=self._w.device)
        self.forward_into(product)
        return product.requires_grad_()

    def step(self, gradient: Tensor) -> None:
        self.apply(gradient)

    def weights(self) -> Floats:
        n, device = len(self._w), self._w.device
        _catch_up[(PROGRAMS, self._tiles)](
            torch.arange(n, dtype=torch.int32, device=device),
            torch.tensor([0, n, 0, self._now], device=device),
            self._last,
            self._powers,
            self._w,
            self._v,
            self._w.shape[1],
            BLOCK=self._block,
            num_warps=1,
        )
        self._last.fill_(self._now)
        return self._w.cpu().numpy()

    def _sort(self, batches: list[Rows]) -> list[Tensor]:
        """Put batches into the buffers; where each lies, the last one first."""
        device, n_features, room = self._w.device, len(self._w), self._room
        order = np.concatenate(batches)
        total = int(self._lengths[order].sum())
        counts = np.array([len(rows) for rows in batches])
        sizes = torch.from_numpy(counts).to(device)
        chosen = torch.from_numpy(order).to(device)
        here = torch.arange(len(order), device=device)
        batch = torch.arange(len(batches), device=device)
        batch = batch.repeat_interleave(sizes, output_size=len(order))
        in_batch = (here - (sizes.cumsum(0) - sizes)[batch]).int()
        starts = self._indptr[chosen]
        lengths = self._indptr[chosen + 1] - starts
        owner = here.repeat_interleave(lengths, output_size=total)
        entry = torch.arange(total, device=device)
        entry += (starts - lengths.cumsum(0) + lengths)[owner]
        key = (batch * n_features)[owner].add_(self._indices[entry])
        key, by_feature = key.sort(stable=True)
        own, found = key.unique_consecutive(return_counts=True)
        edges = torch.arange(len(batches) + 1, device=device) * n_features
        bounds = torch.searchsorted(own, edges)
        room.chosen[: len(order)] = chosen
        room.features[: len(own)] = (own % n_features).int()
        room.starts[1 : len(own) + 1] = found.cumsum(0)
        room.rows[:total] = in_batch[owner[by_feature]]
        room.data[:total] = self._data[entry[by_feature]]
        first_rows = torch.from_numpy(np.cumsum(counts) - counts).to(device)
        steps = torch.arange(self._now, self._now + len(batches), device=device)
        cursors = torch.stack([bounds[:-1], bounds[1:], first_rows, steps], dim=1)
        return list(cursors.unbind())[::-1]


@triton.jit
def _catch_up(  # type: ignore[no-untyped-def]
    features, cursor, last, powers, w, v, hidden, BLOCK: tl.constexpr
):
    first = tl.load(cursor) + tl.program_id(0)
    for here in range(first, tl.load(cursor + 1), tl.num_programs(0)):
        f = tl.load(features + here).to(tl.int64)
        missed = tl.load(cursor + 3) - tl.load(last + f)
        if missed > 0:
            columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
            inside = columns < hidden
            weight = tl.load(w + f * hidden + columns, mask=inside, other=0.0)
            velocity = tl.load(v + f * hidden + columns, mask=inside, other=0.0)
            power = powers + missed * 4
            tl.store(
                w + f * hidden + columns,
                tl.load(power) * weight + tl.load(power + 1) * velocity,
                mask=inside,
            )
            tl.store(
                v + f * hidden + columns,
                tl.load(power + 2) * weight + tl.load(power + 3) * velocity,
                mask=inside,
            )


@triton.jit
def _products(  # type: ignore[no-untyped-def]
    chosen, cursor, indptr, indices, data, w, out, hidden, BLOCK: tl.constexpr, TAKE: tl.constexpr
):
    here = tl.program_id(0)
    i = tl.load(chosen + tl.load(cursor + 2) + here)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < hidden
    takes = tl.arange(0, TAKE)
    total = tl.zeros((BLOCK,), tl.float32)
    stop = tl.load(indptr + i + 1)
    for j in range(tl.load(indptr + i), stop, TAKE):
        there = j + takes < stop
        f = tl.load(indices + j + takes, mask=there, other=0).to(tl.int64)
        x = tl.load(data + j + takes, mask=there, other=0.0)
        block = tl.load(
            w + f[:, None] * hidden + columns[None, :],
            mask=there[:, None] & inside[None, :],
            other=0.0,
        )
        total += tl.sum(block * x[:, None], axis=0)
    tl.store(out + here * hidden + columns, total, mask=inside)


@triton.jit
def _update(  # type: ignore[no-untyped-def]
    features,
    cursor,
    starts,
    rows,
    data,
    gradient,
    last,
    w,
    v,
    rate,
    momentum,
    decay,
    hidden,
    BLOCK: tl.constexpr,
    TAKE: tl.constexpr,
):
    takes = tl.arange(0, TAKE)
    first = tl.load(cursor) + tl.program_id(0)
    for here in range(first, tl.load(cursor + 1), tl.num_programs(0)):
        f = tl.load(features + here).to(tl.int64)
        columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = columns < hidden
        own = tl.zeros((BLOCK,), tl.float32)
        stop = tl.load(starts + here + 1)
        for j in range(tl.load(starts + here), stop, TAKE):
            there = j + takes < stop
            row = tl.load(rows + j + takes, mask=there, other=0)
            x = tl.load(data + j + takes, mask=there, other=0.0)
            g = tl.load(
                gradient + row[:, None] * hidden + columns[None, :],
                mask=there[:, None] & inside[None, :],
                other=0.0,
            )
            own += tl.sum(g * x[:, None], axis=0)
        weight = tl.load(w + f * hidden + columns, mask=inside, other=0.0)
        velocity = tl.load(v + f * hidden + columns, mask=inside, other=0.0)
        velocity = momentum * velocity + decay * weight + own
        tl.store(v + f * hidden + columns, velocity, mask=inside)
        tl.store(w + f * hidden + columns, weight - rate * velocity, mask=inside)
        if tl.program_id(1) == 0:
            tl.store(last + f, tl.load(cursor + 3) + 1)
