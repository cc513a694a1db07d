"""A data set as a folder of plain arrays, written piece by piece and memory-mapped on reading.

``name.dxml`` holds ``data.json`` (format number, shapes, sizes of the files) and the arrays of two
CSR matrices, raw and little-endian: ``X.indptr`` and ``X.indices`` (int32), ``X.data`` (float32),
``Y.indptr`` and ``Y.indices`` (int32), ``Y.data`` (one byte a label, 1). The ``indptr`` of a matrix
with more than 2³¹ − 1 values is int64, and such a folder is of format 2. ``data.json`` is written
last, so a folder that has it is complete. Neither writing nor reading holds more than a piece of
the data in memory; what a computation touches of it is the system's cache.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from dxml._core.arrays import whole
from dxml._core.files import replacing_folder
from dxml._core.sparse import plain_csr
from dxml.data._dataset import Dataset
from dxml.exceptions import DataFormatError

__all__ = ["SUFFIX", "is_mapped", "read_mapped", "write_mapped"]

SUFFIX = ".dxml"
HEADER = "data.json"
FORMAT = 2
SHORT = 2**31 - 1  # stored values of a matrix, up to which int32 says where a row begins
MOST = 2**48  # stored values
KINDS = {"indptr": np.int64, "indices": np.int32, "data": np.float32}
LONGEST_HEADER = 10_000  # bytes
BLOCK = 1 << 20  # numbers that are made shorter at a time
Sizes = dict[str, int]


def is_mapped(path: str | Path) -> bool:
    """Whether the path is that of such a folder, there or not."""
    return Path(path).suffix == SUFFIX


class _Matrix:
    """The three files of one matrix, written row by row."""

    def __init__(self, name: str, folder: Path, files: ExitStack) -> None:
        self.name, self.rows, self.stored, self.width = name, 0, 0, 0
        self._files = {
            part: files.enter_context((folder / f"{name}.{part}").open("w+b")) for part in KINDS
        }
        self._put("indptr", np.zeros(1, np.int64))

    def add(self, matrix: csr_matrix) -> None:
        """Some rows, sorted and without repeats."""
        self._put("indptr", matrix.indptr[1:].astype(np.int64) + self.stored)
        self._put("indices", matrix.indices.astype(np.int32, copy=False))
        values = matrix.data.astype(np.float32, copy=False)
        self._put("data", np.ones(matrix.nnz, np.uint8) if self.name == "Y" else values)
        self.rows, self.stored = self.rows + matrix.shape[0], self.stored + matrix.nnz
        self.width = max(self.width, int(matrix.shape[1]))

    @property
    def long(self) -> bool:
        """Whether int32 does not say where a row begins."""
        return self.stored > SHORT

    def finish(self) -> None:
        """Make the numbers in ``indptr`` shorter where that is possible, in place."""
        if self.long:
            return
        file = self._files["indptr"]
        for start in range(0, self.rows + 1, BLOCK):
            file.seek(8 * start)
            numbers = np.frombuffer(file.read(8 * BLOCK), np.int64).astype(np.int32)
            file.seek(4 * start)
            file.write(numbers.data)
        file.truncate(4 * (self.rows + 1))

    def _put(self, part: str, array: npt.NDArray[Any]) -> None:
        self._files[part].write(np.ascontiguousarray(array).data)


def write_mapped(
    folder: str | Path, blocks: Iterable[tuple[csr_matrix | None, csr_matrix | None]]
) -> tuple[int, int, int]:
    """Write a data set piece by piece; its numbers of points, features and labels.

    Parameters
    ----------
    blocks : iterable of (features, labels)
        Rows that follow each other; None where a piece has only the other. The width of a matrix
        is the largest of its pieces'.
    """
    folder = Path(folder)
    if folder.exists() and not (folder / HEADER).is_file():
        raise DataFormatError(f"{folder}: exists and holds no data set. Give another name.")
    with replacing_folder(folder) as beside:
        with ExitStack() as files:
            X, Y = _Matrix("X", beside, files), _Matrix("Y", beside, files)
            for features, labels in blocks:
                for matrix, rows in ((X, features), (Y, labels)):
                    if rows is not None:
                        matrix.add(rows)
            X.finish()
            Y.finish()
        if X.rows != Y.rows:
            raise DataFormatError(f"there are features of {X.rows} points and labels of {Y.rows}.")
        sizes = {matrix.name: {"stored": matrix.stored, "width": matrix.width} for matrix in (X, Y)}
        header = {"format": FORMAT if X.long or Y.long else 1, "points": X.rows, **sizes}
        (beside / HEADER).write_text(json.dumps(header, indent=1) + "\n", "utf-8")
    return X.rows, X.width, Y.width


def read_mapped(folder: str | Path, name: str | None = None) -> Dataset:
    """The data set, its arrays in the files; they are checked in one pass, and must not change."""
    folder = Path(folder)
    try:
        with (folder / HEADER).open("rb") as file:
            text = file.read(LONGEST_HEADER + 1)
        if len(text) > LONGEST_HEADER:
            raise ValueError(f"{HEADER} is longer than {LONGEST_HEADER:,} bytes")
        header = json.loads(text)
        if whole(header, "format", 1) > FORMAT:
            raise DataFormatError(f"{folder}: was written by a newer dxml. Upgrade this one.")
        points = whole(header, "points")
        X, Y = (_map(folder, part, points, header[part]) for part in ("X", "Y"))
        return Dataset(X, Y, name=folder.stem if name is None else name)
    except FileNotFoundError as error:
        raise DataFormatError(
            f"{folder}: {Path(error.filename).name} is missing. Make the folder again with "
            "dxml data convert."
        ) from error
    except DataFormatError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DataFormatError(
            f"{folder}: damaged ({error}). Make the folder again with dxml data convert."
        ) from error


def _map(folder: Path, name: str, points: int, sizes: Sizes) -> csr_matrix:
    stored = whole(sizes, "stored", 0, MOST)
    lengths = {"indptr": points + 1, "indices": stored, "data": stored}
    arrays = []
    for part, length in lengths.items():
        kind: np.dtype[Any] = np.dtype(KINDS[part])
        if (name, part) == ("Y", "data"):
            kind = np.dtype(np.bool_)
        elif part == "indptr" and stored <= SHORT:
            kind = np.dtype(np.int32)
        path = folder / f"{name}.{part}"
        found = path.stat().st_size
        if found != length * kind.itemsize:
            raise ValueError(f"{path.name} has {found} bytes, expected {length * kind.itemsize}")
        arrays.append(np.memmap(path, kind, "r") if length else np.empty(0, kind))
    indptr, indices, data = arrays
    return plain_csr(data, indices, indptr, (points, whole(sizes, "width")))
