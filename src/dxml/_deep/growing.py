"""Labels and texts that come after training, for a head whose encoder stays as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["Levels", "along_means", "levels_of", "trained_rows"]

Floats = npt.NDArray[np.float32]
HOLD = 0.01  # cost of a row that moves so far that a logit of its own changes by one
ROUNDS = 50  # of the solver at most


@dataclass(frozen=True, eq=False)
class Levels:
    """How large logits are.

    Attributes
    ----------
    middle : float32 (width,)
        The mean hidden vector.
    low, high : float
        The mean logit of all labels, and that of the labels that texts carry.
    """

    middle: Floats
    low: float
    high: float


def levels_of(hidden: Floats, Y: sp.csr_matrix, weight: npt.NDArray[Any], bias: Floats) -> Levels:
    """From some texts and their labels."""
    middle = hidden.mean(axis=0)
    low = float(middle @ weight.mean(axis=0, dtype=np.float32) + bias.mean())
    pairs = Y.tocoo()
    own = np.einsum("ij,ij->i", hidden[pairs.row], weight[pairs.col].astype(np.float32))
    high = float((own + bias[pairs.col]).mean()) if pairs.nnz else low
    return Levels(middle, low, high)


def along_means(hidden: Floats, Y: sp.csr_matrix, levels: Levels) -> tuple[Floats, Floats]:
    """Rows and biases of new labels, along the way from the mean of all texts to that of theirs.

    A label's logit is `levels.low` at the mean of all texts and `levels.high` at its own mean.

    Parameters
    ----------
    hidden : (n, width)
    Y : csr_matrix of shape (n, n_new_labels)
    """
    carriers = sp.csr_matrix(Y.T)
    weight = np.zeros((Y.shape[1], hidden.shape[1]), dtype=np.float32)
    bias = np.full(Y.shape[1], levels.low, dtype=np.float32)
    for label in np.flatnonzero(np.diff(carriers.indptr)):
        texts = carriers.indices[carriers.indptr[label] : carriers.indptr[label + 1]]
        away = hidden[texts].mean(axis=0) - levels.middle
        rise = max(levels.high - levels.low, 0.0)
        weight[label] = away * (rise / max(float(away @ away), 1e-12))
        bias[label] -= weight[label] @ levels.middle
    return weight, bias


def trained_rows(
    hidden: Floats, Y: sp.csr_matrix, weight: npt.NDArray[Any], bias: Floats
) -> tuple[Floats, Floats]:
    """Rows and biases of a logistic regression that is held near where they were.

    Parameters
    ----------
    hidden : (n, width)
    Y : csr_matrix of shape (n, n_labels)
        Of the labels that the rows are for.
    """
    texts = torch.from_numpy(hidden)
    targets = torch.from_numpy(Y.toarray().astype(np.float32))
    first = torch.from_numpy(np.asarray(weight, dtype=np.float32))
    rows = first.clone().requires_grad_()
    biases = torch.from_numpy(np.array(bias)).requires_grad_()
    hold = HOLD * texts.square().sum(dim=1).mean()
    solver = torch.optim.LBFGS([rows, biases], max_iter=ROUNDS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        solver.zero_grad()
        logits = torch.addmm(biases, texts, rows.T)
        cost = F.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
        cost = cost + hold * (rows - first).square().sum()
        cost.backward()
        return cost

    solver.step(loss)
    return rows.detach().numpy(), biases.detach().numpy()
