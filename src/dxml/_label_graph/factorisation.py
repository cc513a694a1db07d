"""Weighted logistic matrix factorisation: the solver that skip-gram uses.

Finds U (rows: centres) and V (columns: contexts or tree nodes) that minimise

    loss = Σ_cj  T_cj · log(1 + exp(s_cj)) − P_cj · s_cj,    s = U Vᵀ,   0 ≤ P ≤ T,

This is the negative log-likelihood of P_cj positive and T_cj − P_cj negative examples whose
probability of being positive is σ(s_cj).

The method is alternating Newton steps. For fixed V the rows of U are independent logistic
regressions, and the Hessian of row c is Σ_j w_cj v_j v_jᵀ. The weights w are close to rank one (a
centre's frequency times a column's), so one dim × dim matrix, inverted once, serves every row:

    u_c ← u_c − (Σ_j G_cj v_j / Σ_j w_cj) · H⁻¹,   G = T σ(s) − P,   H = Σ_j h_j v_j v_jᵀ / Σ_j h_j.

With w = T / (4 √(1 + s²/4)), a smooth stand-in for the bound of Jaakkola & Jordan (2000), which
majorises the loss, nearly whole steps can be taken: there is no learning rate to tune, three sweeps
do the work of many epochs of small steps, and nearly all of it is matrix products.

On the CPU every product is over a block of fixed size and runs on one thread; threads take
different blocks, and partial sums are added in a fixed order. So the bits of the result depend on
the seed alone, not on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dxml.progress import SILENT, Progress, Stage

__all__ = [
    "Factors",
    "Problem",
    "descend",
    "factorise",
    "gradient",
    "inverse_gram",
    "one_thread",
    "sample_rows",
    "start_of",
    "step_length",
]

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

DAMPING = 0.03  # times the mean diagonal of H, added to its diagonal for stability
ROWS, COLUMNS = 128, 512  # the fixed block of one single-threaded product
TILE_ENTRIES = 1 << 24  # P and T of one block of centres: 128 MiB together
GPU_TILE_ENTRIES = 1 << 27
CACHE_ENTRIES = 1 << 26  # all of P and T are kept when they fit in 512 MiB
MAX_OTHERS = 16384  # rows of the other factor that a half-sweep uses at most
GPU_MAX_OTHERS = 131_072  # the same on a GPU


class Problem(Protocol):
    """The matrices P and T, computed tile by tile."""

    @property
    def row_mass(self) -> npt.NDArray[np.float64]:
        """Σ_j T_cj for each row, up to a common factor."""

    @property
    def column_mass(self) -> npt.NDArray[np.float64]:
        """Σ_c T_cj for each column, up to a common factor."""

    def tile(self, rows: Ints, columns: Ints) -> tuple[Tensor, Tensor]:
        """P and T, each float32 of shape (len(rows), len(columns)), of those rows and columns."""


@dataclass
class Factors:
    """U of shape (n_rows, dim) and V of shape (n_columns, dim)."""

    U: Tensor
    V: Tensor


def factorise(
    problem: Problem,
    dim: int,
    sweeps: int,
    seed: int,
    device: str | torch.device = "cpu",
    progress: Progress = SILENT,
    max_others: int = MAX_OTHERS,
) -> Factors:
    """Alternate between V for fixed U and U for fixed V, `sweeps` times.

    Where a side has more than `max_others` rows, each half-sweep for the other side uses the
    heaviest half of that many and a fresh random sample of the rest, weighted so that every sum
    keeps its expectation. Below that, every sum is exact.
    """
    rng = np.random.default_rng(seed)
    n_rows, n_columns = len(problem.row_mass), len(problem.column_mass)
    start = start_of(n_rows, dim, rng)
    factors = Factors(
        torch.from_numpy(start).to(device), torch.zeros((n_columns, dim), device=device)
    )
    curvature = torch.from_numpy(problem.row_mass.astype(np.float32)).to(device)
    tiles = _Tiles(problem, torch.device(device))
    total = sweeps * (min(n_rows, max_others) + n_rows)
    with (
        _workers(torch.device(device)) as workers,
        progress.stage("skip-gram", total, "rows") as stage,
    ):
        half_sweep = _HalfSweep(factors, tiles, workers, stage)
        for sweep in range(sweeps):
            shrink = step_length(sweep)
            rows = _sample(problem.row_mass, max_others, rng)
            curvature = half_sweep.columns(rows, shrink * inverse_gram(factors.U, curvature))
            columns = _sample(problem.column_mass, max_others, rng)
            curvature = half_sweep.rows(columns, shrink * inverse_gram(factors.V, curvature))
    return factors


def start_of(n: int, dim: int, rng: np.random.Generator) -> Floats:
    """Random vectors of length about 1, (n, dim)."""
    return rng.standard_normal((n, dim), dtype=np.float32) / np.float32(dim**0.5)


@dataclass(frozen=True)
class _Sample:
    """A sample of the rows of U or V, and the weight of each."""

    ids: Ints
    weights: Floats
    everything: bool

    def take(self, A: Tensor, where: slice) -> tuple[Tensor, Tensor | None]:
        """A slice of the sampled rows of A, and their weights (None where all are 1)."""
        if self.everything:
            return A[where], None
        ids = torch.from_numpy(self.ids[where]).to(A.device)
        return A[ids], torch.from_numpy(self.weights[where]).to(A.device)


def _everything(n: int) -> _Sample:
    return _Sample(np.arange(n), np.ones(n, np.float32), True)


def _sample(mass: npt.NDArray[np.float64], limit: int, rng: np.random.Generator) -> _Sample:
    if len(mass) <= limit:
        return _everything(len(mass))
    return _Sample(*sample_rows(mass, limit, rng), False)


def sample_rows(
    mass: npt.NDArray[np.float64], limit: int, rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """The heaviest half of `limit` rows and a random sample of the others, and their weights."""
    limit = min(limit, len(mass))
    by_mass = np.argsort(-mass, kind="stable")
    heavy, light = by_mass[: limit // 2], by_mass[limit // 2 :]
    chosen = rng.choice(light, limit - len(heavy), replace=False)
    weights = np.ones(limit, np.float32)
    weights[len(heavy) :] = len(light) / max(len(chosen), 1)
    return np.concatenate([heavy, chosen]), weights


class _Tiles:
    """Blocks of P and T on the device; kept from sweep to sweep when all of them are small."""

    def __init__(self, problem: Problem, device: torch.device) -> None:
        self.problem, self.device = problem, device
        entries = len(problem.row_mass) * len(problem.column_mass)
        self.cache: dict[int, tuple[Tensor, Tensor]] | None = (
            {} if entries <= CACHE_ENTRIES else None
        )

    def blocks(self, rows: _Sample, columns: _Sample) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """(where in `rows`, P, T) block by block."""
        entries = TILE_ENTRIES if self.device.type == "cpu" else GPU_TILE_ENTRIES
        size = max(ROWS, entries // len(columns.ids) // ROWS * ROWS)
        keep = self.cache if rows.everything and columns.everything else None
        for begin in range(0, len(rows.ids), size):
            where = slice(begin, min(begin + size, len(rows.ids)))
            if keep is not None and begin in keep:
                yield where, *keep[begin]
                continue
            P, T = self.problem.tile(rows.ids[where], columns.ids)
            block = P.to(self.device), T.to(self.device)
            if keep is not None:
                keep[begin] = block
            yield where, *block


class _Workers:
    """Runs a task for each fixed-size piece of 0..n, each task on one thread.

    The order of additions in a matrix product may depend on its number of threads. With one thread
    per product it is fixed.
    """

    def __init__(self, pool: ThreadPoolExecutor, device: torch.device) -> None:
        on_cpu = device.type == "cpu"
        self.map = pool.map if on_cpu else map  # a GPU is driven from the calling thread
        self.rows, self.columns = (ROWS, COLUMNS) if on_cpu else (1 << 13, 1 << 13)

    def run(self, task: Callable[[slice], None], n: int, size: int) -> None:
        """Returns when all are done; an error in a task is raised here."""
        for _ in self.map(task, _pieces(n, size)):
            pass


def _pieces(n: int, size: int) -> list[slice]:
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]


@contextmanager
def one_thread() -> Iterator[int]:
    """Within this context torch uses one thread; yields the number it had before."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _workers(device: torch.device) -> Iterator[_Workers]:
    with one_thread() as threads:
        # OpenMP counts threads by thread: each worker is told for itself.
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield _Workers(pool, device)


