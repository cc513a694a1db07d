"""TopK and the tie rule, by hand and against a sort."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dxml.topk import TopK, moved, tie_order, topk_from_csr, topk_from_dense


def by_sorting(scores: np.ndarray, frequency: np.ndarray, k: int) -> list[list[int]]:
    """The rule, spelled out: score, then frequency, then id."""
    ranked = []
    for row in scores:
        labels = [label for label in range(len(row)) if row[label] > -np.inf]
        labels.sort(key=lambda label: (-row[label], -frequency[label], label))
        ranked.append((labels + [-1] * k)[:k])
    return ranked


def test_ties_go_to_the_frequent_label_then_to_the_lower_id() -> None:
    place = tie_order(np.array([1, 3, 3, 2]))
    ranking = topk_from_dense(np.array([[1, 1, 1, 1], [0, 0, 0, 5]], np.float32), 4, place)
    assert ranking.indices.tolist() == [[1, 2, 3, 0], [3, 1, 2, 0]]


@given(st.data())
def test_dense_selection_equals_sorting(data: st.DataObject) -> None:
    n_labels = data.draw(st.integers(1, 8))
    k = data.draw(st.integers(1, n_labels))
    cell = st.sampled_from([-np.inf, 0.0, 0.5, 1.0])
    rows = data.draw(st.lists(st.lists(cell, min_size=n_labels, max_size=n_labels), min_size=1))
    frequency = np.array(
        data.draw(st.lists(st.integers(0, 2), min_size=n_labels, max_size=n_labels))
    )
    scores = np.array(rows, np.float32)
    ranking = topk_from_dense(scores, k, tie_order(frequency))
    assert ranking.indices.tolist() == by_sorting(scores, frequency, k)


def test_sparse_selection_takes_only_stored_scores() -> None:
    scores = sp.csr_matrix(
        (np.array([0.0, -1.0, 2.0], np.float32), np.array([2, 0, 1]), np.array([0, 2, 2, 3])),
        shape=(3, 3),
    )
    ranking = topk_from_csr(scores, 2, tie_order(np.zeros(3)))
    assert ranking.indices.tolist() == [[2, 0], [-1, -1], [1, -1]]
    assert ranking.scores.tolist() == [[0, -1], [0, 0], [2, 0]]


def test_to_csr_and_rows_leave_the_padding_out() -> None:
    ranking = TopK(np.array([[2, 0], [1, -1]], np.int32), np.array([[3, 1], [2, 0]], np.float32))
    assert ranking.to_csr(3).toarray().tolist() == [[1, 0, 3], [0, 2, 0]]
    assert list(ranking.rows()) == [[(2, 3.0), (0, 1.0)], [(1, 2.0)]]
    assert ranking.head(1).indices.tolist() == [[2], [1]]
    assert len(TopK.concatenate([ranking, ranking])) == 4


def test_to_csr_is_in_order_and_keeps_zeros_but_no_padding() -> None:
    ids = np.array([[5, 0, 3], [-1, -1, -1], [4, -1, -1], [2, 1, -1]], np.int32)
    scores = np.array([[0.5, 0, -2], [0, 0, 0], [7, 0, 0], [0, 0, 0]], np.float32)
    matrix = TopK(ids, scores).to_csr(6)
    assert matrix.shape == (4, 6) and matrix.indices.dtype == matrix.indptr.dtype == np.int32
    assert matrix.indptr.tolist() == [0, 3, 3, 4, 6]
    assert matrix.indices.tolist() == [0, 3, 5, 4, 1, 2]
    assert matrix.data.tolist() == [0, -2, 0.5, 7, 0, 0] and matrix.data.dtype == np.float32
    assert matrix.has_sorted_indices
    nobody = TopK(ids[:0], scores[:0]).to_csr(6)
    assert nobody.shape == (0, 6) and nobody.nnz == 0


@given(st.data())
def test_to_csr_and_back(data: st.DataObject) -> None:
    n_labels, n = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    scores = rng.choice([-np.inf, 0, 1, 2], (n, n_labels)).astype(np.float32)
    place = tie_order(np.zeros(n_labels))
    ranking = topk_from_dense(scores, n_labels, place)
    again = topk_from_csr(ranking.to_csr(n_labels), n_labels, place)
    assert np.array_equal(again.indices, ranking.indices)
    assert np.array_equal(again.scores, ranking.scores)


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match=r"one shape \(n, k\), got \(1, 2\) and \(1, 3\)"):
        TopK(np.zeros((1, 2), np.int32), np.zeros((1, 3), np.float32))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.data())
def test_the_order_after_a_change_is_that_of_a_sort(before: list[int], data: st.DataObject) -> None:
    changed = data.draw(st.lists(st.integers(0, len(before) - 1), max_size=25, unique=True))
    after = [n + 2 * (label in changed) - label % 2 for label, n in enumerate(before)]
    after = [new if label in changed else before[label] for label, new in enumerate(after)]
    after += data.draw(st.lists(st.integers(0, 4), max_size=3))
    place = tie_order(np.array(before))
    found = moved(place, np.array(after), np.array(changed, dtype=int))
    assert found.tolist() == tie_order(np.array(after)).tolist() and found.dtype == np.int32
    assert place.tolist() == tie_order(np.array(before)).tolist(), "the order before stays"


def test_numpy_selects_what_compiled_code_selects(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ties, and rows of fewer labels than wanted."""
    rng = np.random.default_rng(0)
    dense = rng.integers(-2, 3, (30, 11)) * (rng.random((30, 11)) < 0.5)
    scores, place = sp.csr_matrix(dense, dtype="f4"), tie_order(rng.integers(0, 3, 11))
    for k in (1, 4, 11):
        found = []
        for spared in (False, True):
            monkeypatch.setattr("dxml.topk.spare", lambda n, it=spared: it)
            found.append(topk_from_csr(scores, k, place))
        assert np.array_equal(found[0].indices, found[1].indices)
        assert np.array_equal(found[0].scores, found[1].scores)


def test_as_a_matrix_labels_are_in_order_and_padding_is_gone() -> None:
    indices = np.array([[4, 1, -1], [-1, -1, -1], [0, 3, 2]], np.int32)
    scores = np.array([[0.5, 0.25, 0], [0, 0, 0], [3, 2, 0]], np.float32)
    matrix = TopK(indices, scores).to_csr(5)
    assert matrix.indptr.tolist() == [0, 2, 2, 5] and matrix.indices.tolist() == [1, 4, 0, 2, 3]
    assert matrix.data.tolist() == [0.25, 0.5, 3, 0, 2]  # a score of 0 stays stored
    assert matrix.has_sorted_indices and matrix.shape == (3, 5)


def test_a_notebook_shows_the_first_points_with_names_where_known() -> None:
    indices = np.tile(np.array([[1, 0], [2, -1]], np.int32), (15, 1))
    ranking = TopK(indices, np.where(indices >= 0, np.float32(0.5), np.float32(0)))
    by_id = ranking._repr_html_()
    assert ">1 0.5<" in by_id and ">2 0.5<" in by_id and "-1" not in by_id
    assert by_id.count("<tr>") == 21 and "… and 10 more points" in by_id
    named = TopK(ranking.indices, ranking.scores, np.array(["a", "<b>", "c"]))
    for kept in (named, named.head(1), named.at_least(0.1), TopK.concatenate([named, named])):
        shown = kept._repr_html_()
        assert ">&lt;b&gt; 0.5<" in shown and ">c 0.5<" in shown
