"""Random walks: every step is an edge, and steps follow the graph's transition law."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import chisquare

from dxml._label_graph.graph import LabelGraph, label_graph
from dxml._label_graph.walks import random_walks, random_walks_on_points
from dxml.exceptions import DataFormatError
from dxml.progress import StageTimer


@pytest.fixture
def Y() -> csr_matrix:
    rng = np.random.default_rng(0)
    dense = rng.random((60, 12)) < rng.uniform(0.05, 0.4, size=12)
    dense[:, 10] = dense[:, 11] = False
    dense[0], dense[1] = False, False
    dense[1, 11] = True  # alone on its point; label 10 has no point
    return csr_matrix(dense)


def transitions(walks: np.ndarray, n_labels: int) -> np.ndarray:
    counts = np.zeros((n_labels, n_labels), np.int64)
    np.add.at(counts, (walks[:, :-1].ravel(), walks[:, 1:].ravel()), 1)
    return counts


def assert_follows(walks: np.ndarray, adjacency: np.ndarray) -> None:
    observed = transitions(walks, len(adjacency))
    assert not observed[adjacency == 0].any()
    for label in np.flatnonzero(adjacency.sum(1)):
        edges = adjacency[label] > 0
        if edges.sum() > 1:
            law = adjacency[label, edges] / adjacency[label].sum()
            seen = observed[label, edges]
            assert chisquare(seen, law * seen.sum()).pvalue > 1e-4


@pytest.mark.parametrize("weighted", [False, True])
def test_walks_follow_the_graph(Y, weighted):
    graph = label_graph(Y, weighted)
    walks = random_walks(graph, 300, 20, seed=7)
    assert walks.shape == (300 * 10, 20)
    assert walks.dtype == np.int32
    assert_follows(walks, graph.adjacency.toarray().astype(float))


def test_walks_on_points_follow_the_weighted_graph(Y):
    walks = random_walks_on_points(Y, 300, 20, seed=7)
    assert walks.shape == (300 * 10, 20)
    assert_follows(walks, label_graph(Y, weighted=True).adjacency.toarray().astype(float))


def test_label_to_point_to_label_is_exactly_the_weighted_law(Y):
    """The enumerated probabilities of the two draws, against the graph's."""
    dense = Y.toarray()
    law = np.zeros((12, 12))
    others = dense.sum(1) - 1
    for label in range(12):
        points = np.flatnonzero(dense[:, label])
        mass = others[points].sum()
        for point in points[others[points] > 0]:
            chance = others[point] / mass
            for other in np.flatnonzero(dense[point]):
                if other != label:
                    law[label, other] += chance / others[point]
    weights = label_graph(Y, weighted=True).adjacency.toarray()
    expected = weights / np.maximum(weights.sum(1, keepdims=True), 1)
    np.testing.assert_allclose(law, expected, atol=1e-7)


@pytest.mark.parametrize("on_points", [False, True])
def test_every_label_with_an_edge_starts_its_walks(Y, on_points):
    walks = (
        random_walks_on_points(Y, 3, 5, 0) if on_points else random_walks(label_graph(Y), 3, 5, 0)
    )
    assert walks[:, 0].tolist() == list(range(10)) * 3


def test_two_labels_alternate():
    graph = label_graph(csr_matrix(np.array([[1, 0, 1]], bool)))
    assert random_walks(graph, 1, 4, 0).tolist() == [[0, 2, 0, 2], [2, 0, 2, 0]]


def test_a_walk_of_length_one_is_its_start(Y):
    assert random_walks(label_graph(Y), 2, 1, 0).shape == (20, 1)


@pytest.mark.parametrize("on_points", [False, True])
def test_same_seed_same_walks_whatever_the_threads(Y, on_points):
    def walk(seed: int) -> bytes:
        if on_points:
            return random_walks_on_points(Y, 5, 10, seed).tobytes()
        return random_walks(label_graph(Y, weighted=True), 5, 10, seed).tobytes()

    threads = numba.get_num_threads()
    many = walk(3)
    try:
        numba.set_num_threads(1)
        assert walk(3) == many
    finally:
        numba.set_num_threads(threads)
    assert walk(4) != many


def test_more_walks_keep_the_first_ones(Y):
    graph = label_graph(Y)
    assert (random_walks(graph, 4, 6, 1)[:10] == random_walks(graph, 1, 6, 1)).all()


def test_no_edge_no_walk():
    Y = csr_matrix(np.eye(3, dtype=bool))
    message = (
        "the label graph has no edge: .* Give a label graph of your own .label_graph=FILE., or use"
    )
    with pytest.raises(DataFormatError, match=message):
        random_walks(label_graph(Y), 1, 5, 0)
    with pytest.raises(DataFormatError, match=message):
        random_walks_on_points(Y, 1, 5, 0)
    with pytest.raises(DataFormatError, match=message):
        random_walks(LabelGraph.from_adjacency(csr_matrix((0, 0))), 1, 5, 0)


def test_walks_report_progress(Y):
    timer = StageTimer()
    random_walks(label_graph(Y), 2, 5, 0, timer)
    assert list(timer.seconds) == ["walks"]
