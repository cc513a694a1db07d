"""Frames as arrays, and the names of their columns."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest

from dxml._core.frames import check_feature_names, column_names, frame_values, is_frame
from dxml.exceptions import DataFormatError


@pytest.fixture(params=["pandas", "polars"])
def library(request: pytest.FixtureRequest) -> Any:
    return importlib.import_module(request.param)


def test_a_frame_is_told_from_an_array(library: Any) -> None:
    frame = library.DataFrame({"a": [1, 2], "b": [0.5, 0.0]})
    assert is_frame(frame) and not is_frame(np.eye(2)) and not is_frame(frame["a"])
    assert frame_values(frame).tolist() == [[1, 0.5], [2, 0]]
    names = column_names(frame)
    assert names is not None and names.dtype == object and names.tolist() == ["a", "b"]


def test_numbers_are_no_names() -> None:
    frame = importlib.import_module("pandas").DataFrame(np.eye(2))
    assert column_names(frame) is None and column_names(np.eye(2)) is None


def test_columns_of_two_kinds_are_refused() -> None:
    frame = importlib.import_module("pandas").DataFrame({"a": [1], 3: [2]})
    with pytest.raises(DataFormatError, match="all texts or all numbers, got 3 among texts. Turn"):
        column_names(frame)


def test_other_columns_are_named(library: Any) -> None:
    names = column_names(library.DataFrame({"a": [1], "b": [2], "c": [3]}))

    def said(*columns: str) -> str:
        with pytest.raises(DataFormatError) as error:
            check_feature_names(names, library.DataFrame({name: [1] for name in columns}), "KNN")
        return str(error.value)

    assert "must be in the same order as they were in fit" in said("b", "a", "c")
    assert "unseen at fit time:\n- x\n- y\n" in said("a", "y", "b", "c", "x")
    assert "yet now missing:\n- b\n- c\n" in said("a")
    many = said("a", "b", "c", *(f"x{i}" for i in range(9)))
    assert "- x4\n- ...\n" in many and "x5" not in many


def test_names_on_one_side_only_are_a_warning(library: Any) -> None:
    frame = library.DataFrame({"a": [1]})
    with pytest.warns(UserWarning, match="X does not have valid feature names, but KNN was fit"):
        check_feature_names(column_names(frame), np.ones((1, 1)), "KNN")
    with pytest.warns(UserWarning, match="X has feature names, but KNN was fitted without"):
        check_feature_names(None, frame, "KNN")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_feature_names(column_names(frame), frame, "KNN")
        check_feature_names(None, np.ones((1, 1)), "KNN")
