"""Heads in training: one logit for every label, with a loss over all of them or over shortlists.

Both start at zero. A step is ``begin`` with a batch, ``loss`` for each piece of it, ``finish``.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from dxml._deep.optimising import RowOptimiser, adamw, load_state, slopes_of, state_of
from dxml._deep.settings import DeepSettings
from dxml._deep.shortlists import Shortlists
from dxml._learners.logistic_loss import chunked_logistic

__all__ = ["FullHead", "LabelHead", "ShortHead"]

Arrays = dict[str, npt.NDArray[Any]]


class LabelHead(Protocol):
    """What training asks of a head."""

    weight: Tensor
    bias: Tensor

    def begin(self, texts: npt.NDArray[np.int64], labels: npt.NDArray[Any], step: int) -> None:
        """A batch begins: its texts, all labels that they have, the number of the step."""

    def loss(self, hidden: Tensor, rows: Tensor, columns: Tensor, whole: int) -> Tensor:
        """Of a piece of the batch, so that the pieces of `whole` texts add up to their mean.

        Parameters
        ----------
        hidden : (n, width)
        rows, columns : int64 (n_pairs,)
            Which text of the piece has which label.
        """
        ...

    def slopes(self) -> list[Tensor]:
        """Of all pieces so far, to be changed in place; zero where there was no piece."""
        ...

    def clear(self) -> None:
        """Forget the slopes of pieces that are to be computed again."""

    def finish(self, rate: float) -> None:
        """Update the weights by the slopes of all pieces."""

    def state(self) -> Arrays:
        """All that a run needs to go on from here."""
        ...

    def load(self, arrays: Arrays) -> None:
        """The inverse of `state`."""


class FullHead:
    """Logistic loss of all labels, AdamW."""

    def __init__(self, weight: Tensor, bias: Tensor, settings: DeepSettings) -> None:
        self.weight, self.bias = weight.requires_grad_(), bias.requires_grad_()
        self._chunk = settings.chunk
        self._optimiser = adamw([weight, bias], 0.0)

    def begin(self, texts: npt.NDArray[np.int64], labels: npt.NDArray[Any], step: int) -> None:
        """Nothing to do: every label is in the loss."""

    def loss(self, hidden: Tensor, rows: Tensor, columns: Tensor, whole: int) -> Tensor:
        """As `LabelHead.loss`."""
        mean = chunked_logistic(
            hidden[None], self.weight[None], self.bias[None], rows, columns, self._chunk
        )
        return mean * (len(hidden) / whole)

    def slopes(self) -> list[Tensor]:
        """Of weights and biases."""
        return slopes_of([self.weight, self.bias])

    def clear(self) -> None:
        """Forget the slopes."""
        self._optimiser.zero_grad()

    def finish(self, rate: float) -> None:
        """A step of AdamW."""
        self._optimiser.param_groups[0]["lr"] = rate
        self._optimiser.step()
        self._optimiser.zero_grad()

    def state(self) -> Arrays:
        """Weights and the optimiser's moments."""
        weights = {"weight": self.weight, "bias": self.bias}
        arrays = {name: value.detach().cpu().numpy() for name, value in weights.items()}
        return arrays | state_of(self._optimiser, "adam")

    @torch.no_grad()
    def load(self, arrays: Arrays) -> None:
        """The inverse of `state`."""
        self.weight.copy_(torch.from_numpy(np.array(arrays["weight"])))
        self.bias.copy_(torch.from_numpy(np.array(arrays["bias"])))
        load_state(self._optimiser, arrays, "adam")


class ShortHead:
    """Logistic loss of a batch's shortlist; only the weights of those labels are touched."""

    def __init__(
        self, weight: Tensor, bias: Tensor, settings: DeepSettings, shortlists: Shortlists
    ) -> None:
        self.weight, self.bias, self.shortlists = weight, bias, shortlists
        self._optimiser = RowOptimiser(weight, bias)
        self._place = torch.zeros(len(weight), dtype=torch.int64, device=weight.device)

    def begin(self, texts: npt.NDArray[np.int64], labels: npt.NDArray[Any], step: int) -> None:
        """Draw the shortlist, and copy the weights of its labels to where slopes are made."""
        drawn, stands_for = self.shortlists.draw(texts, labels, step)
        device = self.weight.device
        self._labels = torch.from_numpy(drawn).to(device, non_blocking=True)
        self._stands_for = torch.from_numpy(stands_for).to(device, non_blocking=True)
        self._place[self._labels] = torch.arange(len(drawn), device=device)
        self._some = self.weight[self._labels].requires_grad_()
        self._some_bias = self.bias[self._labels].requires_grad_()

    def loss(self, hidden: Tensor, rows: Tensor, columns: Tensor, whole: int) -> Tensor:
        """As `LabelHead.loss`; a random label counts for those that were not drawn."""
        logits = F.linear(hidden, self._some).float() + self._some_bias  # (n, n_drawn)
        loss = (F.softplus(logits) * self._stands_for).sum()
        own = rows * logits.shape[1] + self._place[columns]
        return (loss - logits.flatten()[own].sum()) / whole

    def slopes(self) -> list[Tensor]:
        """Of the shortlist's weights and biases."""
        return slopes_of([self._some, self._some_bias])

    def clear(self) -> None:
        """Forget the slopes."""
        self._some.grad = self._some_bias.grad = None

    def finish(self, rate: float) -> None:
        """A step for the shortlist's rows."""
        slope, bias_slope = self._some.grad, self._some_bias.grad
        if slope is not None and bias_slope is not None:
            self._optimiser.step(self._labels, slope, bias_slope, rate)
        self.clear()

    def state(self) -> Arrays:
        """Weights, the optimiser's moments and the model's own hard negatives."""
        tensors = {"weight": self.weight, "bias": self.bias, **self._optimiser.tensors()}
        arrays = {name: value.detach().cpu().numpy() for name, value in tensors.items()}
        return arrays | {"own": self.shortlists.own}

    def load(self, arrays: Arrays) -> None:
        """The inverse of `state`."""
        tensors = {"weight": self.weight, "bias": self.bias, **self._optimiser.tensors()}
        for name, value in tensors.items():
            value.copy_(torch.from_numpy(np.array(arrays[name])))
        self.shortlists.own = np.array(arrays["own"])
