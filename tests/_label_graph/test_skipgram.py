"""Skip-gram: gradients against autograd; vectors that say what they should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import dxml
from dxml._label_graph import factorisation
from dxml._label_graph.cooccurrence import index_walks
from dxml._label_graph.skipgram import (
    NegativeProblem,
    TreeProblem,
    center_and_scale,
    random_label_vectors,
    train_skipgram,
)
from dxml.progress import SILENT, StageTimer

from .naive import N_LABELS, WINDOW, naive_counts, newton_sums


def problems(walks: np.ndarray) -> list[NegativeProblem | TreeProblem]:
    index = index_walks(walks, N_LABELS, WINDOW)
    seen = np.flatnonzero(index.counts)
    return [NegativeProblem.build(index, seen, 5, 0.75), TreeProblem.build(index, seen)]


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
def test_sampling_the_other_side_finds_the_cliques_too(cliques, hierarchical, monkeypatch):
    monkeypatch.setattr(factorisation, "CACHE_ENTRIES", 0)
    monkeypatch.setattr("dxml._label_graph.skipgram.MAX_OTHERS", 40)
    vectors = train_skipgram(cliques, 62, 12, window=4, hierarchical=hierarchical)
    assert clique_accuracy(vectors) >= 0.9


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


@pytest.mark.thorough
def test_same_bits_whatever_the_threads():
    program = """
import hashlib, numpy as np
from dxml._label_graph.skipgram import train_skipgram
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
    torch.set_num_threads(3)
    try:
        train_skipgram(walks, N_LABELS, 4)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


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
