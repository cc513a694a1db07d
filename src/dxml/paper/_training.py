"""fit_encoder: trains f_x to targets f_y, Algorithm 1 line 4 of the paper.

Where the first layer is large, its sparse updates are made row by row (`dxml.paper._input_layer`).
With up to `DENSE_FEATURES` features a step is small on a GPU, and launching its dozens of kernels
takes longer than running them. The step is therefore captured once as a CUDA graph and replayed
(`_DenseSteps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dxml._core.cuda_graph import capture
from dxml._core.stages import remembered
from dxml._core.threads import SMALL_STEP, threads
from dxml.paper._encoder import Activation, FeatureEncoder
from dxml.paper._input_layer import CpuInputLayer, GpuInputLayer, InputLayer
from dxml.paper._losses import LOSSES, LossName
from dxml.progress import SILENT, Progress

if TYPE_CHECKING:
    from dxml.paper._input_layer_gpu import KernelInputLayer

__all__ = ["DENSE_FEATURES", "EncoderSettings", "fit_encoder"]

DENSE_FEATURES = 16_384
"""Largest number of features for which batches are made dense on a GPU."""

WEIGHTS = ("w1", "b1", "w2", "b2")  # of an encoder
Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EncoderSettings:
    """The hyper-parameters of the encoder and its training."""

    hidden: int = 256
    activation: Activation = "relu"
    dropout: float = 0.1
    loss: LossName = "smooth_l1"
    margin: float = 0.5
    epochs: int = 60
    batch_size: int = 64
    learning_rate: float = 0.015
    momentum: float = 0.9
    weight_decay: float = 5e-4
    init_scale: float = 0.01

    def optimiser(self, parameters: Iterator[nn.Parameter]) -> torch.optim.SGD:
        return torch.optim.SGD(
            parameters,
            lr=self.learning_rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
        )


class _Head(nn.Module):
    """The network after the first product: bias, activation, layer two, dropout, unit norm."""

    def __init__(self, dim: int, settings: EncoderSettings, generator: torch.Generator) -> None:
        super().__init__()
        hidden = settings.hidden
        second = torch.empty(hidden, dim).normal_(0, hidden**-0.5, generator=generator)
        self.b1 = nn.Parameter(torch.zeros(hidden))
        self.w2 = nn.Parameter(second)
        self.b2 = nn.Parameter(torch.zeros(dim))
        self.rectify = settings.activation == "relu"
        self.dropout = settings.dropout

    def forward(self, product: Tensor, noise: Tensor) -> Tensor:
        """Points (B, dim) from products (B, hidden); uniform noise (B, dim) for the dropout."""
        hidden = product + self.b1
        if self.rectify:
            hidden = F.relu(hidden)
        point = hidden @ self.w2 + self.b2
        if self.dropout > 0:
            point = point * (noise >= self.dropout) / (1 - self.dropout)
        return F.normalize(point)


class _Steps(Protocol):
    """One way to make the SGD steps of an epoch."""

    def epoch(self, batches: list[Rows]) -> Iterator[int]:
        """One SGD step per batch; yields the batch's size after each step."""

    def total_loss(self) -> float:
        """The sum of the points' losses since the last call."""

    def first_weights(self) -> Floats:
        """w1, up to date."""


class _HeadSteps:
    """The head, what it is to come near to, and one SGD step on a batch's products."""

    def __init__(
        self,
        head: _Head,
        goals: Tensor,
        settings: EncoderSettings,
        generator: torch.Generator,
        trained: Iterator[nn.Parameter],
    ) -> None:
        self._head, self._goals = head, goals
        self._settings, self._generator = settings, generator
        self._optimiser = settings.optimiser(trained)
        self._total = torch.zeros((), device=goals.device)

    def _descend(self, product: Tensor, step: _HeadInput | _StepInput) -> None:
        """From the products (B, hidden) of a batch."""
        goal = self._goals[step.goal_rows]
        loss_of = LOSSES[self._settings.loss]
        loss = loss_of(self._head(product, step.noise), goal, self._settings.margin)
        self._optimiser.zero_grad(set_to_none=False)
        if product.is_leaf and product.grad is not None:
            product.grad.zero_()
        loss.backward()
        self._optimiser.step()
        self._total += loss.detach() * len(goal)

    def total_loss(self) -> float:
        total = float(self._total)
        self._total.zero_()
        return total


