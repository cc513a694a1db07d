"""Dataset: one form whatever comes in, subsets, statistics."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_array, csr_matrix

from dxml.data import Dataset
from dxml.exceptions import DataFormatError, ParameterError

X = np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, 3]])
Y = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0]])


@pytest.mark.parametrize("kind", [np.array, csr_matrix, csr_array, csc_matrix])
def test_every_matrix_becomes_canonical_csr(kind: type) -> None:
    dataset = Dataset(kind(X), kind(Y))
    for matrix, expected, dtype in ((dataset.X, X, np.float32), (dataset.Y, Y, np.bool_)):
        assert type(matrix) is csr_matrix
        assert matrix.dtype == dtype
        assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
        assert matrix.has_canonical_format
        np.testing.assert_array_equal(matrix.toarray(), expected.astype(dtype))


def test_duplicates_and_zeros_go_and_the_given_matrix_stays() -> None:
    given = csr_matrix(
        (np.array([1, 2, 0, 5], np.float32), np.array([2, 2, 0, 1]), np.array([0, 3, 4]))
    )
    given_labels = csr_matrix(
        (np.array([True, False, True]), np.array([1, 0, 1]), np.array([0, 3, 3])), shape=(2, 2)
    )
    dataset = Dataset(given, given_labels)
    np.testing.assert_array_equal(dataset.X.toarray(), [[0, 0, 3], [0, 5, 0]])
    np.testing.assert_array_equal(dataset.Y.toarray(), [[False, True], [False, False]])
    assert (dataset.X.nnz, dataset.Y.nnz) == (2, 1)
    assert (given.nnz, given_labels.nnz) == (4, 3)


def test_nothing_is_copied_where_nothing_changes() -> None:
    given = csr_matrix(X.astype(np.float32))
    assert np.shares_memory(Dataset(given, csr_matrix(Y)).X.data, given.data)


def test_take_by_rows_and_by_mask() -> None:
    dataset = Dataset(csr_matrix(X), csr_matrix(Y), "d", propensity=(0.6, 2.6))
    taken = dataset.take([2, 0])
    np.testing.assert_array_equal(taken.X.toarray(), X[[2, 0]])
    np.testing.assert_array_equal(taken.Y.toarray(), Y[[2, 0]])
    assert (taken.name, taken.propensity) == ("d", (0.6, 2.6))
    np.testing.assert_array_equal(
        dataset.take(np.array([True, False, True])).X.toarray(), X[[0, 2]]
    )
    assert dataset.take([]).X.shape == (0, 3)
    with pytest.raises(ParameterError, match=r"a mask of shape \(2,\) was given for 3 points"):
        dataset.take(np.array([True, False]))


def test_describe() -> None:
    assert Dataset(csr_matrix(X), csr_matrix(Y)).describe() == {
        "points": 3,
        "features": 3,
        "labels": 4,
        "labels a point": 1.0,
        "points a label": 0.75,
        "features a point": 1.0,
        "points without labels": 1,
        "points without features": 1,
        "labels without points": 2,
        "density": 1 / 3,
    }
    empty = Dataset(csr_matrix((0, 3)), csr_matrix((0, 2))).describe()
    assert {name for name, value in empty.items() if value} == {
        "features",
        "labels",
        "labels without points",
    }


def test_rows_and_names_must_fit() -> None:
    with pytest.raises(DataFormatError, match=r"X has 3 rows but Y has 2. Give one row"):
        Dataset(csr_matrix(X), csr_matrix(Y[:2]))
    with pytest.raises(DataFormatError, match=r"label_names holds 2 names but there are 4 labels"):
        Dataset(csr_matrix(X), csr_matrix(Y), label_names=("a", "b"))
    named = Dataset(csr_matrix(X), csr_matrix(Y), feature_names=("a", "b", "c"))
    assert named.feature_names == ("a", "b", "c")
    assert repr(named) == "Dataset('', 3 points, 3 features, 4 labels)"


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_features_must_be_finite_numbers_of_32_bits(value: float) -> None:
    with pytest.raises(DataFormatError, match="X must"):
        Dataset(np.array([[1.0, value]]), np.array([[1]]))


def test_graded_labels_are_not_taken_for_true() -> None:
    with pytest.raises(DataFormatError, match="only 0 and 1, got 3"):
        Dataset(np.array([[1.0], [2.0]]), np.array([[3], [0]]))
