"""The matrix without ceremony is an ordinary one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from dxml._core.sparse import append_rows, canonical, indicator, plain_csr, stack_rows, widened


def test_equals_the_constructors_and_shares_its_arrays() -> None:
    parts = np.float32([1, 2, 3]), np.int32([2, 0, 1]), np.int32([0, 1, 1, 3])
    plain = plain_csr(*parts, (3, 4))
    built = sp.csr_matrix(parts, shape=(3, 4))
    assert isinstance(plain, sp.csr_matrix) and plain.shape == (3, 4) and plain.nnz == 3
    assert plain.dtype == np.float32
    assert (plain.data is parts[0], plain.indices is parts[1]) == (True, True)
    assert plain.toarray().tolist() == built.toarray().tolist()
    assert (plain @ np.ones(4)).tolist() == [1, 0, 5]
    assert plain.T.toarray().tolist() == built.T.toarray().tolist()
    assert plain[1:].toarray().tolist() == built[1:].toarray().tolist()
    assert (plain + built).toarray().tolist() == (2 * built.toarray()).tolist()
    assert plain.tocsc().toarray().tolist() == built.toarray().tolist()


def test_one_matrix_knows_nothing_of_another() -> None:
    first = plain_csr(np.ones(1, bool), np.int32([0]), np.int32([0, 1]), (1, 2))
    assert first.has_sorted_indices
    second = plain_csr(np.float32([5, 7]), np.int32([1, 0]), np.int32([0, 2]), [1, 3])
    assert second.shape == (1, 3) and first.shape == (1, 2)
    assert not second.has_sorted_indices
    second.sort_indices()
    assert second.toarray().tolist() == [[7, 5, 0]] and first.toarray().tolist() == [[True, False]]


def test_empty() -> None:
    nothing = plain_csr(np.float32([]), np.int32([]), np.int32([0]), (0, 3))
    assert nothing.shape == (0, 3) and nothing.nnz == 0 and nothing.toarray().shape == (0, 3)


def test_an_indicator_by_hand() -> None:
    found = indicator(np.array([2, 0, 2, 1]), [3, 0, 1], 4)
    assert found.dtype == bool and found.has_canonical_format and found.indices.dtype == np.int32
    assert found.toarray().astype(int).tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]]
    assert indicator(np.empty(0, np.int32), [], 3).shape == (0, 3)


def test_canonical_copies_only_what_must_change() -> None:
    fine = sp.csr_matrix(np.float32([[0, 1], [2, 3]]))
    assert canonical(fine) is fine
    messy = sp.csr_matrix(
        (np.float32([1, 2, 0, 4]), np.array([1, 1, 0, 0], np.int64), np.array([0, 3, 4])), (2, 2)
    )
    found = canonical(messy)
    assert found.toarray().tolist() == [[0, 3], [4, 0]] and found.nnz == 2
    assert found.indices.dtype == found.indptr.dtype == np.int32
    assert messy.nnz == 4


def some_rows(n: int, seed: int, columns: int = 6) -> sp.csr_matrix:
    return sp.random(n, columns, 0.4, format="csr", dtype=np.float32, random_state=seed)


def test_rows_are_appended_as_they_are_stacked_and_what_was_before_stays() -> None:
    grown = [some_rows(5, 0)]
    for seed in range(1, 40):
        grown.append(append_rows(grown[-1], some_rows(seed % 3, seed)))
    expected = some_rows(5, 0)
    for seed, found in enumerate(grown):
        if seed:
            expected = stack_rows(expected, some_rows(seed % 3, seed))
        assert (found != expected).nnz == 0 and found.shape == expected.shape
    shared = [np.shares_memory(a.data, b.data) for a, b in pairwise(grown)]
    assert shared.count(False) < 10, "copied only when the room is too small"


def test_two_may_append_to_the_same_rows() -> None:
    base = append_rows(some_rows(5, 0), some_rows(1, 1))
    one, other = append_rows(base, some_rows(2, 2)), append_rows(base, some_rows(2, 3))
    for found, seed in ((one, 2), (other, 3)):
        assert (found[6:] != some_rows(2, seed)).nnz == 0
        assert (found[:6] != base).nnz == 0


def test_rows_with_more_columns_are_appended() -> None:
    first = append_rows(some_rows(3, 0), some_rows(1, 1))
    found = append_rows(first, some_rows(2, 2, columns=9))
    assert found.shape == (6, 9) and first.shape == (4, 6)
    assert (found[:4] != widened(first, 9)).nnz == 0
