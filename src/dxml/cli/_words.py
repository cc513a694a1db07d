"""Messages of the library in the words of the command line."""

from __future__ import annotations

__all__ = ["in_options"]

_IN_PYTHON = {
    "skip_bad_rows=True": "--skip-bad-rows",
    "encoding='cp1252'": "--encoding cp1252",
    "encoding='utf-16'": "--encoding utf-16",
    "with encoding=": "with --encoding",
    "Lower min_df,": "Lower it with --set min_df=1,",
    "Open it with dxml.load_model.": "A tagger is needed here, which dxml train --text makes.",
    "Say format=, one of jsonl, csv, tsv, parquet.": (
        "The name of a table of texts ends in .jsonl, .csv, .tsv or .parquet."
    ),
    "Say format=, one of repository, pair, libsvm, npz.": (
        "Names of features end in .txt, .svm or .libsvm, or are two: X.npz,Y.npz."
    ),
    "Choose another format= if the file": "Name the file .svm if it",
    "or choose another format=": "or name the file after its format",
}


def in_options(message: str) -> str:
    """The message with options for parameters.

    >>> in_options("Or leave such rows out with skip_bad_rows=True.")
    'Or leave such rows out with --skip-bad-rows.'
    """
    for python, option in _IN_PYTHON.items():
        message = message.replace(python, option)
    return message
