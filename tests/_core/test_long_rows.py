"""Rows of 2³¹ values and more, by few: what scipy does to a matrix, done without its copies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core import long_rows
from dxml._core.long_rows import LongRows, by_column
from dxml._core.sparse import canonical, plain_csr
from dxml.data import make_planted
from dxml.data._mapped import read_mapped, write_mapped
from dxml.methods import load_model, method_class


@pytest.fixture
def plain() -> sp.csr_matrix:
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(30, 12)) * (rng.random((30, 12)) < 0.3)
    dense[[0, 7, 29]] = 0
    return sp.csr_matrix(dense.astype(np.float32))


@pytest.fixture
def long(plain: sp.csr_matrix, monkeypatch: pytest.MonkeyPatch) -> LongRows:
    """The same, as if it were long."""
    monkeypatch.setattr(long_rows, "LONG", 1)
    matrix = plain_csr(plain.data, plain.indices, plain.indptr, plain.shape)
    assert isinstance(matrix, LongRows) and matrix.indptr.dtype == np.int64
    return matrix


ROWS: dict[str, Any] = {
    "a slice": slice(3, 9),
    "a slice from the end": slice(-4, None),
    "nothing": slice(5, 2),
    "all": slice(None),
    "a mask": np.arange(30) % 3 == 1,
    "ids": np.array([4, 4, 29, 0]),
    "ids from the end": np.array([-1, -30]),
    "a list": [2, 3],
    "every other one": slice(0, 20, 2),
    "one row": 5,
    "a block": (slice(2, 6), slice(1, 4)),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_those_that_scipy_takes(name: str, plain: sp.csr_matrix, long: LongRows) -> None:
    found = long[ROWS[name]]
    np.testing.assert_array_equal(found.toarray(), plain[ROWS[name]].toarray())


def test_rows_outside_are_an_error(long: LongRows) -> None:
    with pytest.raises(IndexError, match="row 30 is outside of 30 rows"):
        long[np.array([1, 30])]


def test_short_results_are_plain(plain: sp.csr_matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_rows, "LONG", plain.nnz)
    matrix = plain_csr(plain.data, plain.indices, plain.indptr, plain.shape)
    part = matrix[:20]
    assert isinstance(matrix, LongRows) and not isinstance(part, LongRows)
    assert part.indptr.dtype == part.indices.dtype == np.int32


def test_columns_are_those_of_scipy(plain: sp.csr_matrix, long: LongRows) -> None:
    values, rows, starts = by_column(long)
    expected = plain.tocsc()
    for found, wanted in ((values, "data"), (rows, "indices"), (starts, "indptr")):
        np.testing.assert_array_equal(found, getattr(expected, wanted))
    assert rows.dtype == np.int32 and starts.dtype == np.int64
    assert long.tocsc().indices.dtype == np.int32


def test_no_operation_makes_ids_longer(long: LongRows) -> None:
    """scipy would keep them in 64 bits, which no folder takes."""
    for found in (long.copy(), abs(long), long.astype(np.float64), -long, canonical(long)):
        assert found.indices.dtype == np.int32 and found.indptr.dtype == np.int64


@pytest.mark.parametrize("block", [1, 5, 1 << 24])
def test_order_is_looked_at(block: int, long: LongRows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_rows, "BLOCK", block)
    assert long.has_canonical_format
    lengths = np.diff(long.indptr)
    for row in np.flatnonzero(lengths > 1):
        ids, place = long.indices.copy(), long.indptr[row]
        ids[place], ids[place + 1] = ids[place + 1], ids[place]
        assert not LongRows.over(long.data, ids, long.indptr, long.shape).has_canonical_format
        ids[place] = ids[place + 1]
        assert not LongRows.over(long.data, ids, long.indptr, long.shape).has_canonical_format


def test_values_that_stand_twice_are_added_up(plain: sp.csr_matrix, long: LongRows) -> None:
    arrays = np.repeat(long.data / 2, 2), np.repeat(long.indices, 2), long.indptr * 2
    found = canonical(LongRows.over(*arrays, long.shape))
    np.testing.assert_array_equal(found.toarray(), plain.toarray())
    zeros = long.copy()
    zeros.data[::2] = 0
    assert canonical(zeros).nnz == long.nnz // 2


@pytest.mark.parametrize("settings", [{}, {"candidates": "nearest", "width": 0}])
@pytest.mark.parametrize("method", ["knn", "joint"])
def test_a_mapped_folder_as_long_ones_are(
    method: str, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trained from the files, saved, loaded, asked: ids of 32 bits, boundaries of 64."""
    data = make_planted(200, 60, 12, labels_per_point=2, features_per_point=8, random_state=0)
    settings = settings if method == "joint" else {}
    expected = method_class(method)(**settings).fit(data.X, data.Y).predict_topk(data.X, 3)
    monkeypatch.setattr(long_rows, "LONG", 1)
    monkeypatch.setattr("dxml.data._mapped.SHORT", 0)
    write_mapped(tmp_path / "d.dxml", [(data.X[:90], data.Y[:90]), (data.X[90:], data.Y[90:])])
    mapped = read_mapped(tmp_path / "d.dxml")
    assert isinstance(mapped.X, LongRows) and mapped.X.indices.dtype == np.int32
    model = method_class(method)(**settings).fit(mapped.X, mapped.Y)
    again = load_model(model.save(tmp_path / "model"))
    for found in (model.predict_topk(mapped.X, 3), again.predict_topk(mapped.X, 3)):
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.scores, expected.scores)
