"""The search of `cosine` on a GPU: the same neighbours, many queries at a time.

A block of queries has a table of one sum a point. Every (query, feature, point) that has a value on
both sides adds a product to it, and the largest sums of each row are the neighbours. Sums are whole
numbers of 2**-30, so the order of the additions does not matter and the result is repeatable.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

__all__ = ["GpuColumns"]

ONE = 1 << 30  # the cosine 1 as a whole number
PRODUCT_BYTES = 64  # of memory while products are made
MEMORY_SHARE = 0.25  # of the free memory, for the table and for the products each

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


class GpuColumns:
    """Points of length 1 by their columns, on a device.

    Parameters
    ----------
    columns : csc_matrix of shape (n, n_features)
    device : str
    """

    def __init__(self, columns: sp.csc_matrix, device: str) -> None:
        self.n = int(columns.shape[0])
        self.lengths = np.diff(columns.indptr).astype(np.int64)
        self.starts = torch.from_numpy(columns.indptr.astype(np.int64)).to(device)
        self.rows = torch.from_numpy(columns.indices).to(device)
        self.values = torch.from_numpy(columns.data).to(device)

    def search(self, queries: sp.csr_matrix, n_neighbors: int) -> tuple[Ids, Floats]:
        """As `dxml._neighbors.cosine.nearest_by_cosine`."""
        device = self.values.device
        work = np.concatenate([[0], np.cumsum(self.lengths[queries.indices])])[queries.indptr]
        features = torch.from_numpy(queries.indices).to(device)
        weights = torch.from_numpy(queries.data).to(device)
        ids, cosines = [], []
        for first, last in self._blocks(work):
            begin, end = int(queries.indptr[first]), int(queries.indptr[last])
            lengths = torch.from_numpy(np.diff(queries.indptr[first : last + 1])).to(device)
            sums = self._sums(
                lengths, features[begin:end], weights[begin:end], int(work[last] - work[first])
            )
            found = _largest(sums, n_neighbors)
            ids.append(found[0].cpu().numpy())
            cosines.append(found[1].cpu().numpy())
        if not ids:
            shape = (0, n_neighbors)
            return np.empty(shape, np.int32), np.empty(shape, np.float32)
        return np.concatenate(ids), np.concatenate(cosines)

    def _blocks(self, work: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Queries from `first` to before `last`, as many as fit into memory."""
        room = MEMORY_SHARE * _free_memory(self.values.device)
        n_rows = max(1, int(room / (4 * self.n)))
        products = int(room / PRODUCT_BYTES)
        first, n = 0, len(work) - 1
        while first < n:
            last = int(np.searchsorted(work, work[first] + products, side="right")) - 1
            last = min(max(last, first + 1), first + n_rows, n)
            yield first, last
            first = last

    def _sums(
        self, lengths: torch.Tensor, features: torch.Tensor, weights: torch.Tensor, n_products: int
    ) -> torch.Tensor:
        """Cosines of some queries with all points, as whole numbers, (n_queries, n)."""
        device, n_queries = self.values.device, len(lengths)
        query = torch.arange(n_queries, device=device).repeat_interleave(
            lengths, output_size=len(features)
        )
        features = features.long()
        start = self.starts[features]
        found = self.starts[features + 1] - start  # points that have the feature
        entry = torch.arange(len(features), device=device)
        entry = entry.repeat_interleave(found, output_size=n_products)
        place = torch.arange(n_products, device=device)
        place += (start - found.cumsum(0) + found)[entry]
        products = (weights[entry] * self.values[place]).mul_(ONE).round_().int()
        target = (query * self.n)[entry].add_(self.rows[place])
        sums = torch.zeros(n_queries * self.n, dtype=torch.int32, device=device)
        sums.scatter_add_(0, target, products)
        return sums.view(n_queries, self.n)


def _largest(sums: torch.Tensor, n_neighbors: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Places and values of the largest positive sums of each row, ties by place."""
    best = torch.topk(sums, n_neighbors)
    key = (best.values.long() << 32) - best.indices
    order = key.argsort(dim=1, descending=True)
    values = best.values.gather(1, order)
    ids = best.indices.gather(1, order).int()
    ids = torch.where(values > 0, ids, -1)
    return ids, values.clamp_min(0).float() / ONE


def _free_memory(device: torch.device) -> float:
    if device.type != "cuda":
        return float(1 << 28)  # as if it were a small GPU
    return float(torch.cuda.mem_get_info(device)[0])
