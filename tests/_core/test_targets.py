"""Labels in every form that a user has them in."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning

from dxml._core.targets import Target, as_values, encode_target, names_in, read_target
from dxml.exceptions import DataFormatError

MATRIX = [[1, 0, 1], [0, 1, 0]]


def series(library: str, values: list[Any]) -> Any:
    return importlib.import_module(library).Series(values)


def frame(library: str, columns: dict[str, list[Any]]) -> Any:
    return importlib.import_module(library).DataFrame(columns)


@pytest.mark.parametrize(
    ("Y", "names", "target"),
    [
        (np.array(MATRIX), None, Target("dense", "int64")),
        (np.array(MATRIX, dtype=bool), None, Target("dense", "bool")),
        (MATRIX, None, Target("dense", "int64")),
        (sp.csr_matrix(MATRIX), None, Target("sparse", "bool")),
        ([[0, 2], [1]], None, Target("lists", "bool")),
        ((row for row in [[0, 2], [1]]), None, Target("lists", "bool")),
        ([["a", "c"], ["b"]], ["a", "b", "c"], Target("lists", "bool")),
        (frame("pandas", {"z": [1, 0], "a": [0, 1], "b": [1, 0]}), ["z", "a", "b"], "dense"),
        (frame("polars", {"z": [1, 0], "a": [0, 1], "b": [1, 0]}), ["z", "a", "b"], "dense"),
    ],
)
def test_matrices_and_lists(Y: Any, names: list[str] | None, target: Any) -> None:
    labels, found, form = read_target(Y)
    assert labels.toarray().astype(int).tolist() == MATRIX
    assert (None if found is None else found.tolist()) == names
    assert form in (target, Target("dense", "int64"))


@pytest.mark.parametrize(
    ("Y", "classes"),
    [
        (np.array([7, 3, 7]), [3, 7]),
        ([7.0, 3.0, 7.0], [3, 7]),
        (["b", "a", "b"], ["a", "b"]),
        (np.array(["b", "a", "b"], dtype=object), ["a", "b"]),
        ([True, False, True], [False, True]),
        (series("pandas", ["b", "a", "b"]), ["a", "b"]),
        (series("polars", [7, 3, 7]), [3, 7]),
    ],
)
def test_one_label_a_point(Y: Any, classes: list[Any]) -> None:
    labels, found, target = read_target(Y)
    assert target.form == "values" and found is not None and found.tolist() == classes
    assert labels.toarray().astype(int).tolist() == [[0, 1], [1, 0], [0, 1]]


def test_a_series_of_lists_is_lists() -> None:
    for library in ("pandas", "polars"):
        assert read_target(series(library, [["a"], ["a", "b"]]))[2].form == "lists"


def test_a_column_of_values_is_flattened_with_a_warning() -> None:
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed when a 1d array"):
        assert read_target(np.array([[0], [2], [1]]))[2].form == "values"
    assert read_target(np.array([[0], [1], [1]]))[2].form == "dense", "one label, 0 or 1"


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (None, "requires y to be passed, but the target y is None. Give the labels"),
        ([0.5, 1.0], "Unknown label type: .* got 0.5, as of a continuous quantity"),
        ([1.0, np.nan], "Input y contains NaN. Drop points"),
        ([1.0, np.inf], "Input y contains infinity"),
        (["a", 1], "labels must be all texts or all numbers, got int, str"),
        (np.array([1j]), "Unknown label type: .* got complex128. Turn such labels into text"),
        (["a", ["b"]], "Y must be a list of label lists, got 'a' at position 0"),
    ],
)
def test_what_is_no_label_is_named(Y: Any, message: str) -> None:
    with pytest.raises(DataFormatError, match=message):
        read_target(Y)


def test_truth_in_the_columns_of_a_model() -> None:
    names = np.array(["a", "b", "c"])
    expected = [[0, 0, 1], [1, 0, 0]]

    def dense(Y: Any) -> list[list[int]]:
        found = encode_target(Y, names)
        if isinstance(found, list):
            return [[int(i in row) for i in range(3)] for row in found]
        return np.asarray(found.todense() if sp.issparse(found) else found).astype(int).tolist()

    for library in ("pandas", "polars"):
        assert dense(frame(library, {"new": [1, 1], "c": [1, 0], "a": [0, 1]})) == expected
    assert (
        dense(["c", "a"]) == dense([["c"], ["new", "a"]]) == dense(np.array(expected)) == expected
    )
    assert dense(["new", "a"]) == [[0, 0, 0], [1, 0, 0]]
    assert names_in(["c", "new"]) == names_in([["c"], ["new"]]) == {"c", "new"}
    assert names_in(frame("pandas", {"c": [1, 0], "new": [0, 1]})) == {"c", "new"}
    assert names_in(np.array(expected)) == names_in(expected) == set()


NO_DTYPES = ("datetime64", "O", "08759f6af1cc", "f4,08", "1000000000f8", "U536870911", "int8\n", "")


def test_a_form_is_stored() -> None:
    for target in (Target("dense", "int64"), Target("values", "str"), Target()):
        assert Target.from_state(target.state(), has_names=False) == target
    assert Target.from_state(None, has_names=True).form == "lists"
    assert Target.from_state(None, has_names=False).form == "sparse"
    assert Target("values").names([3, 7], 2).tolist() == [3, 7]
    for target in (Target("round"), *(Target("dense", dtype) for dtype in NO_DTYPES)):  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="no form of labels"):
            Target.from_state(target.state(), has_names=False)
    with pytest.raises(TypeError, match="int7"):
        Target.from_state(Target("dense", "int7").state(), has_names=False)
    for names, count in (([3, 7], 3), ([3, None], 2)):
        with pytest.raises(ValueError, match="a value for each label"):
            Target("values").names(names, count)


def test_values_are_told_from_lists() -> None:
    assert as_values("abc") is None and as_values([["a"]]) is None and as_values([]) is None
    assert as_values(sp.csr_matrix(MATRIX)) is None
