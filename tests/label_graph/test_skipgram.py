"""Skip-gram: counts, tree and gradients against naive loops; vectors that say what they should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

import dxml
from dxml.label_graph import factorisation
from dxml.label_graph.cooccurrence import WalkIndex, count_row, index_walks
from dxml.label_graph.factorisation import factorise
from dxml.label_graph.graph import label_graph
from dxml.label_graph.huffman import huffman_tree
from dxml.label_graph.skipgram import (
    NegativeProblem,
    TreeProblem,
    center_and_scale,
    random_label_vectors,
    train_skipgram,
)
from dxml.label_graph.walks import random_walks
from dxml.progress import SILENT, StageTimer

WINDOW = 3
N_LABELS = 9  # label 8 stands in no walk


@pytest.fixture
def walks() -> np.ndarray:
    rng = np.random.default_rng(0)
    return (8 * rng.random((30, 7)) ** 2).astype(np.int32)


def naive_counts(walks: np.ndarray, n_labels: int, window: int) -> np.ndarray:
    counts = np.zeros((n_labels, n_labels), np.int64)
    for walk in walks.tolist():
        for i, centre in enumerate(walk):
            for j, context in enumerate(walk):
                if i != j and abs(i - j) <= window:
                    counts[centre, context] += window - abs(i - j) + 1
    return counts


def context_counts(index: WalkIndex, centres, column_of, n_columns: int) -> np.ndarray:
    counts = np.zeros((len(centres), n_columns), np.int64)
    for centre, row in zip(centres, counts, strict=True):
        count_row(*index.arrays, centre, column_of, row)
    return counts


def problems(walks: np.ndarray) -> list[NegativeProblem | TreeProblem]:
    index = index_walks(walks, N_LABELS, WINDOW)
    seen = np.flatnonzero(index.counts)
    return [NegativeProblem.build(index, seen, 5, 0.75), TreeProblem.build(index, seen)]


# --- counts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 3, 10])
def test_context_counts_against_naive_loops(walks, window):
    index = index_walks(walks, N_LABELS, window)
    everything = np.arange(N_LABELS, dtype=np.int32)
    expected = naive_counts(walks, N_LABELS, window)
    np.testing.assert_array_equal(context_counts(index, everything, everything, N_LABELS), expected)
    np.testing.assert_array_equal(index.context_totals(), expected.sum(1))
    np.testing.assert_array_equal(index.counts, np.bincount(walks.ravel(), minlength=N_LABELS))


def test_context_counts_of_some_rows_and_columns(walks):
    index = index_walks(walks, N_LABELS, WINDOW)
    column_of = np.full(N_LABELS, -1, np.int32)
    column_of[[5, 2]] = [0, 1]
    expected = naive_counts(walks, N_LABELS, WINDOW)[[7, 1]][:, [5, 2]]
    np.testing.assert_array_equal(context_counts(index, np.array([7, 1]), column_of, 2), expected)


# --- Huffman tree -------------------------------------------------------------------------------


def test_huffman_depths_by_hand():
    tree = huffman_tree(np.array([8, 4, 2, 1, 1]))
    depth = [
        sum(lo <= p < hi for lo, hi in zip(tree.low, tree.high, strict=True)) for p in tree.position
    ]
    assert depth == [1, 2, 3, 4, 4]


def test_chances_of_the_leaves_sum_to_one():
    rng = np.random.default_rng(1)
    tree = huffman_tree(rng.integers(1, 50, size=20))
    left = rng.random(19)
    leaves = np.ones(20)
    for place in range(20):
        for node in np.flatnonzero((tree.low <= place) & (place < tree.high)):
            leaves[place] *= left[node] if place < tree.middle[node] else 1 - left[node]
    assert sorted(tree.position.tolist()) == list(range(20))
    assert leaves.sum() == pytest.approx(1)


# --- the objective ------------------------------------------------------------------------------


def newton_sums(problem, U, V):
    """The gradients that the solver adds up, and the loss they are of."""
    P, T = (torch.from_numpy(A) for A in problem.tile(np.arange(len(U)), np.arange(len(V))))
    G, _ = factorisation.gradient(U, V, P, T)
    s = U @ V.T
    return G @ V, G.T @ U, float((torch.nn.functional.softplus(s) * T - P * s).sum())


def naive_losses(problem, counts: np.ndarray, U, V):
    """The expected loss, one pair (centre, context) at a time."""
    log_sigmoid = torch.nn.functional.logsigmoid
    loss = torch.zeros((), dtype=torch.float64)
    for c in range(len(counts)):
        for o in range(len(counts)):
            s = V.double() @ U[c].double()
            if isinstance(problem, NegativeProblem):
                others = torch.arange(len(V)) != o
                noise = torch.from_numpy(problem.noise)
                pair = log_sigmoid(s[o]) + (noise * log_sigmoid(-s))[others].sum()
            else:
                tree, place = problem.tree, problem.tree.position[o]
                path = np.flatnonzero((tree.low <= place) & (place < tree.high))
                sign = torch.from_numpy(np.where(place < tree.middle[path], 1.0, -1.0))
                pair = log_sigmoid(sign * s[path]).sum()
            loss = loss - counts[c, o] * problem.scale * pair
    return loss


@pytest.mark.parametrize("which", [0, 1], ids=["negative sampling", "hierarchical softmax"])
def test_gradients_against_autograd_of_the_pairwise_loss(walks, which):
    problem = problems(walks)[which]
    counts = naive_counts(walks, 8, WINDOW)
    torch.manual_seed(0)
    U = torch.randn(8, 4, requires_grad=True)
    V = torch.randn(len(problem.column_mass), 4, requires_grad=True)
    loss = naive_losses(problem, counts, U, V)
    loss.backward()
    with torch.no_grad():
        grad_U, grad_V, value = newton_sums(problem, U.detach(), V.detach())
    assert value == pytest.approx(loss.item(), rel=1e-5)
    torch.testing.assert_close(grad_U, U.grad, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(grad_V, V.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("which", [0, 1], ids=["negative sampling", "hierarchical softmax"])
def test_tiles_are_parts_of_the_whole_and_masses_their_sums(walks, which):
    problem = problems(walks)[which]
    n, m = len(problem.row_mass), len(problem.column_mass)
    P, T = problem.tile(np.arange(n), np.arange(m))
    assert (P >= 0).all() and (P <= T).all()
    rows, columns = np.array([6, 0, 3]), np.array([4, 1])
    for part, whole in zip(problem.tile(rows, columns), (P, T), strict=True):
        np.testing.assert_array_equal(part, whole[rows][:, columns])
    if isinstance(problem, TreeProblem):
        np.testing.assert_allclose(problem.column_mass, T.sum(0), rtol=1e-5)


# --- the solver ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cliques() -> np.ndarray:
    """Walks on six cliques of ten labels, neighbours in a ring of cliques joined by one point."""
    rows = [np.arange(10 * c, 10 * c + 10) for c in range(6)]
    rows += [np.array([10 * c, (10 * c + 15) % 60]) for c in range(6)]
    Y = np.zeros((12, 62), bool)  # labels 60 and 61 are isolated
    for row, labels in zip(Y, rows, strict=True):
        row[labels] = True
    return random_walks(label_graph(csr_matrix(Y)), 20, 20, seed=0)


def clique_accuracy(vectors: np.ndarray) -> float:
    """Share of labels whose nearest label is of the same clique."""
    unit = center_and_scale(vectors[:60])
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -2)
    return float((cosine.argmax(1) // 10 == np.arange(60) // 10).mean())


@pytest.mark.parametrize("hierarchical", [False, True])
@pytest.mark.parametrize("spectrum", [0.0, 0.5])
@pytest.mark.parametrize("exponent", [0.75, -1.0])
def test_planted_cliques_are_found(cliques, hierarchical, spectrum, exponent):
    vectors = train_skipgram(
        cliques, 62, 12, window=4, exponent=exponent, hierarchical=hierarchical, spectrum=spectrum
    )
    assert vectors.shape == (62, 12)
    assert vectors.dtype == np.float32
    assert clique_accuracy(vectors) >= 0.95


@pytest.mark.parametrize("hierarchical", [False, True])
def test_every_sweep_goes_down(cliques, hierarchical):
    index = index_walks(cliques, 62, 4)
    seen = np.flatnonzero(index.counts)
    problem = (
        TreeProblem.build(index, seen)
        if hierarchical
        else NegativeProblem.build(index, seen, 5, 0.75)
    )
    losses = []
    for sweeps in range(11):
        factors = factorise(problem, 12, sweeps, seed=0)
        losses.append(newton_sums(problem, factors.U, factors.V)[2])
    assert (np.diff(losses) < 0).all()
    assert losses[-1] < 0.65 * losses[0]


@pytest.mark.parametrize("hierarchical", [False, True])
def test_sampling_the_other_side_finds_the_cliques_too(cliques, hierarchical, monkeypatch):
    monkeypatch.setattr(factorisation, "CACHE_ENTRIES", 0)
    monkeypatch.setattr("dxml.label_graph.skipgram.MAX_OTHERS", 40)
    vectors = train_skipgram(cliques, 62, 12, window=4, hierarchical=hierarchical)
    assert clique_accuracy(vectors) >= 0.9


def test_tiles_kept_or_made_anew_are_the_same(cliques, monkeypatch):
    kept = train_skipgram(cliques, 62, 8)
    monkeypatch.setattr(factorisation, "CACHE_ENTRIES", 0)
    assert train_skipgram(cliques, 62, 8).tobytes() == kept.tobytes()


def test_the_sample_keeps_the_heavy_and_the_expectation():
    mass = np.arange(100.0)
    draws = [factorisation._sample(mass, 20, np.random.default_rng(i)) for i in range(400)]
    assert all(set(draw.ids[:10]) == set(range(90, 100)) for draw in draws)
    estimate = np.mean([(mass[draw.ids] * draw.weights).sum() for draw in draws])
    assert estimate == pytest.approx(mass.sum(), rel=0.02)


# --- what comes out -----------------------------------------------------------------------------


def test_labels_in_no_walk_get_a_usable_vector(cliques):
    vectors = train_skipgram(cliques, 62, 12, seed=5)
    norms = np.linalg.norm(vectors, axis=1)
    assert norms[60:] == pytest.approx(np.median(norms[:60]), rel=1e-5)
    assert not np.allclose(vectors[60], vectors[61])


@pytest.mark.parametrize("hierarchical", [False, True])
@pytest.mark.parametrize("dim", [1, 100])
def test_more_dimensions_than_labels_and_only_one(walks, hierarchical, dim):
    vectors = train_skipgram(walks, N_LABELS, dim, hierarchical=hierarchical)
    assert vectors.shape == (N_LABELS, dim)
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("hierarchical", [False, True])
def test_two_labels(hierarchical):
    walks = np.array([[0, 1, 0], [1, 0, 1]], np.int32)
    assert np.isfinite(train_skipgram(walks, 2, 3, hierarchical=hierarchical)).all()


def test_same_bits_whatever_the_threads():
    program = """