class _SparseSteps(_HeadSteps):
    """The first layer is an `InputLayer`; torch's autograd does the rest."""

    def __init__(
        self,
        layer: InputLayer,
        head: _Head,
        goals: Tensor,
        settings: EncoderSettings,
        generator: torch.Generator,
    ) -> None:
        super().__init__(head, goals, settings, generator, head.parameters())
        self._layer = layer
        self._captured: dict[int, tuple[_HeadInput, torch.cuda.CUDAGraph | None]] = {}

    def epoch(self, batches: list[Rows]) -> Iterator[int]:
        order = torch.from_numpy(np.concatenate(batches)).to(self._goals.device)
        self._layer.start_epoch(batches)
        first = 0
        for rows in batches:
            step, graph = self._step_for(len(rows))
            step.goal_rows.copy_(order[first : first + len(rows)])
            step.noise.uniform_(generator=self._generator)
            if graph is None:
                with torch.no_grad():
                    step.product.copy_(self._layer.forward(rows))
                self._descend(step.product, step)
                assert step.product.grad is not None
                self._layer.step(step.product.grad)
            else:
                self._kernels.begin()
                graph.replay()
            first += len(rows)
            yield len(rows)

    def _step_for(self, size: int) -> tuple[_HeadInput, torch.cuda.CUDAGraph | None]:
        if size not in self._captured:
            step = _HeadInput(size, self._settings.hidden, self._goals)
            graph = None
            if hasattr(self._layer, "forward_into"):
                changed = [*self._head.parameters(), self._total]
                self._kernels.rest()
                graph = _captured(lambda: self._run_all(step), changed, self._optimiser)
            self._captured[size] = step, graph
        return self._captured[size]

    @property
    def _kernels(self) -> KernelInputLayer:
        return cast("KernelInputLayer", self._layer)

    def _run_all(self, step: _HeadInput) -> None:
        """A whole step of a batch that the layer knows: on a GPU it is recorded and replayed."""
        self._kernels.forward_into(step.product.detach())
        self._descend(step.product, step)
        assert step.product.grad is not None
        self._kernels.apply(step.product.grad)

    def first_weights(self) -> Floats:
        return self._layer.weights()


