"""The training loss between a point's embedding f_x and its target f_y, and three alternatives.

The paper trains with smooth-ℓ1 (its equations 1 to 3), and mentions the contrastive, triplet and
squared losses as alternatives that it does not use. All four are here. Each takes a batch of
embeddings and a batch of targets, both of shape (B, dim), and returns the mean over the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["LOSSES", "LossName"]

LossName = Literal["smooth_l1", "squared", "contrastive", "triplet"]


def smooth_l1(points: Tensor, targets: Tensor, margin: float) -> Tensor:
    """Equation 2, summed over the coordinates as in equation 1."""
    from torch.nn import functional as F

    return F.smooth_l1_loss(points, targets, reduction="none").sum(dim=1).mean()


def squared(points: Tensor, targets: Tensor, margin: float) -> Tensor:
    """½‖f_x − f_y‖²."""
    return 0.5 * (points - targets).square().sum(dim=1).mean()


def contrastive(points: Tensor, targets: Tensor, margin: float) -> Tensor:
    """Pull a point to its own target, push it at least `margin` away from another point's."""
    own, other, differs = _distances(points, targets)
    push = (margin - other).clamp_min(0).square() * differs
    return 0.5 * (own.square() + push).mean()


def triplet(points: Tensor, targets: Tensor, margin: float) -> Tensor:
    """A point's own target must be nearer than another point's, by `margin`."""
    own, other, differs = _distances(points, targets)
    return ((own.square() - other.square() + margin).clamp_min(0) * differs).mean()


def _distances(points: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distances to the own and to another point's target, and whether the two targets differ.

    The other point is the next one of the batch, a random one since batches are shuffled. Targets
    are scaled to length 1, as the embeddings are.
    """
    from torch.nn import functional as F

    targets = F.normalize(targets)
    strangers = targets.roll(1, dims=0)
    own = (points - targets).square().sum(dim=1).add(1e-12).sqrt()
    other = (points - strangers).square().sum(dim=1).add(1e-12).sqrt()
    differs = ((targets - strangers).abs().sum(dim=1) > 1e-6).to(points.dtype)
    return own, other, differs


LOSSES: dict[str, Callable[[Tensor, Tensor, float], Tensor]] = {
    "smooth_l1": smooth_l1,
    "squared": squared,
    "contrastive": contrastive,
    "triplet": triplet,
}
