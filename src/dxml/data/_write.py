"""Write the text and npz formats: to a temporary file first, which is then renamed."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, save_npz

from dxml._core.files import replacing
from dxml.data._dataset import Dataset

_ROWS = 4096  # rows turned into text at a time


def _compressor(path: Path, suffix: str) -> IO[bytes] | gzip.GzipFile:
    if suffix == ".gz":
        return gzip.open(path, "wb", compresslevel=6)
    if suffix == ".bz2":
        return bz2.open(path, "wb")
    if suffix == ".xz":
        return lzma.open(path, "wb")
    return open(path, "wb")


def _number_texts(values: NDArray[np.float32]) -> list[str]:
    """The shortest text that reads back as the same float32, for each of `values`."""
    distinct, inverse = np.unique(values, return_inverse=True)
    texts = distinct.astype("U32")
    for i in np.flatnonzero(texts.astype(np.float64).astype(np.float32) != distinct):
        texts[i] = repr(float(distinct[i]))
    short = [text.removesuffix(".0") for text in texts.tolist()]
    return [short[i] for i in inverse.tolist()]


def _rows_of_pairs(matrix: csr_matrix, base: int) -> Iterator[str]:
    """``i:v i:v`` for each row."""
    for first in range(0, matrix.shape[0], _ROWS):
        ends = matrix.indptr[first : first + _ROWS + 1]
        piece = slice(ends[0], ends[-1])
        ids = (matrix.indices[piece].astype(np.int64) + base).tolist()
        texts = _number_texts(matrix.data[piece].astype(np.float32))
        pairs = [f"{i}:{text}" for i, text in zip(ids, texts, strict=True)]
        offsets = (ends - ends[0]).tolist()
        for start, stop in pairwise(offsets):
            yield " ".join(pairs[start:stop])


def _rows_of_labels(Y: csr_matrix, base: int) -> Iterator[str]:
    """``l1,l2`` for each row."""
    for start, stop in pairwise(Y.indptr.tolist()):
        yield ",".join(map(str, (Y.indices[start:stop].astype(np.int64) + base).tolist()))


def _write_lines(path: Path, suffix: str, lines: Iterator[str]) -> None:
    with _compressor(path, suffix) as file:
        for line in lines:
            file.write(line.encode("ascii") + b"\n")


def _single_lines(dataset: Dataset, header: bool, bases: tuple[int, int]) -> Iterator[str]:
    if header:
        yield f"{dataset.n_samples} {dataset.n_features} {dataset.n_labels}"
    labels, pairs = _rows_of_labels(dataset.Y, bases[1]), _rows_of_pairs(dataset.X, bases[0])
    for row_labels, row_pairs in zip(labels, pairs, strict=True):
        yield f"{row_labels} {row_pairs}"


def _matrix_lines(matrix: csr_matrix) -> Iterator[str]:
    yield f"{matrix.shape[0]} {matrix.shape[1]}"
    yield from _rows_of_pairs(matrix, 0)


def write_single(dataset: Dataset, path: Path, *, header: bool, bases: tuple[int, int]) -> None:
    """One text file with labels and features; `bases` is (of features, of labels)."""
    with replacing(path) as beside:
        _write_lines(beside, path.suffix, _single_lines(dataset, header, bases))


def _write_both(
    x_path: Path, y_path: Path, write: Callable[[Path, str, csr_matrix], None], dataset: Dataset
) -> None:
    """Write both temporary files before either is renamed."""
    with ExitStack() as stack:
        x_beside, y_beside = (stack.enter_context(replacing(path)) for path in (x_path, y_path))
        write(x_beside, x_path.suffix, dataset.X)
        write(y_beside, y_path.suffix, dataset.Y)


def write_pair(dataset: Dataset, x_path: Path, y_path: Path) -> None:
    """Two text files, features and labels."""
    _write_both(
        x_path, y_path, lambda at, suffix, m: _write_lines(at, suffix, _matrix_lines(m)), dataset
    )


def _save_matrix(path: Path, suffix: str, matrix: csr_matrix) -> None:
    with open(path, "wb") as file:
        save_npz(file, matrix)


def write_npz(dataset: Dataset, x_path: Path, y_path: Path) -> None:
    """Two .npz files as `scipy.sparse.save_npz` writes them."""
    _write_both(x_path, y_path, _save_matrix, dataset)