class _DenseSteps(_HeadSteps):
    """Batches are made dense on the device; on a GPU a step is one replay of a captured graph."""

    def __init__(
        self,
        X: sp.csr_matrix,
        first: Floats,
        head: _Head,
        goals: Tensor,
        settings: EncoderSettings,
        generator: torch.Generator,
    ) -> None:
        device = goals.device
        self._lengths = np.diff(X.indptr)
        self._indptr = torch.from_numpy(X.indptr.astype(np.int64)).to(device)
        self._indices = torch.from_numpy(X.indices.astype(np.int64)).to(device)
        self._data = torch.from_numpy(X.data).to(device)
        self._w1 = nn.Parameter(torch.from_numpy(first).to(device))
        trained = iter([self._w1, *head.parameters()])
        super().__init__(head, goals, settings, generator, trained)
        self._captured: dict[int, tuple[_StepInput, torch.cuda.CUDAGraph | None]] = {}

    def epoch(self, batches: list[Rows]) -> Iterator[int]:
        order = np.concatenate(batches)
        rows = torch.from_numpy(order).to(self._goals.device)
        sizes = np.array([len(batch) for batch in batches])
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        ends = np.concatenate([[0], np.cumsum(self._lengths[order])])[bounds]
        flat, values = self._scatter_plan(rows, bounds)
        for b, size in enumerate(sizes.tolist()):
            step, graph = self._step_for(size)
            step.load(flat[ends[b] : ends[b + 1]], values[ends[b] : ends[b + 1]])
            step.goal_rows.copy_(rows[bounds[b] : bounds[b + 1]])
            step.noise.uniform_(generator=self._generator)
            if graph is None:
                self._run(step)
            else:
                graph.replay()
            yield size

    def _scatter_plan(self, rows: Tensor, bounds: Rows) -> tuple[Tensor, Tensor]:
        """Where each non-zero of the epoch goes in its dense batch, and its value: (nnz,) each."""
        device, n_features = rows.device, self._w1.shape[0]
        starts = self._indptr[rows]
        lengths = self._indptr[rows + 1] - starts
        total = int(self._lengths.sum())
        here = torch.arange(len(rows), device=device)
        owner = here.repeat_interleave(lengths, output_size=total)
        entry = torch.arange(total, device=device) + (starts - lengths.cumsum(0) + lengths)[owner]
        edges = torch.from_numpy(bounds[1:]).to(device)
        first_row = torch.from_numpy(bounds[:-1]).to(device)
        row_in_batch = here - first_row[torch.searchsorted(edges, here, right=True)]
        return row_in_batch[owner] * n_features + self._indices[entry], self._data[entry]

    def _step_for(self, size: int) -> tuple[_StepInput, torch.cuda.CUDAGraph | None]:
        if size not in self._captured:
            capacity = max(1, int(np.sort(self._lengths)[-size:].sum()))
            step = _StepInput(size, capacity, self._w1.shape[0], self._goals)
            graph = None
            if self._goals.is_cuda:
                changed = [self._w1, *self._head.parameters(), self._total]
                graph = _captured(lambda: self._run(step), changed, self._optimiser)
            self._captured[size] = step, graph
        return self._captured[size]

    def _run(self, step: _StepInput) -> None:
        self._descend(step.dense() @ self._w1, step)

    def first_weights(self) -> Floats:
        return self._w1.detach().cpu().numpy()


def _captured(
    run: Callable[[], None], changed: list[Tensor], optimiser: torch.optim.SGD
) -> torch.cuda.CUDAGraph:
    """One step as a graph. The weights are restored after the warm-up steps, which train too."""
    kept = [tensor.detach().clone() for tensor in changed]
    known = {p: s["momentum_buffer"].clone() for p, s in optimiser.state.items()}

    @torch.no_grad()
    def put_back() -> None:
        for tensor, value in zip(changed, kept, strict=True):
            tensor.copy_(value)
        for parameter, state in optimiser.state.items():
            state["momentum_buffer"].copy_(known.get(parameter, torch.zeros_like(parameter)))

    return capture(run, put_back)


class _HeadInput:
    """The fixed buffers that the step of the layers after the first one reads."""

    def __init__(self, size: int, hidden: int, goals: Tensor) -> None:
        device = goals.device
        self.product = torch.zeros(size, hidden, device=device, requires_grad=True)
        self.goal_rows = torch.zeros(size, dtype=torch.int64, device=device)
        self.noise = torch.zeros(size, goals.shape[1], device=device)


class _StepInput:
    """The fixed buffers that a captured step reads."""

    def __init__(self, size: int, capacity: int, n_features: int, goals: Tensor) -> None:
        device = goals.device
        self.flat = torch.zeros(capacity, dtype=torch.int64, device=device)
        self.values = torch.zeros(capacity, device=device)
        self.matrix = torch.zeros(size, n_features, device=device)
        self.goal_rows = torch.zeros(size, dtype=torch.int64, device=device)
        self.noise = torch.zeros(size, goals.shape[1], device=device)

    def load(self, flat: Tensor, values: Tensor) -> None:
        """Copy in the positions and values of one batch; the rest of the buffer adds zeros."""
        self.flat[: len(flat)].copy_(flat)
        self.values.zero_()
        self.values[: len(values)].copy_(values)

    def dense(self) -> Tensor:
        self.matrix.zero_()
        self.matrix.view(-1).scatter_add_(0, self.flat, self.values)
        return self.matrix


