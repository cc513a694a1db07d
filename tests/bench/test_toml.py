"""Settings in TOML that are damaged, or of another kind than is meant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dxml.bench._own_data import read_own_data
from dxml.bench._spec import read_experiment
from dxml.exceptions import ParameterError


@pytest.mark.parametrize("read", [read_own_data, read_experiment])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'name = "\xff"', "not UTF-8 at byte 9. Save the file as UTF-8"),
        (b"name = [" * 5000, "no valid TOML"),
        (b"name = 2001-01-01", "name in the (file|experiment) must be a text, got datetime.date"),
        (b" " * (17 << 20), "no file of settings is longer than 16 MB"),
    ],
    ids=["no UTF-8", "deep", "a date", "too long"],
)
def test_what_is_no_file_of_settings(
    tmp_path: Path, read: object, content: bytes, said: str
) -> None:
    path = tmp_path / "own.toml"
    path.write_bytes(content)
    with pytest.raises(ParameterError, match=rf"own\.toml: {said}"):
        read(path)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("runs = 3", "runs in the experiment must be a list, got 3"),
        ("runs = [3]", "runs block 1 must be a table, got 3"),
        (
            '[[runs]]\nmethods = [1]\ndatasets = ["bibtex"]',
            "methods in runs block 1 must hold texts",
        ),
        (
            '[[runs]]\nmethods = ["knn"]\ndatasets = "bibtex"',
            "datasets in runs block 1 must be a list",
        ),
        ('[[runs]]\nmethods = "all"\ndatasets = [[]]', "datasets in runs block 1 must hold texts"),
        ('[[runs]]\nk = nan\nmethods = "all"', "k in runs block 1 must be a whole number, got nan"),
        ('[[runs]]\nparameters = 1\nmethods = "all"', "parameters in runs block 1 must be a table"),
        (
            "[[runs]]\ntime_limit = true",
            "time_limit in runs block 1 must be a whole number or a number",
        ),
    ],
)
def test_kinds_in_an_experiment(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text('name = "own"\n' + text, "utf-8")
    with pytest.raises(ParameterError, match=re.escape(said)):
        read_experiment(path)
