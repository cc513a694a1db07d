"""Feature scaling by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.scaling import FeatureScaler, fit_scaler

SPARSE = sp.csr_matrix(np.array([[3, 4, 0, 0], [0, 0, 0, 0], [0, 0, 0, 2]], np.float32))
DENSE = sp.csr_matrix(np.array([[1, 10], [3, 10], [5, 40]], np.float32))


def test_rows_get_length_one_and_empty_rows_stay_empty() -> None:
    for scaling in ("rows", "auto"):
        scaled = fit_scaler(SPARSE, scaling).transform(SPARSE)  # type: ignore[arg-type]
        expected = [[0.6, 0.8, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
        assert np.allclose(scaled.toarray(), expected)
    assert SPARSE[0, 0] == 3


def test_columns_get_mean_zero_and_spread_one() -> None:
    for scaling in ("columns", "auto"):
        scaler = fit_scaler(DENSE, scaling)  # type: ignore[arg-type]
        assert scaler.mean is not None and scaler.spread is not None
        assert np.allclose(scaler.mean, [3, 20]) and np.allclose(
            scaler.spread, DENSE.toarray().std(0)
        )
        rows = (DENSE.toarray() - [3, 20]) / DENSE.toarray().std(0)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        assert np.allclose(scaler.transform(DENSE).toarray(), rows, atol=1e-6)


def test_a_constant_column_is_no_division_by_zero() -> None:
    for value in (7, 0.1, 1e-20, 3e30):
        constant = sp.csr_matrix(np.full((3, 2), value, np.float32))
        scaler = fit_scaler(constant, "columns")
        assert scaler.spread is not None and scaler.spread.tolist() == [1, 1]
        assert np.isfinite(scaler.transform(constant).toarray()).all()


@pytest.mark.parametrize("unit", [1e-25, 1e-9, 1e9, 1e25])
def test_the_unit_of_measurement_does_not_matter(unit: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4)) * (rng.random((50, 4)) < 0.8) + np.array([0, 0, 1, 1000])
    plain, other = sp.csr_matrix(X), sp.csr_matrix((X * unit).astype(np.float32))
    found = fit_scaler(other, "columns")
    assert found.spread is not None
    np.testing.assert_allclose(found.spread, X.std(axis=0) * unit, rtol=1e-4)
    expected = fit_scaler(plain, "columns").transform(plain).toarray()
    np.testing.assert_allclose(found.transform(other).toarray(), expected, atol=1e-3)


def test_none_changes_nothing() -> None:
    assert (fit_scaler(DENSE, "none").transform(DENSE) != DENSE).nnz == 0


@pytest.mark.parametrize("scaling", ["rows", "columns", "none"])
def test_arrays_round_trip(scaling: str) -> None:
    scaler = fit_scaler(DENSE, scaling)  # type: ignore[arg-type]
    again = FeatureScaler.from_arrays(Arrays(scaler.arrays()), DENSE.shape[1])
    assert np.array_equal(again.transform(DENSE).toarray(), scaler.transform(DENSE).toarray())


@pytest.mark.parametrize("value", [1e10, -1e10, 3e38])
def test_a_value_that_dwarfs_those_of_its_column_stays_finite(value: float) -> None:
    tiny = sp.csr_matrix(np.array([[1, 1e-33], [3, 3e-33], [5, 2e-33]], np.float32))
    scaler = fit_scaler(tiny, "columns")
    scaled = scaler.transform(sp.csr_matrix(np.array([[3, value], [5, 2e-33]], np.float32)))
    assert np.allclose(scaled.toarray(), [[0, np.sign(value)], [1, 0]], atol=1e-6)


def test_a_spread_that_no_fit_leaves_divides_nothing() -> None:
    arrays = fit_scaler(DENSE, "columns").arrays()
    arrays["scaler.spread"] = np.array([1e-40, 0], np.float32)
    scaled = FeatureScaler.from_arrays(Arrays(arrays), 2).transform(DENSE)
    assert np.isfinite(scaled.toarray()).all()
