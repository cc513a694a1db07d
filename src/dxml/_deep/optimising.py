"""Optimisers: AdamW as arrays that can be stored, and steps for few rows of a large matrix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["RowOptimiser", "adamw", "load_state", "slopes_of", "state_of"]

Arrays = dict[str, npt.NDArray[Any]]
MEMORY = 0.01  # a step's least share in the mean square of a row's slopes
LEAST = 1e-8


def adamw(groups: Iterable[Any], weight_decay: float) -> torch.optim.AdamW:
    """One launch a step on a GPU; learning rates are set before each step."""
    return torch.optim.AdamW(groups, lr=0.0, weight_decay=weight_decay, fused=True)


def slopes_of(weights: Iterable[Tensor]) -> list[Tensor]:
    """The slopes of each, to be changed in place; zero where nothing was computed."""
    found = []
    for weight in weights:
        if weight.grad is None:
            weight.grad = torch.zeros_like(weight)
        found.append(weight.grad)
    return found


def state_of(optimiser: torch.optim.Optimizer, name: str) -> Arrays:
    """What an optimiser remembers, by name, number of the parameter and moment."""
    return {
        f"{name}.{number}.{key}": value.detach().cpu().numpy()
        for number, moments in optimiser.state_dict()["state"].items()
        for key, value in moments.items()
    }


def load_state(optimiser: torch.optim.Optimizer, arrays: Arrays, name: str) -> None:
    """The inverse of `state_of`."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, array in arrays.items():
        if key.startswith(f"{name}."):
            number, moment = key.removeprefix(f"{name}.").split(".")
            value = torch.from_numpy(np.array(array))
            value = value.reshape(()) if moment == "step" else value  # files have no 0-d arrays
            state.setdefault(int(number), {})[moment] = value
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": state, "param_groups": groups})


class RowOptimiser:
    """Steps for the rows of a matrix that had slopes, each by the mean square of its own.

    It is Adam's second moment kept as one number a row, without a first moment: the state of a
    million rows is two million numbers, and a row that is not touched costs nothing.
    """

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self._weight, self._bias = weight, bias
        self._squares = torch.zeros(len(weight), 2, device=weight.device)
        self._counts = torch.zeros(len(weight), device=weight.device)

    @torch.no_grad()
    def step(self, rows: Tensor, slope: Tensor, bias_slope: Tensor, rate: float) -> None:
        """One step for different rows; slopes are (n_rows, width) and (n_rows,)."""
        self._counts[rows] += 1
        share = (1 / self._counts[rows]).clamp(min=MEMORY)[:, None]
        now = torch.stack([slope.square().mean(dim=1), bias_slope.square()], dim=1)
        squares = torch.lerp(self._squares[rows], now, share)
        self._squares[rows] = squares
        scale = rate / (squares.sqrt() + LEAST)
        self._weight.index_add_(0, rows, slope * -scale[:, :1])
        self._bias.index_add_(0, rows, bias_slope * -scale[:, 1])

    def tensors(self) -> dict[str, Tensor]:
        """The state, to be stored and copied back into."""
        return {"squares": self._squares, "counts": self._counts}
