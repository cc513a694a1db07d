"""Odd numbers and shapes, every method: a clear error, or an answer that is finite and in range.

One table. What is refused is refused with an error that says so; what is accepted is ranked.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from dxml._core import long_rows
from dxml._core.long_rows import LongRows
from dxml._core.scaling import fit_scaler
from dxml._core.sparse import canonical
from dxml._core.threads import threads
from dxml.data import make_planted
from dxml.exceptions import DataFormatError
from dxml.methods import METHODS, load_model, method_class
from dxml.topk import TopK

from .fuzz.folders import QUICK

Rows = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]
DATA = make_planted(40, 12, 5, labels_per_point=2, features_per_point=4, random_state=0)
SPARSE, TRUTH = DATA.X.toarray().astype(np.float64), DATA.Y.toarray()
UNIT = SPARSE / np.abs(SPARSE).max()
DENSE = np.random.default_rng(0).normal(size=SPARSE.shape)
DENSE /= np.abs(DENSE).max()
EVEN = np.arange(len(SPARSE))[:, None] % 2 == 0

LEGAL: dict[str, tuple[Rows, Labels]] = {
    "denormals": (UNIT * 1e-40, TRUTH),
    "the least denormal": ((UNIT > 0) * 1.5e-45, TRUTH),
    "some rows of denormals": (np.where(EVEN, UNIT * 1e-42, UNIT), TRUTH),
    "denormals, dense": (DENSE * 1e-40, TRUTH),
    "1e-38": (UNIT * 1e-38, TRUTH),
    "1e-38, dense": (DENSE * 1e-38, TRUTH),
    "1e38": (UNIT * 3e38, TRUTH),
    "1e38, dense": (DENSE * 3e38, TRUTH),
    "1e38 beside 1e-38": (np.where(EVEN, UNIT * 3e38, UNIT * 1e-38), TRUTH),
    "rows of zeros": (np.where(EVEN, 0, SPARSE), TRUTH),
    "nothing but zeros": (SPARSE * 0, TRUTH),
    "a constant column": (np.column_stack([np.ones(len(DENSE)), DENSE[:, 1:]]), TRUTH),
    "nothing but ones": (np.ones_like(SPARSE), TRUTH),
    "one label": (SPARSE, TRUTH[:, :1]),
    "one point": (SPARSE[:1], np.ones_like(TRUTH[:1])),
    "two points": (SPARSE[:2], np.ones_like(TRUTH[:2])),
    "all labels everywhere": (SPARSE, np.ones_like(TRUTH)),
    "one point with labels": (SPARSE, np.where(np.arange(len(TRUTH))[:, None] == 3, True, False)),
}
REFUSED: dict[str, tuple[Rows, str]] = {
    "NaN": (np.where(EVEN, np.nan, SPARSE), "X must be finite, got NaN at row 0, column 0"),
    "infinity": (np.where(EVEN, -np.inf, SPARSE), "X must be finite, got -inf at row 0, column 0"),
    "1e300": (UNIT * 1e300, "X must fit 32-bit floats, got .*e\\+(299|300)"),
}
MAY_REFUSE = {  # of a method, what it cannot do with a shape, and says
    ("dxml", "one label"): "the label graph has no edge",
    ("dxml", "one point"): "n_partitions must be at most the number of labelled points, 1, got 2",
    ("dxml", "one point with labels"): "n_partitions must be at most",
}


def fresh(method: str) -> Any:
    return method_class(method)(**QUICK.get(method, {}))


def check(ranking: TopK, n: int, n_labels: int) -> None:
    """Finite scores that do not rise, labels in range, none twice; -1 where there is none."""
    assert len(ranking) == n
    there = ranking.indices >= 0
    assert ((ranking.indices < n_labels) & (ranking.indices >= -1)).all()
    assert np.isfinite(ranking.scores[there]).all()
    for row, scores, good in zip(ranking.indices, ranking.scores, there, strict=True):
        assert len(set(row[good])) == good.sum() and (np.diff(scores[good]) <= 0).all()


def same(one: TopK, two: TopK) -> bool:
    return np.array_equal(one.indices, two.indices) and np.array_equal(one.scores, two.scores)


@pytest.fixture(scope="module")
def fitted() -> Callable[[str], Any]:
    """One model a method, of plain data."""
    found: dict[str, Any] = {}

    def model(method: str) -> Any:
        if method not in found:
            found[method] = fresh(method).fit(DATA.X, DATA.Y)
        return found[method]

    return model


@pytest.mark.parametrize("name", LEGAL)
@pytest.mark.parametrize("method", METHODS)
def test_learning_from_odd_numbers(method: str, name: str) -> None:
    X, Y = LEGAL[name]
    if (method, name) in MAY_REFUSE:
        with pytest.raises(DataFormatError, match=MAY_REFUSE[method, name]):
            fresh(method).fit(X, Y)
        return
    model = fresh(method).fit(sp.csr_matrix(X), Y)
    n_labels = Y.shape[1]
    check(model.predict_topk(sp.csr_matrix(X[:9]), min(3, n_labels)), len(X[:9]), n_labels)
    check(model.predict_topk(SPARSE[:3], min(3, n_labels)), 3, n_labels)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("method", METHODS)
def test_what_is_no_number_is_refused(method: str, name: str, fitted: Callable[[str], Any]) -> None:
    X, said = REFUSED[name]
    with pytest.raises(DataFormatError, match=said):
        fresh(method).fit(X, TRUTH)
    with pytest.raises(DataFormatError, match=said):
        fitted(method).predict_topk(X, 3)


@pytest.mark.parametrize("method", METHODS)
def test_asking_with_odd_numbers(method: str, fitted: Callable[[str], Any]) -> None:
    model, of_dense = fitted(method), fresh(method).fit(DENSE, TRUTH)
    of_tiny = fresh(method).fit(np.column_stack([DENSE[:, :1] * 1e-33, DENSE[:, 1:]]), TRUTH)
    for X, _ in LEGAL.values():
        check(model.predict_topk(X, 3), len(X), 5)
        check(of_dense.predict_topk(X, 3), len(X), 5)
        check(of_tiny.predict_topk(X, 3), len(X), 5)
    assert len(model.predict_topk(SPARSE[:0], 3)) == 0
    assert len(model.predict_topk(sp.csr_matrix((0, 12), dtype=np.float32), 3)) == 0


@pytest.mark.parametrize("method", METHODS)
def test_the_form_of_a_matrix_does_not_matter(method: str, fitted: Callable[[str], Any]) -> None:
    """Unsorted, repeated and 64-bit indices, stored zeros, other layouts and number types."""
    model, plain = fitted(method), DATA.X
    expected = model.predict_topk(plain, 3)
    turned = plain.copy()
    for start, end in zip(plain.indptr[:-1], plain.indptr[1:], strict=True):
        turned.indices[start:end] = plain.indices[start:end][::-1]
        turned.data[start:end] = plain.data[start:end][::-1]
    turned.has_sorted_indices = False
    halves = sp.csr_matrix(
        (np.repeat(plain.data / 2, 2), np.repeat(plain.indices, 2), plain.indptr * 2), plain.shape
    )
    zeros = sp.coo_matrix(
        (
            [*plain.tocoo().data, 0.0],
            ([*plain.tocoo().row, 0], [*plain.tocoo().col, 11]),
        ),
        plain.shape,
    ).tocsr()
    long = plain.copy()
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    forms = [turned, halves, zeros, long, plain.tocsc(), plain.tocoo(), plain.astype(np.float64)]
    before = [(form.data.copy(), form.nnz) for form in forms]
    for form in forms:
        assert same(model.predict_topk(form, 3), expected)
    for form, (data, nnz) in zip(forms, before, strict=True):
        assert form.nnz == nnz and np.array_equal(form.data, data), "what was given has changed"
    assert same(fresh(method).fit(turned, DATA.Y).predict_topk(plain, 3), expected)
    assert same(fresh(method).fit(long, DATA.Y).predict_topk(plain, 3), expected)


@pytest.mark.thorough
@pytest.mark.parametrize("method", METHODS)
def test_indices_of_64_bits_all_the_way(
    method: str, fitted: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As 2³¹ stored values have them: here few values do, and are not made shorter."""
    expected = fitted(method).predict_topk(DATA.X, 3)
    monkeypatch.setattr(long_rows, "LONG", 0)
    X, Y = DATA.X.copy(), DATA.Y.copy()
    for part in (X, Y):
        part.indices, part.indptr = part.indices.astype(np.int64), part.indptr.astype(np.int64)
        assert isinstance(canonical(part), LongRows)
        assert canonical(part).indptr.dtype == np.int64
    long = fresh(method).fit(X, Y)
    assert same(long.predict_topk(X, 3), expected)
    assert same(load_model(long.save(tmp_path)).predict_topk(X, 3), expected)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_bits_with_one_and_two_threads_and_after_loading(
    method: str, fitted: Callable[[str], Any], tmp_path: Path
) -> None:
    expected = fitted(method).predict_topk(DATA.X, 3)
    with threads(1):
        one = fresh(method).fit(DATA.X, DATA.Y)
        assert same(one.predict_topk(DATA.X, 3), expected)
    assert same(load_model(one.save(tmp_path)).predict_topk(DATA.X, 3), expected)


def test_rows_of_denormals_get_length_one() -> None:
    """Up to what is left of their digits."""
    X = sp.csr_matrix(np.array([[3e-40, 4e-40], [3, 4], [0, 0], [1e-45, 0]], np.float32))
    scaled = fit_scaler(X, "rows").transform(X).toarray()
    np.testing.assert_allclose(scaled, [[0.6, 0.8], [0.6, 0.8], [0, 0], [1, 0]], rtol=1e-5)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_scores_that_are_not_finite_are_an_error(
    bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As damaged weights make them, whose checksums are right: nobody gets them as an answer."""
    data = make_planted(60, 20, 5, labels_per_point=2, features_per_point=6, random_state=0)
    model = method_class("knn")().fit(data.X, data.Y)
    said = TopK(np.zeros((60, 1), np.int32), np.full((60, 1), bad, np.float32))
    monkeypatch.setattr(model, "_rank", lambda X, k: said)
    with pytest.raises(DataFormatError, match="some scores of knn are not finite"):
        model.predict_topk(data.X, 1)