def step_length(sweep: int) -> float:
    """1, 2/3, 1/2, 2/5, …: shorter and shorter steps, as the rank-one form of w is not exact."""
    return 2 / (sweep + 2)


def inverse_gram(A: Tensor, curvature: Tensor) -> Tensor:
    """(Σ_j h_j a_j a_jᵀ / Σ_j h_j + damping)⁻¹, shape (dim, dim)."""
    gram = ((A * (curvature / curvature.sum())[:, None]).T @ A).double()
    damping = DAMPING * gram.diagonal().mean() + 1e-12
    gram.diagonal().add_(damping)
    inverse: Tensor = torch.linalg.inv(gram)
    return inverse.float()


class _HalfSweep:
    """Sums over tiles that the two half-sweeps share."""

    def __init__(self, factors: Factors, tiles: _Tiles, workers: _Workers, stage: Stage) -> None:
        self.factors, self.tiles, self.workers, self.stage = factors, tiles, workers, stage

    def columns(self, rows: _Sample, solve: Tensor) -> Tensor:
        """One Newton step for every column; returns each column's curvature."""
        U, V = self.factors.U, self.factors.V
        step, curvature = torch.zeros_like(V), V.new_zeros(len(V))
        for where, P, T in self.tiles.blocks(rows, _everything(len(V))):
            Ub, weights = rows.take(U, where)

            def task(at: slice, Ub=Ub, P=P, T=T, weights=weights) -> None:  # type: ignore[no-untyped-def]
                for b in _pieces(len(Ub), self.workers.rows):
                    G, w = gradient(Ub[b], V[at], P[b, at], T[b, at])
                    if weights is not None:
                        G, w = G.mul_(weights[b, None]), w.mul_(weights[b, None])
                    step[at].addmm_(G.T, Ub[b])
                    curvature[at] += w.sum(0)

            self.workers.run(task, len(V), self.workers.columns)
            self.stage.advance(len(Ub))

        def finish(at: slice) -> None:
            descend(V[at], step[at], curvature[at], solve)

        self.workers.run(finish, len(V), self.workers.columns)
        return curvature

    def rows(self, columns: _Sample, solve: Tensor) -> Tensor:
        """One Newton step for every row; returns each row's curvature."""
        U = self.factors.U
        V, weights = columns.take(self.factors.V, slice(None))
        curvature = U.new_zeros(len(U))
        for where, P, T in self.tiles.blocks(_everything(len(U)), columns):
            Ub, hb = U[where], curvature[where]

            def task(at: slice, Ub=Ub, hb=hb, P=P, T=T) -> None:  # type: ignore[no-untyped-def]
                step = torch.zeros_like(Ub[at])
                for b in _pieces(len(V), self.workers.columns):
                    G, w = gradient(Ub[at], V[b], P[at, b], T[at, b])
                    if weights is not None:
                        G, w = G.mul_(weights[b]), w.mul_(weights[b])
                    step.addmm_(G, V[b])
                    hb[at] += w.sum(1)
                descend(Ub[at], step, hb[at], solve)

            self.workers.run(task, len(Ub), self.workers.rows)
            self.stage.advance(len(Ub))
        return curvature


def gradient(U: Tensor, V: Tensor, P: Tensor, T: Tensor) -> tuple[Tensor, Tensor]:
    """G and w of the module's text, both (len(U), len(V))."""
    s = U @ V.T
    curvature = (s * s).mul_(4).add_(16).rsqrt_().mul_(T)
    return s.sigmoid_().mul_(T).sub_(P), curvature


def descend(A: Tensor, step: Tensor, curvature: Tensor, solve: Tensor) -> None:
    """A ← A − (step / curvature) · solve, in place."""
    A.addmm_(step / curvature.clamp_min(1e-30)[:, None], solve, alpha=-1)
