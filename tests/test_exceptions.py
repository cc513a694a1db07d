"""Messages name parameters for programs, and options for the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dxml.data import read
from dxml.exceptions import DataFormatError, advise, command_line_advice
from dxml.text import TextFeatures, read_table


def no_suffix(folder: Path) -> object:
    return read_table(folder / "records")


def no_suffix_of_features(folder: Path) -> object:
    return read(folder / "records")


def a_bad_row(folder: Path) -> object:
    (folder / "bad.jsonl").write_text('{"text": 3}\n')
    return read_table(folder / "bad.jsonl")


def another_encoding(folder: Path) -> object:
    (folder / "a.csv").write_text("text\nlöffel\n", "cp1252")
    return read_table(folder / "a.csv")


def utf16(folder: Path) -> object:
    (folder / "a.csv").write_text("text\na\n", "utf-16")
    return read_table(folder / "a.csv")


def no_header(folder: Path) -> object:
    (folder / "a.txt").write_text("1,2 0:1\n")
    return read(folder / "a.txt")


def no_pair(folder: Path) -> object:
    (folder / "a.txt").write_text("1 3 3\n1,2 nothing\n")
    return read(folder / "a.txt")


def no_frequent_word(folder: Path) -> object:
    return TextFeatures(min_df=2).fit_transform(["fish", "soup"])


def no_word(folder: Path) -> object:
    return TextFeatures(min_df=1).fit_transform(["?", "!"])


@pytest.mark.parametrize(
    "mistake, python, command_line",
    [
        (
            no_suffix,
            "Say format=, one of jsonl",
            "ends in .jsonl, .json, .csv, .tsv, .xlsx or .parquet",
        ),
        (no_suffix_of_features, "Say format=, one of repository", "end in .txt, .svm or .libsvm"),
        (a_bad_row, "out with skip_bad_rows=True.", "out with --skip-bad-rows."),
        (another_encoding, "such as encoding='cp1252'", "such as --encoding cp1252"),
        (utf16, "Say encoding='utf-16'", "Say --encoding utf-16"),
        (no_header, "Choose another format= if the", "Name the file .svm if it has no"),
        (no_pair, "or choose another format=", "or name the file after its format"),
        (no_frequent_word, "Lower min_df, or", "Lower it with --set min_df=1, or"),
        (no_word, "Check the texts.", "Check that --text names the column of the texts."),
    ],
)
def test_advice_is_in_the_terms_of_its_reader(
    mistake: Callable[[Path], object], python: str, command_line: str, tmp_path: Path
) -> None:
    with pytest.raises(DataFormatError) as error:
        mistake(tmp_path)
    assert python in str(error.value) and "--" not in str(error.value)
    with command_line_advice(), pytest.raises(DataFormatError) as error:
        mistake(tmp_path)
    assert command_line in str(error.value) and python not in str(error.value)


def test_advice_for_the_command_line_ends_with_it() -> None:
    with pytest.raises(DataFormatError), command_line_advice():
        assert advise("x=1", "--x") == "--x"
        raise DataFormatError("anything")
    assert advise("x=1", "--x") == "x=1"
