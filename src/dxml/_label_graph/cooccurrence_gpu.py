"""Co-occurrence counts on a GPU: rows of the matrix that `cooccurrence` counts on the CPU.

Counts are whole numbers, so the order of the additions does not matter and the result is the same.
The kernel is in Triton, which comes with torch's builds for CUDA.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
import triton
import triton.language as tl

from dxml._label_graph.cooccurrence import context_weights

__all__ = ["GpuWalks", "fits"]

BLOCK = 256  # places in the walks that a program looks around from
SORT_BYTES = 48  # of memory a place, while the places are sorted by label

Ints = npt.NDArray[np.int64]


def fits(walks: npt.NDArray[np.int32], device: torch.device) -> bool:
    """Whether a GPU has the memory for the walks and their places."""
    if device.type != "cuda":
        return True
    return bool(SORT_BYTES * walks.size < torch.cuda.mem_get_info(device)[0])


class GpuWalks:
    """The walks and the places of every label in them, on a device; as `WalkIndex`.

    Parameters
    ----------
    walks : int32 array of shape (n_walks, length)
    n_labels : int
    window : int
    device : torch.device
    """

    def __init__(
        self, walks: npt.NDArray[np.int32], n_labels: int, window: int, device: torch.device
    ) -> None:
        self.length, self.window, self.n_labels = walks.shape[1], window, n_labels
        self.tokens = torch.from_numpy(np.ascontiguousarray(walks).reshape(-1)).to(device)
        by_place = self.tokens.view(walks.shape)
        self.counts: Ints = np.zeros(n_labels, np.int64)
        self._totals: Ints = np.zeros(n_labels, np.int64)
        for place, reach in enumerate(context_weights(self.length, window)):
            found = torch.bincount(by_place[:, place], minlength=n_labels).cpu().numpy()
            self.counts += found
            self._totals += found * reach
        self.indptr: Ints = np.concatenate([[0], np.cumsum(self.counts)])
        order = self.tokens.argsort(stable=True)
        self.positions = order.int() if len(order) < 2**31 else order

    def context_totals(self) -> Ints:
        """As `WalkIndex.context_totals`."""
        return self._totals

    def count(
        self, centres: npt.NDArray[np.int64], column_of: torch.Tensor, n_columns: int
    ) -> torch.Tensor:
        """How often each centre is near the labels of each column; int32, (centres, n_columns).

        Parameters
        ----------
        column_of : int32 tensor of shape (n_labels,)
            -1 where a label has no column.
        """
        device = self.tokens.device
        counts = torch.zeros((len(centres), n_columns), dtype=torch.int32, device=device)
        starts = self.indptr[centres]
        lengths = self.indptr[centres + 1] - starts
        total = int(lengths.sum())
        if total == 0:
            return counts
        sizes = torch.from_numpy(lengths).to(device)
        owner = torch.arange(len(centres), dtype=torch.int32, device=device)
        owner = owner.repeat_interleave(sizes, output_size=total)
        place = torch.arange(total, device=device)
        place += torch.from_numpy(starts - np.cumsum(lengths) + lengths).to(device)[owner]
        _count[(triton.cdiv(total, BLOCK),)](
            self.tokens,
            self.length,
            self.window,
            self.positions[place],
            owner,
            total,
            column_of,
            n_columns,
            counts,
            BLOCK=BLOCK,
        )
        return counts


@triton.jit
def _count(  # type: ignore[no-untyped-def]
    tokens, length, window, places, owners, total, column_of, n_columns, out, BLOCK: tl.constexpr
):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    here = tl.load(places + at, mask=inside, other=0).to(tl.int64)
    row = tl.load(owners + at, mask=inside, other=0).to(tl.int64) * n_columns
    begin = here // length * length
    for distance in range(1, window + 1):
        weight = tl.full((BLOCK,), 1, tl.int32) * (window + 1 - distance)
        before = inside & (here - distance >= begin)
        token = tl.load(tokens + here - distance, mask=before, other=0)
        column = tl.load(column_of + token, mask=before, other=-1)
        tl.atomic_add(out + row + column, weight, mask=before & (column >= 0), sem="relaxed")
        after = inside & (here + distance < begin + length)
        token = tl.load(tokens + here + distance, mask=after, other=0)
        column = tl.load(column_of + token, mask=after, other=-1)
        tl.atomic_add(out + row + column, weight, mask=after & (column >= 0), sem="relaxed")
