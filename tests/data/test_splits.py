"""Split files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dxml.data import read_split
from dxml.exceptions import DataFormatError


def save(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trSplit.txt"
    path.write_text(text)
    return path


def test_rows_of_a_column_from_zero(tmp_path: Path) -> None:
    path = save(tmp_path, "3 1\r\n1 2\n\n2 4")
    np.testing.assert_array_equal(read_split(path, 1), [2, 0, 1])
    np.testing.assert_array_equal(read_split(path, 2, n_samples=4), [0, 1, 3])


@pytest.mark.parametrize(
    ("text", "split", "message"),
    [
        ("1 2\n", 3, "line 1: there is no split 3; the line has 2 columns. Use a split in 1..2"),
        ("1 2\n", 0, "line 1: there is no split 0"),
        ("1 2\n3\n", 2, "line 2: there is no split 2; the line has 1 columns"),
        ("1\n5\n", 1, "line 2: row 5 is outside 1..4 of the data. Row numbers start at 1"),
        ("0\n", 1, "line 1: row 0 is outside 1..4"),
        ("1\nx\n", 1, "line 2: expected a row number, found 'x'"),
        ("1\n2\n1\n", 1, "line 3: row 1 stands more than once in split 1"),
        ("", 1, "the file is empty"),
    ],
)
def test_a_bad_split_file(tmp_path: Path, text: str, split: int, message: str) -> None:
    with pytest.raises(DataFormatError, match=message):
        read_split(save(tmp_path, text), split, n_samples=4)
