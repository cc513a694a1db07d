"""Several processes that take each step together, each with its share of the batch.

Every process has the whole model. Slopes are added up over the processes before the step, so that
all take the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor, distributed

from dxml._core.random import spawn_seed

__all__ = ["ALONE", "Together"]

Each = TypeVar("Each")


class Together:
    """One of `count` processes, of which the first stores and reports.

    Parameters
    ----------
    rank, count : int
        With a `count` above 1 torch's default group of processes must be there.
    """

    def __init__(self, rank: int, count: int) -> None:
        self.rank, self.count = rank, count

    def share(self, pieces: Sequence[Each]) -> list[Each]:
        """The pieces of this process: all of them are shared out, and may be none for some."""
        return list(pieces[self.rank :: self.count])

    def draw_apart(self, seed: int, step: int) -> None:
        """What drops in a step differs between processes, and is the same when it is repeated."""
        if self.count > 1:
            torch.manual_seed(spawn_seed(seed, f"deep step {step} of process {self.rank}"))

    def add(self, values: Sequence[Tensor]) -> None:
        """Each becomes its sum over the processes."""
        if self.count == 1 or not values:
            return
        flat = torch.cat([value.flatten() for value in values])
        distributed.all_reduce(flat)
        for value, total in zip(values, flat.split([v.numel() for v in values]), strict=True):
            value.copy_(total.view_as(value))

    def gather(self, shares: Sequence[Each]) -> list[Each]:
        """The inverse of `share`: what each process made of its share, in the order of all."""
        if self.count == 1:
            return list(shares)
        found: list[Sequence[Each]] = [()] * self.count
        distributed.all_gather_object(found, list(shares))
        longest = max(len(own) for own in found)
        return [own[i] for i in range(longest) for own in found if i < len(own)]


ALONE = Together(0, 1)
