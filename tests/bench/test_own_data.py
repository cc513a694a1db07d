"""A data set of one's own, from a TOML file; tests/bench/test_board.py runs a benchmark on one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dxml.bench._own_data import is_own_data, read_own_data
from dxml.bench._sources import check_source, load_parts, load_text_parts, n_splits
from dxml.data import make_planted, write
from dxml.exceptions import ParameterError


def test_files_of_features_are_parts_of_a_run(tmp_path: Path) -> None:
    """A validation part is cut from the training points, and the test part has their widths."""
    data = make_planted(50, 30, 5, random_state=0)
    for name in ("train", "test"):
        write(data, tmp_path / f"{name}.svm")
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\ntrain = "train.svm"\ntest = "test.svm"\n', "utf-8")
    assert is_own_data(str(path)) and n_splits(str(path)) == 1
    check_source(str(path))
    train, test = load_parts(str(path), 1)
    assert train.X.shape == test.X.shape and train.name == test.name == "mine"
    assert (train.Y != test.Y).nnz == 0
    kept, held = load_parts(str(path), 1, "validation")
    assert (kept.n_samples, held.n_samples) == (40, 10)
    with pytest.raises(ParameterError, match="gives features alone"):
        load_text_parts(str(path), 1)


@pytest.mark.parametrize(
    ("widths", "said"),
    [
        ((30, 7), "train.txt has 5 labels and test.txt has 7. Write both files with the same"),
        ((31, 5), "train.txt has 30 features and test.txt has 31"),
    ],
)
def test_files_of_other_widths_are_refused(
    tmp_path: Path, widths: tuple[int, int], said: str
) -> None:
    """A method was trained and stored before the scores failed on it."""
    write(make_planted(50, 30, 5, random_state=0), tmp_path / "train.txt")
    write(make_planted(20, *widths, random_state=0), tmp_path / "test.txt")
    (tmp_path / "mine.toml").write_text('train = "train.txt"\ntest = "test.txt"\n', "utf-8")
    with pytest.raises(ParameterError, match=said):
        load_parts(str(tmp_path / "mine.toml"), 1)


def test_tables_of_texts(tmp_path: Path) -> None:
    """Labels of both tables have a column; features are of the training texts alone."""
    rows = {"train": [("a fish swims", "x;y"), ("a fish sinks", "x")], "test": [("fish salt", "z")]}
    for name, own in rows.items():
        lines = (json.dumps({"t": text, "l": labels}) + "\n" for text, labels in own)
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), "utf-8")
    path = tmp_path / "texts.toml"
    given = 'text = "t"\nlabels = "l"\nlabel_separator = ";"\npropensity = [0.6, 2.6]\n'
    path.write_text('train = "train.jsonl"\ntest = "test.jsonl"\n' + given, "utf-8")
    train, test = read_own_data(path).load()
    assert train.Y.toarray().tolist() == [[True, True, False], [True, False, False]]
    assert test.Y.toarray().tolist() == [[False, False, True]]
    assert train.n_features == test.n_features and train.propensity == (0.6, 2.6)
    assert train.name == "texts"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('train = "a"', "test is missing"),
        (
            'train = "a"\ntest = "b"\nlabel = "c"',
            "unknown key 'label' in the file; did you mean 'labels'",
        ),
        ('train = "a"\ntest = "b"\ntext = "c"', "needs both text and labels"),
        ('train = "a"\ntest = "b"\npropensity = 3', "propensity in the file must be a list, got 3"),
        (
            'train = "a"\ntest = "b"\npropensity = [1, nan]',
            "propensity must be [A, B], got [1, nan]",
        ),
        ('train = "a"\ntest = "b"\npropensity = ["a", 1]', "propensity must be [A, B]"),
        ('train = "a"\ntest = 3', "d.toml: test in the file must be a text, got 3"),
        ('train = "a"\ntest = "b"\ntext = [3]\nlabels = "c"', "text in the file must hold texts"),
        ("train =", "no valid TOML"),
        ('name = "Bibtex"\ntrain = "a"\ntest = "b"', "the name 'Bibtex' is that of a data set of"),
        ('name = " "\ntrain = "a"\ntest = "b"', "name is empty"),
    ],
)
def test_mistakes_in_a_data_file_are_named(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "d.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(ParameterError, match=re.escape(said)):
        read_own_data(path)
    with pytest.raises(ParameterError, match="no such file of a data set"):
        read_own_data(tmp_path / "e.toml")
