"""Numbers in fewer bytes, read where they lie."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from dxml._core.compiled import compiled
from dxml._core.packed import NO_SCALE, Packed, add_products, as_bits, value_at
from dxml._core.precision import Precision, pack_sparse, unpack_sparse

PRECISIONS: list[Precision] = ["float32", "float16", "int8"]


@compiled()
def _read_all(values, out):  # type: ignore[no-untyped-def]
    for i in range(len(values)):
        out[i] = value_at(values, i)


def read_all(values: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
    out = np.empty(len(values), dtype=np.float32)
    _read_all(as_bits(values), out)
    return out


def test_every_finite_half_is_read_as_numpy_reads_it() -> None:
    halves = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    expected = halves.astype(np.float32)
    assert np.array_equal(read_all(halves).view(np.uint32), expected.view(np.uint32))  # also -0


def test_bytes_and_floats_are_read_as_they_are() -> None:
    assert read_all(np.array([-127, 0, 5], np.int8)).tolist() == [-127, 0, 5]
    assert read_all(np.array([0.1, -3], np.float32)).tolist() == [np.float32(0.1), -3]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_rows_are_those_of_the_unpacked_matrix(precision: Precision) -> None:
    matrix = sp.random(20, 30, 0.2, format="csr", dtype=np.float32, random_state=0)
    matrix.data -= 0.5
    arrays = pack_sparse("m", matrix, precision)
    packed, whole = Packed("m", arrays), unpack_sparse("m", arrays)
    which = np.array([19, 3, 3, 0])
    assert packed.shape == (20, 30) and packed.precision == precision
    assert np.array_equal(packed.rows(which).toarray(), whole[which].toarray())
    assert np.array_equal(packed.unpacked().toarray(), whole.toarray())
    assert packed.rows(which[:0]).shape == (0, 30)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("n_features", [30, 70_000])
def test_products_with_rows_are_those_of_the_unpacked_matrix(
    precision: Precision, n_features: int
) -> None:
    """Rows in any order, one of them empty, and a vector with features that no row knows."""
    matrix = sp.random(9, n_features, 9 / n_features, "lil", np.float32, 0)
    matrix[4] = 0
    packed = Packed("m", pack_sparse("m", matrix.tocsr(), precision))
    which = np.array([8, 4, 0, 8])
    scale = packed.scale[which] if len(packed.scale) else NO_SCALE
    bounds = packed.indptr[which], packed.indptr[which + 1]
    beyond = 1 << 16  # the same as 0 in two bytes
    features = np.append(np.arange(0, n_features, 2), n_features + beyond).astype(np.int32)
    values = np.random.default_rng(1).random(len(features)).astype(np.float32)
    out = np.full(4, -1, dtype=np.float32)
    add_products(out, features, values, bounds, packed, scale)
    expected = packed.unpacked().toarray()[which][:, features[:-1]] @ values[:-1] - 1
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
    assert out[1] == -1 and out[0] != -1
    again = out.copy()
    add_products(again, features[:0], values[:0], bounds, packed, scale)
    assert np.array_equal(again, out)
