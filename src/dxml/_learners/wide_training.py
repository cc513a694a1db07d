"""Train a wide ReLU layer and its logistic head together, with AdamW.

Several such layers with heads of their own can be trained in one pass. Each has a loss and dropout
of its own, and the mean of their logits is a wide layer again: theirs side by side.

Where neighbours are searched in the layer's space, how well they say a point's labels is a second
loss (`dxml._learners.neighbour_loss`): a head alone tells labels apart, and leaves it to chance
which points are near.

The logits of a batch for all labels never exist at once (`dxml._learners.logistic_loss`). On a GPU
matrix products are made in bfloat16 and weights kept in float32; a CPU computes in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional as F

from dxml._core.cuda_graph import capture
from dxml._core.stages import remembered
from dxml._core.threads import SMALL_STEP, threads
from dxml._learners.logistic_loss import chunked_logistic
from dxml._learners.neighbour_loss import NeighbourLoss
from dxml._learners.wide_layer import ROWS, Weights, WideHead
from dxml.progress import SILENT, Progress

__all__ = ["WideSettings", "fit_wide"]

PARTS = ("inner", "inner_bias", "outer", "outer_bias")  # of a head


@dataclass(frozen=True)
class WideSettings:
    """Everything that decides how a wide head is trained.

    Attributes
    ----------
    width : int
        Of all learners together; a multiple of their number.
    learners : int
        Layers with heads of their own, whose logits are averaged.
    spread : float
        Standard deviation of a unit's initial value on a point of average length, about.
    chunk : int
        Labels with logits at a time.
    voters : int
        Points whose votes for a batch are a second loss; 0: there is none.
    """

    width: int = 4096
    learners: int = 1
    epochs: int = 20
    batch_size: int = 512
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    feature_dropout: float = 0.3
    hidden_dropout: float = 0.5
    spread: float = 0.3
    chunk: int = 16384
    voters: int = 0


def fit_wide(
    X: sp.csr_matrix,
    Y: sp.csr_matrix,
    settings: WideSettings,
    *,
    seed: int,
    device: torch.device,
    start: WideHead | None = None,
    stage: str = "wide head",
    progress: Progress = SILENT,
) -> tuple[WideHead, list[float]]:
    """Minimise the logistic loss over both layers, and that of votes, with AdamW.

    Parameters
    ----------
    X : csr_matrix of shape (n_samples, n_features), float32
        Scaled. On a GPU it is made dense there, in bfloat16.
    Y : csr_matrix of shape (n_samples, n_labels), bool
    seed : int
        Decides the initial weights, the order of the points and what drops.
    start : WideHead, optional
        Weights to go on from, of the settings' width and with a row for every label.
    stage : str
        What the work is called in progress reports.

    Returns
    -------
    WideHead, and the mean training loss of each epoch.
    """
    inputs: dict[str, Any] = {
        "X": X,
        "Y": Y,
        "settings": settings,
        "seed": seed,
        "device": str(device),
    }
    for name in PARTS:
        inputs[name] = None if start is None else getattr(start, name)

    def compute() -> dict[str, npt.NDArray[Any]]:
        head, history = _fit(X, Y, settings, seed, device, start, stage, progress)
        return {**{name: getattr(head, name) for name in PARTS}, "history": np.array(history)}

    found = remembered("wide", inputs, compute)
    return WideHead(*(found[name] for name in PARTS)), found["history"].tolist()


def _fit(
    X: sp.csr_matrix,
    Y: sp.csr_matrix,
    settings: WideSettings,
    seed: int,
    device: torch.device,
    start: WideHead | None,
    stage: str,
    progress: Progress,
) -> tuple[WideHead, list[float]]:
    """`fit_wide`, computed."""
    n = X.shape[0]
    generator = torch.Generator(device=device).manual_seed(seed)
    if start is None:
        weights = _initial_weights(X, Y, settings, generator)
    else:
        weights = _weights_of(start, settings.learners, device)
    bounds = _batch_bounds(n, settings.batch_size, even=device.type == "cpu")
    n_steps = settings.epochs * (len(bounds) - 1)
    work = settings.batch_size * settings.width * max(X.shape[1], Y.shape[1])
    labels = _Positives(Y, device)
    history: list[float] = []
    with (
        _own_chance(seed, device),
        threads(1 if device.type == "cpu" and work < SMALL_STEP else None),
        progress.stage(stage, settings.epochs * bounds[-1], "points") as report,
    ):
        voting = NeighbourLoss(Y, settings.voters, device) if settings.voters else None
        steps = _Steps(_features_on(X, device), weights, settings, voting)
        if device.type == "cuda":
            size = bounds[1]
            steps.capture(size, int(np.sort(np.diff(Y.indptr))[-size:].sum()))
        for epoch in range(settings.epochs):
            order = torch.randperm(n, generator=generator, device=device)
            for b, batch in enumerate(labels.batches(order[: bounds[-1]], bounds)):
                done = (epoch * (len(bounds) - 1) + b) / n_steps
                steps.take(*batch, _rate(done, settings.learning_rate))
                report.advance(len(batch[0]))
            history.append(steps.mean_loss(bounds[-1]))
            report.note(f"loss {history[-1]:.4f}")
    return _averaged(weights), history


def _averaged(weights: Weights) -> WideHead:
    """The learners side by side, their heads divided by their number."""
    inner, inner_bias, outer, outer_bias = (weight.detach() for weight in weights)
    learners, n_labels, _ = outer.shape
    by_feature = inner.flatten(0, 1).T.contiguous()
    side_by_side = outer.transpose(0, 1).reshape(n_labels, -1) / learners
    return WideHead(
        by_feature.cpu().numpy().T,
        inner_bias.flatten().cpu().numpy(),
        side_by_side.cpu().numpy(),
        outer_bias.mean(dim=0).cpu().numpy(),
    )


def _batch_bounds(n: int, size: int, even: bool) -> list[int]:
    """Where batches begin and end among the points of an epoch.

    Even ones take every point; of others all have one size, and a rest is left for another epoch.
    """
    if even or n <= size:
        count = -(-n // size)
        return [int(bound) for bound in np.linspace(0, n, count + 1).astype(np.int64)]
    return list(range(0, n + 1, size))


def _rate(done: float, peak: float) -> float:
    """The learning rate when a share of the steps is done: up for a tenth, then down to none."""
    return peak * (0.04 + 0.96 * done / 0.1 if done < 0.1 else (1 - done) / 0.9)


class _Steps:
    """Steps of AdamW; on a GPU one is captured and then replayed, as starting it costs the most."""

    def __init__(
        self,
        features: Callable[[Tensor], Tensor],
        weights: Weights,
        settings: WideSettings,
        voting: NeighbourLoss | None,
    ) -> None:
        self._features, self._weights, self._settings = features, weights, settings
        self._voting = voting
        device = weights[0].device
        self._rate = torch.zeros((), device=device)
        self._total = torch.zeros((), device=device)
        self._optimiser = torch.optim.AdamW(
            weights,
            lr=self._rate if device.type == "cuda" else 0.0,
            weight_decay=settings.weight_decay,
            fused=True,
            capturable=device.type == "cuda",
        )
        self._graph: torch.cuda.CUDAGraph | None = None

    def capture(self, size: int, most_pairs: int) -> None:
        """Record a step on batches of one size; at a rate of 0 the trial steps change no weight."""
        device = self._weights[0].device
        self._points = torch.zeros(size, dtype=torch.int64, device=device)
        self._rows = torch.zeros(max(most_pairs, 1), dtype=torch.int64, device=device)
        self._columns = torch.full_like(self._rows, -1)
        self._graph = capture(
            lambda: self._run(self._points, self._rows, self._columns), self._forget_steps
        )

    def _forget_steps(self) -> None:
        for state in self._optimiser.state.values():
            for tensor in state.values():
                tensor.zero_()
        self._total.zero_()

    def take(self, points: Tensor, rows: Tensor, columns: Tensor, rate: float) -> None:
        """One step on these points and the (row, label) pairs of their labels."""
        if self._graph is None:
            self._optimiser.param_groups[0]["lr"] = rate
            self._run(points, rows, columns)
            return
        self._rate.fill_(rate)
        self._points.copy_(points)
        self._rows[: len(rows)].copy_(rows)
        self._columns[: len(columns)].copy_(columns)
        self._columns[len(columns) :].fill_(-1)
        self._graph.replay()

    def _run(self, points: Tensor, rows: Tensor, columns: Tensor) -> None:
        settings, (inner, inner_bias, outer, outer_bias) = self._settings, self._weights
        hidden = _train_hidden(self._features(points), inner, inner_bias, settings)
        loss = chunked_logistic(hidden, outer, outer_bias, rows, columns, settings.chunk)
        if self._voting is not None:
            voters = self._voting.draw()
            theirs = _train_hidden(self._features(voters), inner, inner_bias, settings)
            votes = self._voting(points, hidden, voters, theirs)
            loss = loss + settings.learners * votes  # the other is a sum over learners
        self._optimiser.zero_grad()
        loss.backward()
        self._optimiser.step()
        self._total += loss.detach() * (len(points) / settings.learners)

    def mean_loss(self, n: int) -> float:
        """Of the steps since it was last asked for, over n points."""
        mean = float(self._total) / n
        self._total.zero_()
        return mean


def _initial_weights(
    X: sp.csr_matrix, Y: sp.csr_matrix, settings: WideSettings, generator: torch.Generator
) -> Weights:
    """inner (learners, width, d), inner_bias, outer (learners, n_labels, width), outer_bias.

    The last are the log-odds of the labels.
    """
    (n, d), n_labels, device = X.shape, Y.shape[1], generator.device
    learners, width = settings.learners, settings.width // settings.learners
    square = float(np.square(X.data, dtype=np.float64).sum()) / n or 1.0
    spread = settings.spread * (2 / square) ** 0.5
    share = (np.bincount(Y.indices, minlength=n_labels) + 0.5) / (n + 1)
    odds = np.clip(np.log(share / (1 - share)), -8, 0).astype(np.float32)
    inner = torch.empty(learners, width, d, device=device)
    inner.normal_(0, spread, generator=generator)
    outer = torch.empty(learners, n_labels, width, device=device)
    outer.normal_(0, 0.1 * width**-0.5, generator=generator)
    outer_bias = torch.from_numpy(odds).to(device).repeat(learners, 1)
    weights = inner, torch.zeros(learners, 1, width, device=device), outer, outer_bias
    for weight in weights:
        weight.requires_grad_()
    return weights


def _weights_of(head: WideHead, learners: int, device: torch.device) -> Weights:
    """The inverse of `_averaged`, but for the learners' biases, which are their mean."""
    inner, inner_bias, outer, bias = (
        torch.tensor(array, dtype=torch.float32, device=device)
        for array in (head.inner, head.inner_bias, head.outer, head.outer_bias)
    )
    apart = (outer * learners).unflatten(1, (learners, -1)).transpose(0, 1).contiguous()
    weights = (
        inner.unflatten(0, (learners, -1)).contiguous(),
        inner_bias.view(learners, 1, -1),
        apart,
        bias.repeat(learners, 1),
    )
    for weight in weights:
        weight.requires_grad_()
    return weights


