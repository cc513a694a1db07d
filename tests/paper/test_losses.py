"""The losses, by hand."""

from __future__ import annotations

import pytest
import torch

from dxml.paper._losses import LOSSES


def test_losses_by_hand() -> None:
    points = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    targets = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
    # Differences (0, -2) and (0, 0): smooth-l1 gives 1.5 + 0, the square 2 + 0; halved by the mean.
    assert LOSSES["smooth_l1"](points, targets, 0.5).item() == pytest.approx(0.75)
    assert LOSSES["squared"](points, targets, 0.5).item() == pytest.approx(1.0)
    right = torch.tensor([[3.0, 0.0], [0.0, 2.0]])  # directions of the points: own distance 0
    assert LOSSES["triplet"](points, right, 0.5).item() == pytest.approx(0, abs=1e-5)
    assert LOSSES["contrastive"](points, right, 2.0).item() == pytest.approx(
        0.5 * (2 - 2**0.5) ** 2, abs=1e-4
    )
    wrong = right.flip(0)  # own distance √2, other 0
    assert LOSSES["triplet"](points, wrong, 0.5).item() == pytest.approx(2.5, abs=1e-4)
    same = torch.ones(2, 2)  # two points with one target are no pair to push apart
    assert LOSSES["triplet"](points, same, 0.5).item() == 0
