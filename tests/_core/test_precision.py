"""Fewer bytes: exact where promised, within half a step elsewhere, and the same a second time."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.precision import Precision, pack, pack_sparse, unpack, unpack_sparse

ALL: list[Precision] = ["float32", "float16", "int8"]


def dense() -> np.ndarray:
    """Rows of very different size, one of them zero."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((50, 7)) * 10.0 ** rng.integers(-3, 4, (50, 1))
    rows[3] = 0
    return rows.astype(np.float32)


def sparse(n: int = 50, d: int = 30) -> sp.csr_matrix:
    X = sp.random(n, d, 0.2, format="csr", random_state=0, dtype=np.float32)
    X.data = X.data - np.float32(0.5)
    keep = sp.diags((np.arange(n) % 5 > 0).astype(np.float32))  # every fifth row is empty
    X = sp.csr_matrix(keep @ X)
    X.eliminate_zeros()
    return X


def bound(rows: np.ndarray, precision: Precision) -> np.ndarray:
    """What rounding may cost: half a unit in the last place, or half a step of largest / 127."""
    if precision == "float32":
        return np.zeros_like(rows)
    if precision == "float16":
        return np.maximum(np.abs(rows) * 2.0**-11, 2.0**-25)
    return np.broadcast_to(np.abs(rows).max(axis=1, keepdims=True) / 254 * 1.0001, rows.shape)


@pytest.mark.parametrize("precision", ALL)
def test_dense_arrays_within_half_a_step(precision: Precision) -> None:
    rows = dense()
    packed = pack("a", rows, precision)
    again = unpack("a", packed)
    assert packed["a"].dtype == np.dtype(precision) and again.dtype == np.float32
    assert (np.abs(again - rows) <= bound(rows, precision)).all()
    assert not again[3].any()
    assert ("a.scale" in packed) == (precision == "int8")


@pytest.mark.parametrize("precision", ALL)
def test_sparse_matrices_within_half_a_step(precision: Precision) -> None:
    X = sparse()
    packed = pack_sparse("m", X, precision)
    again = unpack_sparse("m", packed)
    assert packed["m.data"].dtype == np.dtype(precision) and again.dtype == np.float32
    assert packed["m.indices"].dtype == np.uint16 and again.indices.dtype == np.int32
    assert np.array_equal(again.indptr, X.indptr) and np.array_equal(again.indices, X.indices)
    assert (np.abs(again.toarray() - X.toarray()) <= bound(X.toarray(), precision)).all()
    assert np.abs(again - X).sum() > 0 or precision == "float32"


def test_int8_by_hand() -> None:
    rows = np.float32([[127, -127, 63.4, 63.6], [0, 0, 0, 0], [1, 0.5, -0.25, 0]])
    packed = pack("a", rows, "int8")
    assert packed["a"].tolist() == [[127, -127, 63, 64], [0, 0, 0, 0], [127, 64, -32, 0]]
    assert packed["a.scale"].tolist() == [1, 0, np.float32(1) / np.float32(127)]
    matrix = pack_sparse("m", sp.csr_matrix(rows), "int8")
    assert matrix["m.data"].tolist() == [127, -127, 63, 64, 127, 64, -32]
    assert matrix["m.scale"].tolist() == packed["a.scale"].tolist()


@pytest.mark.parametrize("precision", ALL)
def test_packing_what_was_unpacked_changes_nothing(precision: Precision) -> None:
    """A model that was loaded is saved as it was."""
    rows = np.random.default_rng(1).standard_normal((5_000, 4)).astype(np.float32)
    once = unpack("a", pack("a", rows, precision))
    assert np.array_equal(unpack("a", pack("a", once, precision)), once)
    first = unpack_sparse("m", pack_sparse("m", sparse(2_000), precision))
    second = unpack_sparse("m", pack_sparse("m", first, precision))
    assert np.array_equal(first.data, second.data)


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_numbers_outside_the_range_of_float16_keep_their_size(size: float) -> None:
    rows = (dense()[4:5] / np.abs(dense()[4]).max() * size).astype(np.float32)
    assert np.array_equal(unpack("a", pack("a", rows, "float16")), rows)
    X = sp.csr_matrix(rows)
    assert np.array_equal(unpack_sparse("m", pack_sparse("m", X, "float16")).toarray(), rows)


@pytest.mark.parametrize("precision", ALL)
def test_vectors_stay_as_they_are(precision: Precision) -> None:
    vector = np.random.default_rng(0).standard_normal(9).astype(np.float32)
    packed = pack("v", vector, precision)
    assert list(packed) == ["v"] and np.array_equal(unpack("v", packed), vector)


@pytest.mark.parametrize("precision", ALL)
def test_truth_takes_no_values(precision: Precision) -> None:
    Y = sp.csr_matrix(np.random.default_rng(0).random((9, 5)) < 0.3)
    packed = pack_sparse("y", Y, precision)
    assert sorted(packed) == ["y.indices", "y.indptr", "y.shape"]
    again = unpack_sparse("y", packed)
    assert again.dtype == bool and np.array_equal(again.toarray(), Y.toarray())


@pytest.mark.parametrize(("columns", "kind"), [(65_536, np.uint16), (65_537, np.int32)])
def test_ids_take_two_bytes_while_they_fit(columns: int, kind: type) -> None:
    X = sp.csr_matrix((np.float32([1, 2]), [0, columns - 1], [0, 2]), shape=(1, columns))
    packed = pack_sparse("m", X, "float16")
    assert packed["m.indices"].dtype == kind
    again = unpack_sparse("m", packed)
    assert again.indices.tolist() == [0, columns - 1] and again.shape == (1, columns)


@pytest.mark.parametrize("precision", ALL)
@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (3, 4)])
def test_empty(shape: tuple[int, int], precision: Precision) -> None:
    again = unpack_sparse("m", pack_sparse("m", sp.csr_matrix(shape, dtype=np.float32), precision))
    assert again.shape == shape and again.nnz == 0 and again.dtype == np.float32
    zeros = np.zeros(shape, dtype=np.float32)
    assert np.array_equal(unpack("a", pack("a", zeros, precision)), zeros)