def _features_on(X: sp.csr_matrix, device: torch.device) -> Callable[[Tensor], Tensor]:
    """A function from row numbers to dense rows: from the GPU's copy, or from the CSR rows."""
    if device.type == "cpu":
        return lambda rows: torch.from_numpy(X[rows.numpy()].toarray())
    dense = torch.zeros(X.shape, dtype=torch.bfloat16, device=device)
    for start in range(0, X.shape[0], ROWS):
        part = X[start : start + ROWS].tocoo()
        row, column, value = (
            torch.from_numpy(array).to(device) for array in (part.row, part.col, part.data)
        )
        dense[row.long() + start, column.long()] = value.to(torch.bfloat16)
    return lambda rows: dense[rows]


class _Positives:
    """The labels of the points, as index pairs on the device."""

    def __init__(self, Y: sp.csr_matrix, device: torch.device) -> None:
        self._starts = torch.from_numpy(Y.indptr.astype(np.int64)).to(device)
        self._labels = torch.from_numpy(Y.indices.astype(np.int64)).to(device)

    def batches(self, order: Tensor, bounds: list[int]) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """For each batch its points, and the (row in the batch, label) pairs of their labels.

        The pairs of the whole epoch are laid out at once: a GPU waits once an epoch.
        """
        starts = self._starts[order]
        lengths = self._starts[order + 1] - starts
        ends = lengths.cumsum(0)
        here = torch.arange(len(order), device=order.device)
        owner = here.repeat_interleave(lengths)
        place = torch.arange(len(owner), device=order.device) + (starts - ends + lengths)[owner]
        columns = self._labels[place]
        cuts = [0, *ends[torch.tensor(bounds[1:], device=order.device) - 1].tolist()]
        for b, (first, last) in enumerate(pairwise(bounds)):
            pairs = slice(cuts[b], cuts[b + 1])
            yield order[first:last], owner[pairs] - first, columns[pairs]


@contextmanager
def _own_chance(seed: int, device: torch.device) -> Iterator[None]:
    """Inside, what drops is decided by `seed`; torch's own generators are left as they were."""
    gpus = [torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=gpus):
        torch.manual_seed(seed)
        yield


def _train_hidden(features: Tensor, inner: Tensor, bias: Tensor, settings: WideSettings) -> Tensor:
    """The hidden layers (learners, B, width) with dropout before and after, in the features' type.

    What drops before is another for each learner.
    """
    features = F.dropout(features.expand(len(inner), -1, -1), settings.feature_dropout)
    inner, bias = inner.to(features.dtype), bias.to(features.dtype)
    return F.dropout(torch.baddbmm(bias, features, inner.mT).relu_(), settings.hidden_dropout)
