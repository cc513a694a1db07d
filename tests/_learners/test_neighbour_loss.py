"""The loss of the vote of other points: worked out by hand, and what it does to a space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._learners.neighbour_loss import PRIOR, SHARPNESS, NeighbourLoss
from dxml._learners.wide_training import WideSettings, fit_wide
from dxml.data import make_planted

CPU = torch.device("cpu")


def by_loops(
    points: list[int], own: np.ndarray, voters: list[int], theirs: np.ndarray, Y: np.ndarray
) -> float:
    """The docstring of the module, point by point; hidden units are (points, units)."""
    total = 0.0
    for i, point in enumerate(points):
        weights, shares = [], np.zeros(Y.shape[1])
        for j, voter in enumerate(voters):
            cosine = own[i] @ theirs[j] / np.linalg.norm(own[i]) / np.linalg.norm(theirs[j])
            weights.append(0.0 if voter == point else np.exp(SHARPNESS * cosine))
        for weight, voter in zip(weights, voters, strict=True):
            shares += weight / sum(weights) * Y[voter]
        shares = (1 - PRIOR) * shares + PRIOR * Y.mean(axis=0)
        shares = np.clip(shares, 1e-6, 1 - 1e-6)
        total -= np.log(np.where(Y[point], shares, 1 - shares)).sum()
    return total / len(points)


def test_the_loss_is_that_of_the_votes() -> None:
    rng = np.random.default_rng(0)
    Y = rng.random((9, 4)) < 0.4
    points, voters = [3, 0, 7], [1, 3, 8, 0, 5]
    own, theirs = (rng.random((2, size, 6)).astype(np.float32) for size in (3, 5))
    loss = NeighbourLoss(sp.csr_matrix(Y), 5, CPU)(
        torch.tensor(points), torch.from_numpy(own), torch.tensor(voters), torch.from_numpy(theirs)
    )
    side_by_side = [np.concatenate(list(hidden), axis=1) for hidden in (own, theirs)]
    wanted = by_loops(points, side_by_side[0], voters, side_by_side[1], Y)
    assert float(loss) == pytest.approx(wanted, rel=1e-5)


def test_nobody_votes_for_itself() -> None:
    """Two points of opposite labels: each has the other's vote alone."""
    Y = sp.csr_matrix(np.array([[True, False], [False, True]]))
    rows, hidden = torch.arange(2), torch.eye(2)[None]
    loss = NeighbourLoss(Y, 2, CPU)(rows, hidden, rows, hidden)
    assert float(loss) == pytest.approx(-2 * np.log(PRIOR / 2), rel=1e-3)


def test_points_without_any_unit_do_no_harm() -> None:
    Y = sp.csr_matrix(np.eye(3, dtype=bool))
    hidden = torch.zeros(1, 3, 4, requires_grad=True)
    loss = NeighbourLoss(Y, 3, CPU)(torch.arange(3), hidden, torch.arange(3), hidden)
    loss.backward()
    assert torch.isfinite(loss) and hidden.grad is not None and torch.isfinite(hidden.grad).all()


def test_voters_are_drawn_anew_where_there_are_more() -> None:
    Y = sp.csr_matrix(np.eye(50, dtype=bool))
    torch.manual_seed(0)
    some = NeighbourLoss(Y, 10, CPU)
    first, second = some.draw(), some.draw()
    assert len(first) == len(second) == 10 and not torch.equal(first, second)
    assert torch.equal(NeighbourLoss(Y, 60, CPU).draw(), torch.arange(50))


@pytest.mark.parametrize("learners", [1, 2])
def test_training_lowers_it(learners: int) -> None:
    """In layers that were trained with votes, known points say one another's labels better."""
    data = make_planted(400, 60, 12, noise=0.3, random_state=0)
    dense = data.X @ np.random.default_rng(0).normal(size=(60, 20)).astype(np.float32)
    X, everyone = sp.csr_matrix(dense / dense.std(axis=0)), list(range(400))
    settings = WideSettings(
        width=64,
        learners=learners,
        epochs=30,
        batch_size=64,
        learning_rate=5e-3,
        feature_dropout=0.0,
        hidden_dropout=0.0,
    )
    found = []
    for voters in (0, 300):
        head, _ = fit_wide(X, data.Y, replace(settings, voters=voters), seed=0, device=CPU)
        hidden = head.hidden_tensor(X, CPU).numpy()
        found.append(by_loops(everyone, hidden, everyone, hidden, data.Y.toarray()))
    assert found[1] < 0.9 * found[0], found
