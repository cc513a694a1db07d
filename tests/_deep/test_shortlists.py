from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
import torch

from dxml._deep import DeepSettings
from dxml._deep.label_heads import FullHead, ShortHead
from dxml._deep.optimising import RowOptimiser
from dxml._deep.shortlists import Shortlists

SETTINGS = DeepSettings(width=6, random=30, hard=2, most_weight=1e9)


def test_a_shortlist_has_the_labels_and_the_hard_negatives() -> None:
    negatives = sp.csr_matrix(([True] * 3, [50, 51, 60], [0, 2, 2, 3]), (3, 100))
    lists = Shortlists(100, replace(SETTINGS, random=0), 0, negatives)
    lists.own = np.array([[70, 71], [72, 73], [74, 75]], dtype=np.int32)
    found = set()
    for step in range(10):
        drawn, weights = lists.draw(np.array([0, 1]), np.array([3, 9, 3]), step)
        assert drawn.tolist() == sorted(set(drawn.tolist()))
        assert {3, 9, 70, 71, 72, 73} <= set(drawn.tolist())
        assert (weights == 1).all()
        found |= set(drawn.tolist())
    assert found == {3, 9, 50, 51, 70, 71, 72, 73}


def test_random_labels_stand_for_those_not_drawn() -> None:
    lists = Shortlists(1000, SETTINGS, 0, None)
    drawn, weights = lists.draw(np.array([0]), np.array([3]), 0)
    assert weights[drawn == 3] == 1
    assert np.isclose(weights.sum(), 1000)
    again, _ = lists.draw(np.array([0]), np.array([3]), 0)
    other, _ = lists.draw(np.array([0]), np.array([3]), 1)
    assert drawn.tolist() == again.tolist() != other.tolist()
    capped = Shortlists(1000, replace(SETTINGS, most_weight=5.0), 0, None)
    assert capped.draw(np.array([0]), np.array([3]), 0)[1].max() == 5


def test_the_mean_loss_over_shortlists_is_the_loss_over_all_labels() -> None:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(200, 6, generator=generator)
    bias = torch.randn(200, generator=generator) - 2
    hidden = torch.randn(4, 6, generator=generator)
    rows, columns = torch.tensor([0, 1, 1, 3]), torch.tensor([5, 9, 12, 5])
    full = FullHead(weight.clone(), bias.clone(), SETTINGS)
    exact = float(full.loss(hidden, rows, columns, 4).detach())
    short = ShortHead(weight, bias, SETTINGS, Shortlists(200, SETTINGS, 0, None))
    losses = []
    for step in range(400):
        short.begin(np.arange(4), columns.numpy(), step)
        losses.append(float(short.loss(hidden, rows, columns, 4).detach()))
    error = np.std(losses) / len(losses) ** 0.5
    assert abs(np.mean(losses) - exact) < 4 * error
    assert 4 * error < 0.1 * exact


def test_a_shortlist_of_all_labels_has_the_slopes_of_all_labels() -> None:
    generator = torch.Generator().manual_seed(0)
    weight, bias = torch.randn(20, 6, generator=generator), torch.zeros(20)
    hidden = torch.randn(4, 6, generator=generator)
    rows, columns = torch.tensor([0, 1, 1]), torch.tensor([5, 9, 12])
    full = FullHead(weight.clone(), bias.clone(), SETTINGS)
    short = ShortHead(
        weight, bias, SETTINGS, Shortlists(20, replace(SETTINGS, random=999), 0, None)
    )
    short.begin(np.arange(4), columns.numpy(), 0)
    slopes = []
    for head in (full, short):
        here = hidden.clone().requires_grad_()
        head.loss(here, rows, columns, 4).backward()
        slopes.append(here.grad)
    assert slopes[0] is not None and slopes[1] is not None
    assert torch.allclose(slopes[0], slopes[1], atol=1e-5)


def test_rows_move_by_the_rate_whatever_the_size_of_their_slopes() -> None:
    weight, bias = torch.zeros(5, 4), torch.zeros(5)
    optimiser = RowOptimiser(weight, bias)
    slope = torch.tensor([[2.0, -2, 2, -2], [1e-3, 1e-3, 1e-3, 1e-3]])
    optimiser.step(torch.tensor([1, 3]), slope, torch.tensor([5.0, -5.0]), 0.1)
    assert torch.allclose(weight[1], torch.tensor([-0.1, 0.1, -0.1, 0.1]), atol=1e-5)
    assert torch.allclose(weight[3], torch.full((4,), -0.1), atol=1e-5)
    assert torch.allclose(bias, torch.tensor([0, -0.1, 0, 0.1, 0]), atol=1e-5)
    assert not weight[[0, 2, 4]].any()
    optimiser.step(torch.tensor([1]), slope[:1] * 3, torch.tensor([0.0]), 0.1)
    # the mean square of 2 and 6 is 20
    moved = 0.1 + 0.1 * 6 / 20**0.5
    assert torch.allclose(weight[1].abs(), torch.full((4,), moved), atol=1e-5)
