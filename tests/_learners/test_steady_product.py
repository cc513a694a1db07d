"""Products whose sums are added in order: by hand, alone as among others, by numpy as compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dxml._learners import steady_product as module
from dxml._learners.steady_product import SPARE, is_spare, steady_product

ROUTES = {"compiled": module._compiled, "numpy": module._by_numpy}


def drawn(n: int, terms: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(terms)
    shapes = ((n, terms), (terms, m))
    rows, columns = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    return rows, columns


def one_after_the_other(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    out = np.zeros((len(rows), columns.shape[1]), dtype=np.float32)
    for at in range(len(columns)):
        out += rows[:, at, None] * columns[at]
    return out


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("m", [1, 3, 40])
@pytest.mark.parametrize("terms", [0, 1, 3, 64, 201])
def test_sums_are_added_in_order(route: str, m: int, terms: int) -> None:
    rows, columns = drawn(35, terms, m)
    found = ROUTES[route](rows, columns)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, one_after_the_other(rows, columns))
    np.testing.assert_allclose(found, rows.astype(np.float64) @ columns, atol=1e-4)
    for size in (1, 2, 17):
        np.testing.assert_array_equal(ROUTES[route](rows[9 : 9 + size], columns), found[9:][:size])


def test_matrices_need_not_be_contiguous() -> None:
    rows, columns = drawn(20, 31, 6)
    found = steady_product(np.asfortranarray(rows), np.asfortranarray(columns))
    np.testing.assert_array_equal(found, steady_product(rows, columns))


def test_numpy_multiplies_what_is_little(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    for name in ("_compiled", "_by_numpy"):
        monkeypatch.setattr(module, name, lambda *given, name=name: told.append(name))
    assert not is_spare(1, 1), "numba is imported by other tests"
    monkeypatch.setattr(module, "spare", lambda rows: rows <= 64)
    assert is_spare(64, SPARE // 64) and not is_spare(64, SPARE // 64 + 1)
    assert not is_spare(65, 1)
    steady_product(*drawn(64, 5, 5))
    steady_product(*drawn(65, 5, 5))
    assert told == ["_by_numpy", "_compiled"]
