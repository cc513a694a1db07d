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

from dxml.paper._input_layer import idle_steps

__all__ = ["KernelInputLayer"]

PLANNED = 1 << 26  # non-zeros whose batches are sorted at a time
TAKE = 16  # features of a row that are read together

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Batches:
    """Some batches by their features, ascending.

    Attributes
    ----------
    features : int32 tensor; those of batch b are features[bounds[b]:bounds[b + 1]]
    starts : int64 tensor; the non-zeros of features[u] are starts[u] to before starts[u + 1]
    rows, data : tensors with the row in its batch and the value of each non-zero
    """

    features: Tensor
    bounds: list[int]
    starts: Tensor
    rows: Tensor
    data: Tensor


class KernelInputLayer:
    """An `InputLayer` on a GPU."""

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
        self._lengths = np.diff(X.indptr).astype(np.int64)
        self._indptr = torch.from_numpy(X.indptr.astype(np.int64)).to(device)
        self._indices = torch.from_numpy(X.indices.astype(np.int32)).to(device)
        self._data = torch.from_numpy(X.data).to(device)
        self._w = torch.from_numpy(weights).to(device)
        self._v = torch.zeros_like(self._w)
        self._last = torch.zeros(len(weights), dtype=torch.int64, device=device)
        self._now = 0
        self._powers = torch.from_numpy(idle_steps(rate, momentum, decay, n)).to(device)
        self._settings = (rate, momentum, decay)
        self._block = min(128, triton.next_power_of_2(weights.shape[1]))
        self._groups: list[list[Rows]] = []
        self._waiting = 0  # batches of the group that are still to come

    def start_epoch(self, batches: list[Rows]) -> None:
        """Say which batches will come, in this order."""
        sizes = np.cumsum([int(self._lengths[rows].sum()) for rows in batches]) // PLANNED
        ends = [*(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(batches)]
        starts = [0, *ends[:-1]]
        self._groups = [batches[a:b] for a, b in zip(starts, ends, strict=True)][::-1]

    def forward(self, rows: Rows) -> Tensor:
        if self._waiting == 0:
            group = self._groups.pop()
            self._plan, self._chosen = self._sorted(group)
            self._waiting, self._at, self._row = len(group), 0, 0
        chosen = self._chosen[self._row : self._row + len(rows)]
        features = self._features()
        hidden = self._w.shape[1]
        tiles = triton.cdiv(hidden, self._block)
        if len(features):
            _catch_up[(len(features), tiles)](
                features,
                self._last,
                self._now,
                self._powers,
                self._w,
                self._v,
                hidden,
                BLOCK=self._block,
                num_warps=1,
            )
        out = torch.empty((len(rows), hidden), device=self._w.device)
        _products[(len(rows), tiles)](
            chosen,
            self._indptr,
            self._indices,
            self._data,
            self._w,
            out,
            hidden,
            BLOCK=self._block,
            TAKE=TAKE,
            num_warps=2,
        )
        self._row += len(rows)
        return out.requires_grad_()

    def step(self, gradient: Tensor) -> None:
        self._now += 1
        features, hidden = self._features(), self._w.shape[1]
        if len(features):
            _update[(len(features), triton.cdiv(hidden, self._block))](
                features,
                self._plan.starts[self._plan.bounds[self._at] :],
                self._plan.rows,
                self._plan.data,
                gradient,
                self._last,
                self._now,
                self._w,
                self._v,
                *self._settings,
                hidden,
                BLOCK=self._block,
                num_warps=1,
            )
        self._at += 1
        self._waiting -= 1

    def weights(self) -> Floats:
        hidden = self._w.shape[1]
        everything = torch.arange(len(self._w), dtype=torch.int32, device=self._w.device)
        _catch_up[(len(everything), triton.cdiv(hidden, self._block))](
            everything,
            self._last,
            self._now,
            self._powers,
            self._w,
            self._v,
            hidden,
            BLOCK=self._block,
            num_warps=1,
        )
        self._last.fill_(self._now)
        return self._w.cpu().numpy()

    def _features(self) -> Tensor:
        """Those of the batch at hand."""
        bounds = self._plan.bounds
        return self._plan.features[bounds[self._at] : bounds[self._at + 1]]

    def _sorted(self, batches: list[Rows]) -> tuple[_Batches, Tensor]:
        device, n_features = self._w.device, len(self._w)
        order = np.concatenate(batches)
        total = int(self._lengths[order].sum())
        sizes = torch.tensor([len(rows) for rows in batches], device=device)
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
        own, counts = key.unique_consecutive(return_counts=True)
        edges = torch.arange(len(batches) + 1, device=device) * n_features
        bounds = torch.searchsorted(own, edges).tolist()
        plan = _Batches(
            (own % n_features).int(),
            bounds,
            torch.nn.functional.pad(counts.cumsum(0), (1, 0)),
            in_batch[owner[by_feature]],
            self._data[entry[by_feature]],
        )
        return plan, chosen


@triton.jit(do_not_specialize=["now"])
def _catch_up(  # type: ignore[no-untyped-def]
    features, last, now, powers, w, v, hidden, BLOCK: tl.constexpr
):
    f = tl.load(features + tl.program_id(0)).to(tl.int64)
    missed = now - tl.load(last + f)
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
    rows, indptr, indices, data, w, out, hidden, BLOCK: tl.constexpr, TAKE: tl.constexpr
):
    here = tl.program_id(0)
    i = tl.load(rows + here)
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


@triton.jit(do_not_specialize=["now"])
def _update(  # type: ignore[no-untyped-def]
    features,
    starts,
    rows,
    data,
    gradient,
    last,
    now,
    w,
    v,
    rate,
    momentum,
    decay,
    hidden,
    BLOCK: tl.constexpr,
):
    here = tl.program_id(0)
    f = tl.load(features + here).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < hidden
    own = tl.zeros((BLOCK,), tl.float32)
    for j in range(tl.load(starts + here), tl.load(starts + here + 1)):
        row = tl.load(rows + j)
        g = tl.load(gradient + row * hidden + columns, mask=inside, other=0.0)
        own += tl.load(data + j) * g
    weight = tl.load(w + f * hidden + columns, mask=inside, other=0.0)
    velocity = tl.load(v + f * hidden + columns, mask=inside, other=0.0)
    velocity = momentum * velocity + decay * weight + own
    tl.store(v + f * hidden + columns, velocity, mask=inside)
    tl.store(w + f * hidden + columns, weight - rate * velocity, mask=inside)
    if tl.program_id(1) == 0:
        tl.store(last + f, now.to(tl.int64))