def fit_encoder(
    X: sp.csr_matrix,
    targets: Floats,
    settings: EncoderSettings,
    *,
    rng: np.random.Generator,
    device: str = "cpu",
    stage: str = "encoder",
    progress: Progress = SILENT,
) -> tuple[FeatureEncoder, list[float]]:
    """Minimise Σ d(f_x, f_y) over the network's weights by SGD.

    Parameters
    ----------
    X : csr_matrix of shape (n_samples, n_features), float32
    targets : float32 array of shape (n_samples, dim)
        f_y of each point.
    rng : numpy Generator
        Draws the initial weights, the order of the points and the dropout.
    stage : str
        The name of this step in progress reports.

    Returns
    -------
    FeatureEncoder, and the mean training loss of each epoch.
    """
    inputs: dict[str, Any] = {"X": X, "targets": targets, "settings": settings, "device": device}
    inputs["rng"] = rng.bit_generator.state

    def compute() -> dict[str, npt.NDArray[Any]]:
        encoder, history = _fit(X, targets, settings, rng, device, stage, progress)
        return {**{name: getattr(encoder, name) for name in WEIGHTS}, "history": np.array(history)}

    found = remembered("encoder", inputs, compute)
    weights = {name: found[name] for name in WEIGHTS}
    encoder = FeatureEncoder(**weights, activation=settings.activation)
    return encoder, found["history"].tolist()


def _fit(
    X: sp.csr_matrix,
    targets: Floats,
    settings: EncoderSettings,
    rng: np.random.Generator,
    device: str,
    stage: str,
    progress: Progress,
) -> tuple[FeatureEncoder, list[float]]:
    """`fit_encoder`, computed."""
    n, d = X.shape
    seeds = rng.integers(2**63, size=2)
    head = _Head(targets.shape[1], settings, torch.Generator().manual_seed(int(seeds[0])))
    head = head.to(device)
    generator = torch.Generator(device=device).manual_seed(int(seeds[1]))
    first = rng.standard_normal((d, settings.hidden), dtype=np.float32)
    first *= settings.init_scale * _unit_scale(X)
    n_batches = -(-n // settings.batch_size)
    goals = torch.from_numpy(targets).to(device)
    steps = _choose_steps(X, first, head, goals, settings, generator, settings.epochs * n_batches)
    work = settings.batch_size * settings.hidden * max(X.nnz // max(n, 1), targets.shape[1])
    history = []
    with (
        threads(1 if device == "cpu" and work < SMALL_STEP else None),
        progress.stage(stage, settings.epochs * n, "points") as report,
    ):
        for _ in range(settings.epochs):
            batches = np.array_split(rng.permutation(n), n_batches)
            for size in steps.epoch(batches):
                report.advance(size)
            history.append(steps.total_loss() / n)
            report.note(f"loss {history[-1]:.4f}")
    b1, w2, b2 = (p.detach().cpu().numpy() for p in (head.b1, head.w2, head.b2))
    return FeatureEncoder(steps.first_weights(), b1, w2, b2, settings.activation), history


def _choose_steps(
    X: sp.csr_matrix,
    first: Floats,
    head: _Head,
    goals: Tensor,
    settings: EncoderSettings,
    generator: torch.Generator,
    n_steps: int,
) -> _Steps:
    if goals.is_cuda and X.shape[1] <= DENSE_FEATURES:
        return _DenseSteps(X, first, head, goals, settings, generator)
    speed = (settings.learning_rate, settings.momentum, settings.weight_decay)
    layer: InputLayer
    if goals.is_cuda:
        layer = _gpu_layer()(X, first, *speed, n_steps, str(goals.device))
    else:
        layer = CpuInputLayer(X, first, *speed, n_steps)
    return _SparseSteps(layer, head, goals, settings, generator)


def _gpu_layer() -> Callable[..., InputLayer]:
    """The layer by Triton's kernels, or by torch alone where Triton is not installed."""
    try:
        from dxml.paper._input_layer_gpu import KernelInputLayer
    except ModuleNotFoundError:
        return GpuInputLayer
    return KernelInputLayer


def _unit_scale(X: sp.csr_matrix) -> np.float32:
    """Standard deviation of the initial weights for which pre-activations have one of about 1."""
    mean_square = float(np.square(X.data, dtype=np.float64).sum()) / max(X.shape[0], 1)
    return np.float32(1 / np.sqrt(mean_square)) if mean_square > 0 else np.float32(1)
