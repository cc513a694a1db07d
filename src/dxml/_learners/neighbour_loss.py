"""How well the nearest of other points say a point's labels: a loss for the space of neighbours.

Points are compared by the cosine of their hidden units. The other points share a point's vote by a
softmax of a multiple of the cosine, and a label's share of the vote is its probability:
neighbourhood components analysis (Goldberger et al., 2004) for several labels a point. A point
never votes for itself, so that a layer cannot lower this loss by knowing points by heart.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

__all__ = ["NeighbourLoss"]

SHARPNESS = 32.0  # of the cosine: most of the vote is that of 100 points, as many as vote later
PRIOR = 1e-3  # of a share that is the label's frequency, so that no label is impossible
TINY = 1e-6
FAR = -1e9


class NeighbourLoss:
    """The loss of a batch, and what stays the same from batch to batch.

    Parameters
    ----------
    Y : csr_matrix of shape (n_samples, n_labels), bool
        Held dense on the device.
    voters : int
        Points that a batch is compared with, drawn anew each time; all if there are no more.
    """

    def __init__(self, Y: sp.csr_matrix, voters: int, device: torch.device) -> None:
        kind = torch.float32 if device.type == "cpu" else torch.bfloat16
        self._labels = torch.from_numpy(Y.toarray().astype(np.float32)).to(device, kind)
        self._frequency = self._labels.mean(dim=0, dtype=torch.float32)
        self._everyone = torch.arange(Y.shape[0], device=device)
        self._voters = min(voters, Y.shape[0])

    def draw(self) -> Tensor:
        """The points that vote this time."""
        n = len(self._everyone)
        if self._voters == n:
            return self._everyone
        return torch.randint(n, (self._voters,), device=self._everyone.device)

    def __call__(self, points: Tensor, own: Tensor, voters: Tensor, theirs: Tensor) -> Tensor:
        """The logistic loss of the shares of all labels, a mean over the points.

        Parameters
        ----------
        points, voters : int64 (B,) and (V,)
            Row numbers.
        own, theirs : (learners, B, width) and (learners, V, width)
            Their hidden units; those of all learners make one vector.
        """
        left, right = (hidden.transpose(0, 1).flatten(1) for hidden in (own, theirs))
        dots = (left @ right.T).float()
        cosines = dots / (_lengths(left)[:, None] * _lengths(right)[None, :])
        near = (SHARPNESS * cosines).masked_fill(points[:, None] == voters[None, :], FAR)
        votes = torch.softmax(near, dim=1).to(self._labels.dtype)
        shares = (votes @ self._labels[voters]).float()
        shares = ((1 - PRIOR) * shares + PRIOR * self._frequency).clamp(TINY, 1 - TINY)
        truth = self._labels[points].float()
        right_ones = truth * shares.log() + (1 - truth) * (-shares).log1p()
        return -right_ones.sum() / len(points)


def _lengths(rows: Tensor) -> Tensor:
    return torch.linalg.vector_norm(rows, dim=1, dtype=torch.float32).clamp(min=TINY)
