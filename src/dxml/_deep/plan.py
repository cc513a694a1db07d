"""The order of an epoch: batches, the labels of their texts, and a name to read for each text."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from dxml._deep.batches import similar_batches

__all__ = ["Epoch", "Piece", "plan_epoch"]

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive texts of a batch: on the host to be counted, on the device to be read.

    Attributes
    ----------
    texts : int64 (n,)
    placed : the same on the device
    rows, columns : int64 (n_pairs,), on the device
        Which text of the piece has which label.
    host_rows, host_columns : the same on the host
    named : int64 (n,)
        One of each text's labels, -1 where it has none.
    """

    texts: Ids
    placed: Tensor
    rows: Tensor
    columns: Tensor
    host_rows: Ids
    host_columns: Ids
    named: Ids


@dataclass(frozen=True, eq=False)
class Epoch:
    """All batches of an epoch, one after the other; what a device needs is there already."""

    order: Ids
    bounds: list[int]
    _placed: Tensor
    _cuts: Ids
    _owners: Ids
    _columns: Ids
    _placed_owners: Tensor
    _placed_columns: Tensor
    _named: Ids

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def batch(self, batch: int) -> tuple[Ids, Ids]:
        """The texts of a batch, and all labels that they have, on the host."""
        start, stop = self.bounds[batch : batch + 2]
        return self.order[start:stop], self._columns[self._cuts[start] : self._cuts[stop]]

    def piece(self, start: int, stop: int) -> Piece:
        """The texts ``order[start:stop]``."""
        pairs = slice(int(self._cuts[start]), int(self._cuts[stop]))
        return Piece(
            self.order[start:stop],
            self._placed[start:stop],
            self._placed_owners[pairs] - start,
            self._placed_columns[pairs],
            self._owners[pairs] - start,
            self._columns[pairs],
            self._named[start:stop],
        )

    def pieces(self, batch: int, count: int) -> list[Piece]:
        """A batch cut into so many pieces of about one size."""
        cuts = np.linspace(self.bounds[batch], self.bounds[batch + 1], count + 1).astype(int)
        bounds = sorted(set(cuts.tolist()))
        return [self.piece(a, b) for a, b in pairwise(bounds)]


def plan_epoch(
    lengths: Ids, Y: sp.csr_matrix, size: int, rng: np.random.Generator, device: torch.device
) -> Epoch:
    """An order that `rng` alone decides."""
    batches = similar_batches(lengths, size, rng)
    order = np.concatenate(batches)
    bounds = np.cumsum([0, *(len(batch) for batch in batches)]).tolist()
    starts = Y.indptr.astype(np.int64)[order]
    counts = np.diff(Y.indptr).astype(np.int64)[order]
    cuts = np.concatenate([[0], np.cumsum(counts)])
    owners = np.repeat(np.arange(len(order)), counts)
    columns = Y.indices[np.arange(cuts[-1]) + (starts - cuts[:-1])[owners]].astype(np.int64)
    drawn = cuts[:-1] + (rng.random(len(order)) * counts).astype(np.int64)
    named = np.where(counts > 0, np.append(columns, -1)[drawn], -1)
    placed = (torch.from_numpy(array).to(device) for array in (order, owners, columns))
    placed_order, placed_owners, placed_columns = placed
    return Epoch(
        order, bounds, placed_order, cuts, owners, columns, placed_owners, placed_columns, named
    )
