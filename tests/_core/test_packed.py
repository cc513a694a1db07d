"""Numbers in fewer bytes, read where they lie."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from dxml._core.compiled import compiled
from dxml._core.packed import Packed, as_bits, value_at
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
