"""Which k and m are tried on held-out points, and which of them are taken.

k is the number of neighbours that vote, m the number of cells of the index.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dxml.exceptions import DataFormatError

__all__ = ["Choice", "best_choice", "hold_out", "neighbor_counts", "partition_counts"]

MOST_HELD = 5_000  # points that are held out
NEIGHBORS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100)

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Choice:
    """k and m, and the mean of P@1, P@3 and P@5 on held-out points."""

    n_partitions: int
    n_neighbors: int
    score: float


def hold_out(n: int, fraction: float, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """The points that are held out and those that are kept, each in rising order."""
    order = rng.permutation(n)
    n_held = min(max(1, int(n * fraction)), MOST_HELD)
    held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
    if len(kept) == 0:
        raise DataFormatError(
            f"choosing n_neighbors and n_partitions needs 2 labelled points or more, "
            f"got n_samples={n}. Give both, or more points."
        )
    return held, kept


def neighbor_counts(given: int | None, n_points: int) -> tuple[int, ...]:
    """The k that are tried: the one that was given, or those that there are points for."""
    if given is not None:
        return (given,)
    return tuple(size for size in NEIGHBORS if size <= n_points) or (1,)


def partition_counts(given: int | None, n_points: int) -> list[int]:
    """Powers of four that leave at least 500 points a cell, or the number that was given."""
    if given is not None:
        return [min(given, n_points)]
    return [4**i for i in range(10) if i == 0 or n_points >= 500 * 4**i]


def best_choice(tried: list[Choice], tolerance: float = 0.002) -> Choice:
    """The best score; among partitions that come within `tolerance` of it, the most partitions.

    More partitions only make prediction faster, so they are taken when they cost next to nothing.
    """
    best = max(choice.score for choice in tried)
    good = [choice for choice in tried if choice.score >= best - tolerance]
    most = max(choice.n_partitions for choice in good)
    return max(
        (choice for choice in tried if choice.n_partitions == most),
        key=lambda choice: (choice.score, -choice.n_neighbors),
    )
