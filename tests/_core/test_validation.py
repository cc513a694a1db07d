"""Every way in which arrays can be wrong, and the sentence that says so."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.validation import (
    check_features,
    check_groups,
    check_k,
    check_label_ids,
    check_labels,
    check_pair,
)
from dxml.exceptions import DataFormatError


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.coo_matrix, sp.csr_array, list])
def test_any_matrix_becomes_float32_csr(kind: type) -> None:
    X = check_features(kind([[0, 2.5, 0], [1, 0, 0]]))
    assert X.dtype == np.float32 and X.indices.dtype == np.int32
    assert X.toarray().tolist() == [[0, 2.5, 0], [1, 0, 0]]


def test_objects_that_are_numbers_are_features() -> None:
    X = check_features(np.array([[0, 2.5], [True, 1]], dtype=object))
    assert X.toarray().tolist() == [[0, 2.5], [1, 1]]


def test_the_callers_matrix_is_left_alone() -> None:
    messy = sp.csr_matrix(
        (np.array([1, 2, 0], np.float32), np.array([1, 0, 2]), np.array([0, 3])), shape=(1, 3)
    )
    X = check_features(messy)
    assert X.indices.tolist() == [0, 1] and X.data.tolist() == [2, 1]
    assert messy.indices.tolist() == [1, 0, 2] and messy.data.tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([["a"]], "X must hold real numbers, got an array of <U1. Turn text into features"),
        ([[1j, 0]], "Complex data not supported: X must hold real numbers, got complex128"),
        (sp.csr_matrix([[1j, 0]]), "Complex data not supported: .* got complex128"),
        (np.empty((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
        (
            [1.0, 2.0],
            r"X must have 2 dimensions \(points, features\), got 1. Reshape your d",
        ),
        ([[0.0, np.nan]], "X must be finite, got NaN at row 0, column 1. Replace or drop"),
        ([[0, 0], [np.inf, 0]], "X must be finite, got inf at row 1, column 0"),
        ([[1.0]], "X has 1 features, but the model is expecting 2 features as input. Use"),
    ],
)
def test_bad_features(X: object, message: str) -> None:
    with pytest.raises(DataFormatError, match=message):
        check_features(X, n_features=2)


def test_label_lists_and_indicators_agree() -> None:
    indicator = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    for given in (indicator, sp.csr_matrix(indicator), [[0, 2], [], [1]], [[2, 0, 0], [], [1]]):
        Y, names = check_labels(given)
        assert names is None and Y.dtype == bool
        assert Y.toarray().astype(int).tolist() == indicator.tolist()


def frame(columns: dict[str, list[Any]]) -> Any:
    return importlib.import_module("pandas").DataFrame(columns)


def test_frames_are_matrices() -> None:
    X = check_features(frame({"a": [0, 2], "b": [1.5, 0], "c": [True, False]}))
    assert X.toarray().tolist() == [[0, 1.5, 1], [2, 0, 0]]
    for columns in ({"a": [1, 0], "b": [1, 1]}, {"a": [True, False], "b": [1.0, 1.0]}):
        Y, names = check_labels(frame(columns))
        assert names is None and Y.toarray().astype(int).tolist() == [[1, 1], [0, 1]]
    series = frame({"tags": [["tea", "milk"], ["tea"]]})["tags"]
    assert check_labels(series)[0].toarray().astype(int).tolist() == [[1, 1], [0, 1]]


def test_names_become_sorted_columns() -> None:
    Y, names = check_labels([["tea", "milk"], [], ["tea"]])
    assert names is not None and names.tolist() == ["milk", "tea"]
    assert Y.toarray().astype(int).tolist() == [[1, 1], [0, 0], [0, 1]]
    Y, names = check_labels(np.array([["tea", "milk"], ["tea", "tea"]]))
    assert names is not None and names.tolist() == ["milk", "tea"]
    assert Y.toarray().astype(int).tolist() == [[1, 1], [0, 1]]


def test_lists_of_the_ids_0_and_1_are_no_matrix() -> None:
    for given in ([[0, 1], [1, 0]], [[0], [1], [0]], [[1, 0], [0], []]):
        Y, _ = check_labels(given)
        assert Y.sum(axis=1).A1.tolist() == [len(row) for row in given]


def test_lists_of_three_zeros_and_ones_are_a_matrix() -> None:
    matrix = [[0, 1, 0], [1, 1, 0]]
    for given in (matrix, np.array(matrix, dtype=float).tolist(), list(np.array(matrix))):
        Y, names = check_labels(given)
        assert names is None and Y.toarray().astype(int).tolist() == matrix


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (np.array([[0.5]]), "Y must hold only 0 and 1, got 0.5. Binarise"),
        (np.array([1, 0]), "Y must be a 0/1 matrix .* got an array of 1 dimension"),
        (["tea"], "Y must be a list of label lists, got 'tea' at position 0. Put a single"),
        ([[0], 1], "Y must be a list of label lists, got 1 at position 1"),
        ([[0, "tea"]], "labels must be all ids or all names, got a mixture of int, str"),
        ([[-1]], "label ids must not be negative, got -1"),
        ([[True, False]], r"labels must be text or whole numbers, got True \(bool\)"),
        ([[("a", 1)]], r"text or whole numbers, got \('a', 1\) \(tuple\). Turn such labels"),
        ([["a"], [b"b"]], r"labels must be text or whole numbers, got b'b' \(bytes\)"),
        ([[0.5]], r"labels must be text or whole numbers, got 0.5 \(float\)"),
        (frame({"a": ["x", "y"]}), "a frame as Y must hold 0 and 1, a column a label, got"),
        (frame({"a": [0, 2]}), "Y must hold only 0 and 1, got 2"),
    ],
)
def test_bad_labels(Y: object, message: str) -> None:
    with pytest.raises(DataFormatError, match=message):
        check_labels(Y)


def test_pairs_need_equal_rows_and_a_label() -> None:
    with pytest.raises(DataFormatError, match="X and Y must have equally many rows, got 2 and 1"):
        check_pair([[1.0], [2.0]], [[0]])
    with pytest.raises(DataFormatError, match="a label on at least one point, got 2 points with"):
        check_pair([[1.0], [2.0]], np.zeros((2, 3)))


@pytest.mark.parametrize("k", [0, 4, 1.5, True, "1"])
def test_k_must_fit_the_labels(k: object) -> None:
    with pytest.raises(DataFormatError, match="k must be a whole number from 1 to .* 3, got"):
        check_k(k, 3)  # type: ignore[arg-type]


def test_label_ids_must_be_those_of_the_model() -> None:
    assert check_label_ids([2, 0], 3).tolist() == [2, 0] and check_label_ids([], 3).size == 0
    for wrong in (3, -1):
        with pytest.raises(DataFormatError, match=f"label ids must be from 0 to 2, got {wrong}. T"):
            check_label_ids([0, wrong], 3)
    for odd in (["tea"], 1, [0.5], [[0]]):
        with pytest.raises(DataFormatError, match="labels must be a list of label ids, got"):
            check_label_ids(odd, 3)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("indices", [[0, 9, 1], [0, -1, 1]])
def test_a_matrix_that_leads_out_of_itself_is_refused(kind: type, indices: list[int]) -> None:
    matrix = kind(np.array([[1, 0], [1, 1]], dtype=np.float32))
    matrix.indices = np.array(indices, np.int32)
    with pytest.raises(DataFormatError, match="X is a damaged sparse matrix"):
        check_features(matrix)
    with pytest.raises(DataFormatError, match="Y is a damaged sparse matrix"):
        check_labels(matrix)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_numbers_too_large_for_32_bits_are_named(kind: Callable[[object], object]) -> None:
    with pytest.raises(DataFormatError, match="X must fit 32-bit floats, got 1e.300 at row 1, col"):
        check_features(kind([[1.0, 0.0], [0.0, 1e300]]))
    with pytest.raises(DataFormatError, match="X must be finite, got inf at row 0"):
        check_features(kind([[np.inf, 0.0]]))


def test_groups_are_numbered_and_a_point_without_one_stands_by_itself() -> None:
    assert check_groups(["a", "b", "a"], 3).tolist() == [0, 1, 0]
    assert check_groups(np.array([7, 7, 3]), 3).tolist() == [0, 0, 1]
    pandas = importlib.import_module("pandas")
    missing = ["a", None, float("nan"), "", pandas.NA, pandas.NaT, "a"]
    assert check_groups(missing, 7).tolist() == [0, 1, 2, 3, 4, 5, 0]
    assert check_groups(pandas.Series(["x", "y"], index=[5, 6]), 2).tolist() == [0, 1]


def test_groups_that_are_none() -> None:
    with pytest.raises(DataFormatError, match="expected a group for each of 3 points, got 2"):
        check_groups(["a", "b"], 3)
    with pytest.raises(DataFormatError, match="one group, 'a': there is no other to hold out"):
        check_groups(["a", "a"], 2)


@pytest.mark.parametrize("wide", [2**31, 2**31 + 10])
def test_more_columns_than_ids_of_32_bits_are_refused(wide: int) -> None:
    """The last ids became negative, and compiled code reads what stands there."""
    matrix = sp.csr_matrix(([1.0, 1.0], ([0, 1], [wide - 1, 3])), shape=(2, wide))
    with pytest.raises(DataFormatError, match=f"X may have 2,147,483,647 columns, got {wide:,}"):
        check_features(matrix)
    with pytest.raises(DataFormatError, match=f"Y may have 2,147,483,647 columns, got {wide:,}"):
        check_labels(matrix)
    with pytest.raises(DataFormatError, match=f"Y may have 2,147,483,647 columns, got {wide:,}"):
        check_labels([[wide - 1], [3]])
    assert check_labels([[2**31 - 2], [3]])[0].indices.tolist() == [2**31 - 2, 3]


def test_an_id_that_no_number_of_64_bits_holds_is_refused() -> None:
    with pytest.raises(DataFormatError, match="Y may have 2,147,483,647 columns"):
        check_labels([[2**70], [3]])
