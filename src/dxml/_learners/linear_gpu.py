"""Dual coordinate descent of many labels at a time on a GPU.

One warp trains one label after the other, by the steps of `dual_descent`, with dense weights of its
own in the GPU's memory. Labels do not depend on each other, so the result is repeatable. A pass
goes over the points by a prime stride, another one each time, rather than in a shuffled order, and
nothing is shrunk away. The optimum is the same.

The kernel is in Triton, which comes with torch's builds for CUDA.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
import triton
import triton.language as tl

from dxml._learners.dual_descent import OFFSET
from dxml.progress import Stage

__all__ = ["train_labels"]

WARPS_PER_CORE = 32  # programs of one warp that a multiprocessor runs at a time
WIDTHS = (128, 1024)  # least and most features of a row that are read together
MEMORY_SHARE = 0.25  # of the free memory, for dense weights and for the weights that come out, each
STRIDES = tl.constexpr((2_147_483_647, 1_000_000_007, 998_244_353, 1_004_535_809))
"""Primes above the number of points: a step of any of them visits all points once."""

Floats = npt.NDArray[np.float32]


def train_labels(
    X: sp.csr_matrix,
    squares: Floats,
    signs: sp.csr_matrix,
    duals: Floats,
    use: npt.NDArray[np.bool_],
    sizes: npt.NDArray[np.int64],
    *,
    C: float,
    max_iter: int,
    prune: float,
    tol: float,
    device: str,
    bar: Stage,
) -> sp.csr_matrix:
    """The weights of every label, (n_labels, n_features); `duals` changes where it lies.

    Parameters
    ----------
    X : csr_matrix of shape (n_samples, n_features), float32
    squares : float32 array, ‖xᵢ‖²
    signs : csr_matrix of shape (n_labels, n_samples), int8
    duals : float32 array, one for each stored value of `signs`
    use : bool array of shape (n_samples,)
    sizes : int64 array of shape (n_labels,)
        Weights that a label has at most; labels of size 0 are left out.
    """

    def put(array: npt.NDArray[Any], dtype: type) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, dtype=dtype)).to(device)

    rows = (put(X.indptr, np.int64), put(X.indices, np.int32), put(X.data, np.float32))
    starts, points = put(signs.indptr, np.int64), put(signs.indices, np.int32)
    used = put(signs.data, np.int8) * put(use, np.int8)[points]  # 0: not to be learnt from
    alphas, lengths = put(duals, np.float32), put(squares, np.float32)
    n_labels, n_features = signs.shape[0], X.shape[1]
    width = _width(X)
    slots, room = _room(n_features, torch.device(device))
    weights = torch.zeros((min(slots, n_labels), n_features), device=device)
    parts, first = [], 0
    while first < n_labels:
        count = max(1, int(np.searchsorted(np.cumsum(sizes[first:]), room, side="right")))
        block = sizes[first : first + count]
        order = first + np.argsort(-block, kind="stable")  # the longest first
        order = order[block[order - first] > 0]
        ends = np.concatenate([[0], np.cumsum(block)])
        features = torch.empty(int(ends[-1]), dtype=torch.int32, device=device)
        values = torch.empty(int(ends[-1]), device=device)
        filled = torch.zeros(count, dtype=torch.int64, device=device)
        _train[(max(1, min(len(weights), len(order))),)](
            *rows,
            lengths,
            starts,
            points,
            used,
            alphas,
            put(order, np.int64),
            len(order),
            first,
            weights,
            n_features,
            0.5 / C,
            tol,
            max_iter,
            prune,
            put(ends, np.int64),
            features,
            values,
            filled,
            float(OFFSET),
            WIDTH=width,
            num_warps=1,
        )
        parts.append(_gather(ends, features, values, filled, n_features))
        first += count
        bar.advance(count)
    duals[:] = alphas.cpu().numpy()
    return parts[0] if len(parts) == 1 else sp.vstack(parts, format="csr")


def _width(X: sp.csr_matrix) -> int:
    """A power of two that most rows fit into."""
    usual = int(np.quantile(np.diff(X.indptr), 0.9)) if X.shape[0] else 1
    return min(max(triton.next_power_of_2(max(usual, 1)), WIDTHS[0]), WIDTHS[1])


def _room(n_features: int, device: torch.device) -> tuple[int, int]:
    """Labels that are trained at a time, and weights that may come out of them."""
    if device.type != "cuda":
        return 3, 1 << 12  # the interpreter's
    torch.cuda.empty_cache()  # what earlier stages used is free
    share = MEMORY_SHARE * torch.cuda.mem_get_info(device)[0]
    cores = torch.cuda.get_device_properties(device).multi_processor_count
    slots = max(1, min(WARPS_PER_CORE * cores, int(share / (4 * n_features))))
    return slots, int(share / 32)


def _gather(
    starts: npt.NDArray[np.int64],
    features: torch.Tensor,
    values: torch.Tensor,
    filled: torch.Tensor,
    n_features: int,
) -> sp.csr_matrix:
    """The parts of the output that were filled, one after the other."""
    device, count = filled.device, len(filled)
    ends = filled.cumsum(0)
    total = int(ends[-1])
    label = torch.arange(count, device=device).repeat_interleave(filled, output_size=total)
    place = torch.arange(total, device=device)
    place += (torch.from_numpy(starts[:-1]).to(device) - ends + filled)[label]
    indptr = np.concatenate([[0], ends.cpu().numpy()])
    arrays = (values[place].cpu().numpy(), features[place].cpu().numpy(), indptr)
    return sp.csr_matrix(arrays, shape=(count, n_features))


@triton.jit
def _train(  # type: ignore[no-untyped-def]
    x_starts,
    x_features,
    x_data,
    squares,
    starts,
    points,
    signs,
    duals,
    order,
    n_turns,
    first,
    all_weights,
    n_features,
    ridge,
    tol,
    max_iter,
    prune,
    room,
    out_features,
    out_values,
    filled,
    offset,
    WIDTH: tl.constexpr,
):
    slot = tl.program_id(0)
    lanes = tl.arange(0, WIDTH)
    nothing = tl.zeros((WIDTH,), tl.float32)
    w = all_weights + slot.to(tl.int64) * n_features
    turn = slot
    while turn < n_turns:
        label = tl.load(order + turn)
        begin = tl.load(starts + label)
        size = tl.load(starts + label + 1) - begin
        for s in range(0, size):  # where training starts from: the sum of αᵢ tᵢ xᵢ
            step = tl.load(duals + begin + s) * tl.load(signs + begin + s).to(tl.float32)
            if step != 0:
                i = tl.load(points + begin + s)
                stop = tl.load(x_starts + i + 1)
                for j in range(tl.load(x_starts + i), stop, WIDTH):
                    inside = j + lanes < stop
                    f = tl.load(x_features + j + lanes, mask=inside, other=0)
                    x = tl.load(x_data + j + lanes, mask=inside, other=0.0)
                    before = tl.load(w + f, mask=inside, other=0.0)
                    tl.store(w + f, before + step * x, mask=inside)
                tl.debug_barrier()
        turns = 0
        going = size > 0
        while going:
            largest = -1e30
            smallest = 1e30
            odd = tl.where(turns & 2 == 0, STRIDES[1], STRIDES[3])
            even = tl.where(turns & 2 == 0, STRIDES[0], STRIDES[2])
            stride = tl.where(turns & 1 == 0, even, odd) % size
            position = (label * 1_000_003 + turns * 7_919) % size
            i = tl.load(points + begin + position)
            row = tl.load(x_starts + i)
            stop = tl.load(x_starts + i + 1)
            for _ in range(0, size):
                place = begin + position
                position += stride
                position = tl.where(position >= size, position - size, position)
                next_i = tl.load(points + begin + position)  # asked for while this one is used
                next_row = tl.load(x_starts + next_i)
                next_stop = tl.load(x_starts + next_i + 1)
                sign = tl.load(signs + place).to(tl.float32)
                if sign != 0:
                    here = row + lanes < stop
                    features = tl.load(x_features + row + lanes, mask=here, other=0)
                    data = tl.load(x_data + row + lanes, mask=here, other=0.0)
                    alpha = tl.load(duals + place)
                    square = tl.load(squares + i)
                    own = tl.load(w + features, mask=here, other=0.0)
                    total = own * data
                    for j in range(row + WIDTH, stop, WIDTH):
                        inside = j + lanes < stop
                        f = tl.load(x_features + j + lanes, mask=inside, other=0)
                        x = tl.load(x_data + j + lanes, mask=inside, other=0.0)
                        total += tl.load(w + f, mask=inside, other=0.0) * x
                    gradient = sign * (tl.sum(total) + offset) - 1.0 + ridge * alpha
                    projected = tl.where(alpha > 0, gradient, tl.minimum(gradient, 0.0))
                    largest = tl.maximum(largest, projected)
                    smallest = tl.minimum(smallest, projected)
                    if tl.abs(projected) > 1e-6:
                        fresh = tl.maximum(alpha - gradient / (square + ridge), 0.0)
                        step = sign * (fresh - alpha)
                        tl.store(duals + place, fresh)
                        tl.store(w + features, own + step * data, mask=here)
                        for j in range(row + WIDTH, stop, WIDTH):
                            inside = j + lanes < stop
                            f = tl.load(x_features + j + lanes, mask=inside, other=0)
                            x = tl.load(x_data + j + lanes, mask=inside, other=0.0)
                            before = tl.load(w + f, mask=inside, other=0.0)
                            tl.store(w + f, before + step * x, mask=inside)
                        tl.debug_barrier()
                i = next_i
                row = next_row
                stop = next_stop
            turns += 1
            going = (turns < max_iter) & (largest - smallest > tol)
        out = tl.load(room + label - first)
        at = out
        for j in range(0, n_features, WIDTH):  # in rising order, so that nothing is sorted after
            inside = j + lanes < n_features
            value = tl.load(w + j + lanes, mask=inside, other=0.0)
            kept = tl.abs(value) > prune
            number = kept.to(tl.int32)
            to = at + tl.cumsum(number, 0) - 1
            tl.store(out_features + to, j + lanes, mask=kept)
            tl.store(out_values + to, value, mask=kept)
            tl.store(w + j + lanes, nothing, mask=inside)
            at += tl.sum(number)
        tl.debug_barrier()
        tl.store(filled + label - first, at - out)
        turn += tl.num_programs(0)
