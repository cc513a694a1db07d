"""Split files: one column a split, row numbers from 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dxml.text._files import TextFile, open_text

__all__ = ["read_split"]


def _row_number(file: TextFile, word: bytes, n_samples: int | None) -> int:
    if not word.isdigit():
        file.fail(f"expected a row number, found {word.decode('latin-1')!a}")
    row = int(word)
    if row < 1 or (n_samples is not None and row > n_samples):
        upper = "" if n_samples is None else str(n_samples)
        file.fail(
            f"row {row} is outside 1..{upper} of the data. "
            "Row numbers start at 1; use the split file that belongs to the data"
        )
    return row


def _second_place(rows: NDArray[np.int64], row: int) -> int:
    return int(np.flatnonzero(rows == row)[1]) + 1


def read_split(path: str | Path, split: int, n_samples: int | None = None) -> NDArray[np.int64]:
    """The rows of one split.

    Parameters
    ----------
    path : str or Path
        A split file, plain or compressed: a line holds one row number for each split.
    split : int
        Which column, from 1.
    n_samples : int, optional
        Number of points in the data, to check the row numbers against.

    Returns
    -------
    rows : array of shape (n_rows,), int64
        Rows of the data, from 0, in the file's order.
    """
    rows = []
    with open_text(Path(path)) as file:
        for chunk in file.chunks():
            for line in chunk.splitlines():
                if words := line.split():
                    if not 1 <= split <= len(words):
                        file.fail(
                            f"there is no split {split}; the line has {len(words)} columns. "
                            f"Use a split in 1..{len(words)}"
                        )
                    rows.append(_row_number(file, words[split - 1], n_samples) - 1)
                file.line += 1
        found = np.array(rows, dtype=np.int64)
        values, counts = np.unique(found, return_counts=True)
        if values.size < found.size:
            file.fail(
                f"row {values[counts > 1][0] + 1} stands more than once in split {split}. "
                "Take the repeated line away",
                line=_second_place(found, values[counts > 1][0]),
            )
    return found
