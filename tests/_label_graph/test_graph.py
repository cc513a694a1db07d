"""The label graph, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse import random as sparse_random

from dxml._core.threads import numba_threads
from dxml._label_graph.graph import label_graph, read_graph
from dxml.exceptions import DataFormatError

NAMES = ["animal", "cat", "dog", "plant"]


@pytest.fixture
def Y() -> csr_matrix:
    return csr_matrix(np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]], bool))


def test_an_edge_where_two_labels_share_a_point(Y):
    graph = label_graph(Y)
    assert graph.adjacency.toarray().tolist() == [
        [0, 1, 1, 0],
        [1, 0, 1, 0],
        [1, 1, 0, 0],
        [0, 0, 0, 0],
    ]
    assert graph.adjacency.dtype == bool
    assert graph.isolated.tolist() == [3]
    assert (graph.n_labels, graph.n_edges) == (4, 3)


def test_a_weight_is_the_number_of_shared_points(Y):
    graph = label_graph(Y, weighted=True)
    assert graph.adjacency.toarray()[0].tolist() == [0, 2, 1, 0]


@pytest.mark.parametrize("share", [0.002, 0.02, 0.3])  # rows that are sorted, and rows read off
def test_edges_are_the_pattern_of_the_labels_product(share):
    labels = sparse_random(80, 400, share, format="csr", random_state=3).astype(bool)
    adjacency = label_graph(csr_matrix(labels)).adjacency
    counts = labels.toarray().astype(int)
    expected = (counts.T @ counts > 0) & ~np.eye(400, dtype=bool)
    np.testing.assert_array_equal(adjacency.toarray(), expected)
    assert adjacency.has_sorted_indices


def test_edges_are_the_same_for_any_number_of_threads():
    labels = csr_matrix(sparse_random(200, 300, 0.05, format="csr", random_state=4).astype(bool))
    rows = []
    for n in (1, 2):
        with numba_threads(n):
            rows.append(label_graph(labels).adjacency)
    assert (rows[0].indices == rows[1].indices).all()
    assert (rows[0].indptr == rows[1].indptr).all()


def test_one_label_a_point_is_a_graph_without_edges():
    graph = label_graph(csr_matrix(np.eye(3, dtype=bool)))
    assert graph.n_edges == 0
    assert graph.isolated.tolist() == [0, 1, 2]


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "edges.tsv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    ["0\t1\n0\t2\n", "animal\tcat\nanimal\tdog\n", "\ufeff# tree\r\n\r\nanimal\t1\r\n0\tdog\r\n"],
)
def test_edges_by_id_or_name_become_symmetric(tmp_path, text):
    graph = read_graph(written(tmp_path, text), 4, NAMES)
    expected = np.zeros((4, 4))
    expected[[0, 1, 0, 2], [1, 0, 2, 0]] = 1
    np.testing.assert_array_equal(graph.adjacency.toarray(), expected)
    assert graph.isolated.tolist() == [3]


def test_weights_of_repeated_edges_add_up_and_loops_are_dropped(tmp_path):
    graph = read_graph(written(tmp_path, "0\t1\t0.5\n1\t0\t2\n2\t2\n"), 3)
    assert graph.adjacency[0, 1] == graph.adjacency[1, 0] == 2.5
    assert graph.n_edges == 1


def test_a_name_that_looks_like_an_id_is_a_name(tmp_path):
    graph = read_graph(written(tmp_path, "1\tx\n"), 3, ["1", "0", "x"])
    assert graph.adjacency[0, 2] == 1


@pytest.mark.parametrize(
    ("text", "names", "message"),
    [
        (
            "0\t1\n0 2\n",
            None,
            r"edges.tsv line 2: expected parent<TAB>child .* got 1 column: '0 2'",
        ),
        ("0\t1\t1\t1\n", None, r"line 1: expected parent<TAB>child .* got 4 columns.* single tabs"),
        ("0\t4\n", None, r"line 1: label id 4 is outside 0\.\.3\. Count the labels from 0"),
        ("0\t-1\n", None, r"line 1: label id -1 is outside 0\.\.3"),
        (
            "0\tcat\n",
            None,
            r"line 1: expected a label id from 0 to 3, got 'cat'\. Give the label names",
        ),
        ("\n0\tcta\n", NAMES, r"line 2: unknown label 'cta'; did you mean 'cat'\?"),
        ("0\tzzz\n", NAMES, r"line 1: unknown label 'zzz'; known: animal, cat, dog, plant"),
        (
            "0\t1\tmuch\n",
            None,
            r"line 1: expected a positive weight in the third column, got 'much'",
        ),
        ("0\t1\t-2\n", None, r"line 1: expected a positive weight in the third column, got '-2'"),
        ("0\t1\tnan\n", None, r"expected a positive weight in the third column, got 'nan'"),
        ("", None, r"edges.tsv: expected at least one line .* found none\. Leave the graph out"),
        ("1\t1\n", None, r"expected at least one line .* between two different labels"),
        (b"0\t1\n\xe9\t1\n", None, r"line 2: expected UTF-8 text, got byte 0xe9 at column 1"),
    ],
)
def test_a_bad_edge_list_is_one_clear_sentence(tmp_path, text, names, message):
    with pytest.raises(DataFormatError, match=message):
        read_graph(written(tmp_path, text), 4, names)


def test_a_long_list_of_names_is_not_printed(tmp_path):
    names = [f"label{i}" for i in range(1000)]
    with pytest.raises(DataFormatError, match=r"'zzz'\. Use a name as it stands") as caught:
        read_graph(written(tmp_path, "0\tzzz\n"), 1000, names)
    assert len(str(caught.value)) < 250