import hashlib, numpy as np
from dxml.label_graph.skipgram import train_skipgram
rng = np.random.default_rng(0)
walks = (700 * rng.random((3000, 10)) ** 2).astype(np.int32)
for hierarchical in (False, True):
    vectors = train_skipgram(walks, 700, 33, hierarchical=hierarchical)
    print(hashlib.sha256(vectors.tobytes()).hexdigest())
"""

    def digest(threads: int) -> str:
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
        env = os.environ | dict.fromkeys(names, str(threads))
        env["PYTHONPATH"] = str(Path(dxml.__file__).parents[1])
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    one = digest(1)
    assert len(one.split()) == 2
    assert digest(3) == one


def test_another_seed_gives_other_vectors(walks):
    first, again, other = (train_skipgram(walks, N_LABELS, 4, seed=seed) for seed in (0, 0, 1))
    assert first.tobytes() == again.tobytes()
    assert not np.allclose(first, other)


def test_torch_gets_its_threads_back(walks):
    before = torch.get_num_threads()
    train_skipgram(walks, N_LABELS, 4)
    assert torch.get_num_threads() == before


def test_progress_is_reported(walks):
    timer = StageTimer(SILENT)
    train_skipgram(walks, N_LABELS, 4, progress=timer)
    assert list(timer.seconds) == ["skip-gram"]


def test_center_and_scale_by_hand():
    vectors = np.array([[3, 0], [-1, 0], [1, 2], [1, -2], [1, 0]], np.float32)
    expected = [[1, 0], [-1, 0], [0, 1], [0, -1], [0, 0]]
    np.testing.assert_allclose(center_and_scale(vectors), expected, atol=1e-7)
    assert vectors[0, 0] == 3


def test_random_label_vectors_are_unit_and_repeatable():
    vectors = random_label_vectors(5, 7, seed=3)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert (vectors == random_label_vectors(5, 7, seed=3)).all()
    assert (vectors != random_label_vectors(5, 7, seed=4)).any()


@pytest.mark.gpu
def test_on_a_gpu(cliques):
    assert clique_accuracy(train_skipgram(cliques, 62, 12, window=4, device="cuda")) >= 0.95
