"""Batches of texts of similar length, padded to few distinct lengths, made on the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dxml._deep.tokens import Tokens

__all__ = ["PlacedTokens", "padded_length", "similar_batches", "sorted_batches"]

POOL = 32  # batches whose texts are sorted by length among themselves
Rows = npt.NDArray[np.int64]


def padded_length(longest: int, most: int) -> int:
    """The length a batch is padded to, so that there are few distinct ones.

    >>> [padded_length(n, 256) for n in (3, 8, 9, 65, 130, 250)]
    [8, 8, 16, 80, 160, 256]
    """
    step = 8 if longest <= 64 else 16 if longest <= 128 else 32
    return max(longest, min(-(-longest // step) * step, most))


def similar_batches(
    lengths: npt.NDArray[Any], size: int, rng: np.random.Generator
) -> list[npt.NDArray[np.int64]]:
    """Every row once, in random batches of rows whose lengths are alike."""
    order = rng.permutation(len(lengths))
    batches = []
    for start in range(0, len(order), size * POOL):
        pool = order[start : start + size * POOL]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[i : i + size] for i in range(0, len(pool), size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def sorted_batches(lengths: npt.NDArray[Any], tokens: int) -> Iterator[npt.NDArray[np.int64]]:
    """Every row once, longest first, in batches of at most so many padded tokens."""
    order = np.argsort(-np.asarray(lengths), kind="stable")
    start = 0
    while start < len(order):
        size = max(1, tokens // int(lengths[order[start]]))
        yield order[start : start + size]
        start += size


class PlacedTokens:
    """The texts on a device, where padded batches are gathered."""

    def __init__(self, tokens: Tokens, pad: int, most: int, device: torch.device) -> None:
        self.lengths = tokens.lengths
        self._pad, self._most, self._device = pad, most, device
        self._ids = torch.from_numpy(np.ascontiguousarray(tokens.ids)).to(device)
        self._starts = torch.from_numpy(np.ascontiguousarray(tokens.ends[:-1])).to(device)
        self._lengths = torch.from_numpy(self.lengths).to(device)

    def batch(self, rows: npt.NDArray[Any]) -> tuple[Tensor, Tensor]:
        """Ids (n, length) and whether each is a real token, for rows that the host knows."""
        length = padded_length(int(self.lengths[rows].max()), self._most)
        placed = torch.from_numpy(np.asarray(rows)).to(self._device, non_blocking=True)
        return self.gather(placed, length)

    def gather(self, rows: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """`batch` of rows that are on the device already, padded to a known length."""
        places = torch.arange(length, device=self._device)
        real = places < self._lengths[rows][:, None]  # (n, length)
        places = torch.where(real, self._starts[rows][:, None] + places, 0)
        ids = torch.where(real, self._ids[places], self._pad)
        return ids.long(), real
