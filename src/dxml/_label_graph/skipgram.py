"""Skip-gram on the walks: one vector per label (DeepWalk's second half).

The objective is word2vec's (Mikolov et al., 2013), with negative sampling or hierarchical softmax,
in expectation. The pairs of the walks are counted first (`dxml._label_graph.cooccurrence`), and
negatives are weighted by their probability instead of being drawn. This gives a weighted logistic
matrix factorisation, solved by Newton steps (`factorisation`) instead of one small
gradient step per pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dxml._core.compiled import compiled, prange
from dxml._label_graph.cooccurrence import WalkIndex, count_row, index_walks
from dxml._label_graph.factorisation import (
    GPU_MAX_OTHERS,
    MAX_OTHERS,
    Factors,
    factorise,
    one_thread,
)
from dxml._label_graph.huffman import HuffmanTree, huffman_tree
from dxml._label_graph.walk_pairs import Pairs, WalkPairs, factorise_pairs
from dxml.progress import SILENT, Progress

if TYPE_CHECKING:
    from dxml._label_graph.cooccurrence_gpu import GpuWalks

__all__ = ["center_and_scale", "random_label_vectors", "train_skipgram"]

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Walks: TypeAlias = "WalkIndex | GpuWalks"


def train_skipgram(
    walks: npt.NDArray[np.int32],
    n_labels: int,
    dim: int,
    window: int = 10,
    negative: int = 5,
    exponent: float = 0.75,
    hierarchical: bool = False,
    epochs: int = 3,
    spectrum: float = 0.25,
    seed: int = 0,
    device: str | torch.device = "cpu",
    progress: Progress = SILENT,
) -> Floats:
    """Give similar vectors to labels that are near each other in the walks.

    Parameters
    ----------
    walks : int32 array of shape (n_walks, length)
    n_labels : int
    dim : int
    window : int
        Labels at most this far apart in a walk are a pair; nearer pairs count more, as in word2vec.
    negative : int
        Negatives a pair; not used by hierarchical softmax.
    exponent : float
        Negatives are drawn ∝ frequency**exponent. 0.75 is word2vec's; below 0, rare labels.
    hierarchical : bool
        Hierarchical softmax over a Huffman tree in place of negative sampling.
    epochs : int
        Sweeps of the solver, each over all pairs.
    spectrum : float
        The objective depends only on the products of label and context vectors, U Vᵀ = A S Bᵀ
        (singular value decomposition). It determines U only up to an invertible matrix. The label
        vectors are A S**spectrum, rotated at random. 0.5 shares the singular values evenly between
        labels and contexts, as word2vec's gradient descent from small weights also does. Smaller
        values give all directions more equal weight, which separates labels better. At 0 with
        dim ≥ n_labels nothing of the graph is left. Levy, Goldberg & Dagan (TACL 2015, section
        3.3) find 0 to 0.5 best.
    seed : int
    device : str or torch.device
    progress : Progress

    Returns
    -------
    float32 array of shape (n_labels, dim)
        A label that is in no walk has a random direction and the median length of the others.

    Notes
    -----
    On the CPU the bits of the result depend on the arguments alone, not on the number of threads.
    """
    device = torch.device(device)
    index = _index(walks, n_labels, window, device)
    seen = np.flatnonzero(index.counts)
    problem = (
        TreeProblem.build(index, seen)
        if hierarchical
        else NegativeProblem.build(index, seen, negative, exponent)
    )
    factors = _factorise(problem, dim, epochs, seed, device, progress)
    del problem, index  # on a GPU the walks take much of its memory
    vectors = random_label_vectors(n_labels, dim, seed)
    trained = _share_spectrum(factors, spectrum, seed)
    vectors *= np.median(np.linalg.norm(trained, axis=1))
    vectors[seen] = trained
    return vectors


def _index(walks: npt.NDArray[np.int32], n_labels: int, window: int, device: torch.device) -> Walks:
    """The places of the labels in the walks, on a GPU where one is asked for and has room."""
    if device.type == "cuda":
        try:
            from dxml._label_graph.cooccurrence_gpu import GpuWalks, fits
        except ModuleNotFoundError:  # Triton is not installed
            return index_walks(walks, n_labels, window)
        if fits(walks, device):
            return GpuWalks(walks, n_labels, window, device)
    return index_walks(walks, n_labels, window)


def _factorise(
    problem: NegativeProblem | TreeProblem,
    dim: int,
    sweeps: int,
    seed: int,
    device: torch.device,
    progress: Progress,
) -> Factors:
    """From counts; pairs of more labels than a sweep can see come from the walks, one by one."""
    most = GPU_MAX_OTHERS if device.type == "cuda" else MAX_OTHERS
    if len(problem.seen) <= most or isinstance(problem, TreeProblem):
        return factorise(problem, dim, sweeps, seed, device, progress, most)
    given = (problem.seen, problem.noise, problem.scale)
    index = problem.index
    pairs: Pairs
    if isinstance(index, WalkIndex):
        device = torch.device("cpu")
        pairs = WalkPairs(index, *given)
    else:
        from dxml._label_graph.walk_pairs_gpu import GpuWalkPairs

        pairs = GpuWalkPairs(index, *given)
    return factorise_pairs(
        pairs, problem.noise, problem.totals, dim, sweeps, seed, MAX_OTHERS, device, progress
    )


def random_label_vectors(n_labels: int, dim: int, seed: int = 0) -> Floats:
    """Random directions of length 1, shape (n_labels, dim), without a graph."""
    rng = np.random.default_rng([seed, 1])
    vectors = rng.standard_normal((n_labels, dim), dtype=np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def center_and_scale(vectors: Floats) -> Floats:
    """Subtract the mean vector, then scale every vector to length 1; a zero vector stays zero."""
    centred = vectors - vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.asarray(centred / np.where(norms > 0, norms, np.float32(1)))


@dataclass(frozen=True)
class NegativeProblem:
    """Negative sampling in expectation.

    A pair (c, o) with count C_co is C_co positive examples. Each has k negatives, which are label j
    with probability q_j and are dropped when j = o, as in word2vec. So P = C and
    T_cj − P_cj = k q_j (Σ_o C_co − C_cj).
    """

    index: Walks
    seen: Ints
    noise: Doubles  # k q_j
    totals: Doubles  # Σ_o C_co, divided by their mean
    scale: float

    @classmethod
    def build(cls, index: Walks, seen: Ints, negative: int, exponent: float) -> NegativeProblem:
        frequency = index.counts[seen].astype(np.float64)
        noise = (frequency / frequency.max()) ** exponent
        totals = index.context_totals()[seen].astype(np.float64)
        scale = 1.0 / totals.mean()
        return cls(index, seen, negative * noise / noise.sum(), totals * scale, scale)

    @property
    def row_mass(self) -> Doubles:
        return self.totals

    @property
    def column_mass(self) -> Doubles:
        return np.asarray(self.totals + self.noise * self.totals.sum())  # C is symmetric

    def tile(self, rows: Ints, columns: Ints) -> tuple[Tensor, Tensor]:
        column_of = np.full(self.index.n_labels, -1, dtype=np.int32)
        column_of[self.seen[columns]] = np.arange(len(columns), dtype=np.int32)
        noise, totals = self.noise[columns], self.totals[rows]
        if isinstance(self.index, WalkIndex):
            tile = _negative_tile(
                *self.index.arrays, self.seen[rows], column_of, noise, totals, self.scale
            )
            return torch.from_numpy(tile[0]), torch.from_numpy(tile[1])
        place = self.index.tokens.device
        to_column = torch.from_numpy(column_of).to(place)
        pairs = self.index.count(self.seen[rows], to_column, len(columns)) * self.scale
        rest = torch.from_numpy(totals).float().to(place)[:, None] - pairs
        return pairs, rest.mul_(torch.from_numpy(noise).float().to(place)).add_(pairs)


@dataclass(frozen=True)
class TreeProblem:
    """Hierarchical softmax: a positive example is a left turn on the path to the context label."""

    index: Walks
    seen: Ints
    tree: HuffmanTree
    leaf_of: npt.NDArray[np.int32]  # label → leaf, left to right
    totals: Doubles  # Σ_o C_co, divided by their mean
    scale: float

    @classmethod
    def build(cls, index: Walks, seen: Ints) -> TreeProblem:
        tree = huffman_tree(index.counts[seen])
        leaf_of = np.full(index.n_labels, -1, dtype=np.int32)
        leaf_of[seen] = tree.position
        totals = index.context_totals()[seen].astype(np.float64)
        scale = 1.0 / totals.mean()
        return cls(index, seen, tree, leaf_of, totals * scale, scale)

    @property
    def row_mass(self) -> Doubles:
        return self.totals

    @property
    def column_mass(self) -> Doubles:
        leaf = np.zeros(len(self.seen) + 1)
        leaf[self.tree.position + 1] = self.totals
        sums = np.cumsum(leaf)
        return np.asarray(sums[self.tree.high] - sums[self.tree.low])

    def tile(self, rows: Ints, columns: Ints) -> tuple[Tensor, Tensor]:
        low, middle, high = (a[columns] for a in (self.tree.low, self.tree.middle, self.tree.high))
        if isinstance(self.index, WalkIndex):
            tile = _tree_tile(
                *self.index.arrays, self.seen[rows], self.leaf_of, low, middle, high, self.scale
            )
            return torch.from_numpy(tile[0]), torch.from_numpy(tile[1])
        place = self.index.tokens.device
        leaves = torch.from_numpy(self.leaf_of).to(place)
        counts = self.index.count(self.seen[rows], leaves, len(self.seen))
        sums = torch.nn.functional.pad(counts.cumsum(1), (1, 0))
        first, turn, end = (torch.from_numpy(at).long().to(place) for at in (low, middle, high))
        left = sums[:, turn] - sums[:, first]
        return left * self.scale, (sums[:, end] - sums[:, first]) * self.scale


@compiled(parallel=True)
def _negative_tile(  # type: ignore[no-untyped-def]
    tokens, length, indptr, positions, window, centres, column_of, noise, totals, scale
):
    P = np.empty((len(centres), len(noise)), np.float32)
    T = np.empty((len(centres), len(noise)), np.float32)
    for row in prange(len(centres)):
        counts = np.zeros(len(noise), np.int64)
        count_row(tokens, length, indptr, positions, window, centres[row], column_of, counts)
        for column in range(len(noise)):
            pairs = counts[column] * scale
            P[row, column] = pairs
            T[row, column] = pairs + noise[column] * (totals[row] - pairs)
    return P, T


@compiled(parallel=True)
def _tree_tile(  # type: ignore[no-untyped-def]
    tokens, length, indptr, positions, window, centres, leaf_of, low, middle, high, scale
):
    P = np.empty((len(centres), len(low)), np.float32)
    T = np.empty((len(centres), len(low)), np.float32)
    n_leaves = leaf_of.max() + 1
    for row in prange(len(centres)):
        sums = np.zeros(n_leaves + 1, np.int64)
        count_row(tokens, length, indptr, positions, window, centres[row], leaf_of, sums[1:])
        for leaf in range(n_leaves):
            sums[leaf + 1] += sums[leaf]
        for node in range(len(low)):
            P[row, node] = (sums[middle[node]] - sums[low[node]]) * scale
            T[row, node] = (sums[high[node]] - sums[low[node]]) * scale
    return P, T


def _share_spectrum(factors: Factors, spectrum: float, seed: int) -> Floats:
    """A S**spectrum of U Vᵀ = A S Bᵀ, rotated at random so that all axes have similar variance."""
    dim = factors.U.shape[1]
    noise = np.random.default_rng([seed, 2]).standard_normal((dim, dim))
    with one_thread():
        rotation, _ = torch.linalg.qr(torch.from_numpy(noise))
        Q, R = torch.linalg.qr(factors.U.double())  # (n, r), (r, dim)
        R_context = torch.linalg.qr(factors.V.double(), mode="r").R
        A, S, _ = torch.linalg.svd(R @ R_context.T, full_matrices=False)
        power = torch.where(S > 1e-6 * S[0], S**spectrum, torch.zeros_like(S))
        turned = (A * power) @ rotation[: len(S)].to(A.device)
        vectors: Floats = (Q @ turned).float().cpu().numpy()
    return vectors
