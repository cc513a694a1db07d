"""The rows of a Parquet file, which may hold far more than its bytes.

Strings that repeat are stored once, and so are runs of what is missing: a file of 50 KB can have
200 GB of text. Strings are therefore read as numbers that point into a dictionary, and what they
stand for is counted before it is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from dxml.exceptions import DataFormatError
from dxml.progress import SILENT, Progress
from dxml.text._bad_rows import Row, check_columns
from dxml.text._files import COMPRESSIONS, check_expansion, check_file

__all__ = ["read_parquet"]

_BATCH = 1024  # rows held at a time
_ROW = 64  # bytes that a row takes at least


def read_parquet(
    path: Path,
    columns: tuple[str, ...],
    optional: tuple[str, ...] = (),
    progress: Progress = SILENT,
) -> Iterator[tuple[str, Row]]:
    """The rows of a Parquet file, each with its location for error messages.

    All `columns` must exist; `optional` ones are read where they exist.
    """
    if path.suffix.lower() in COMPRESSIONS:
        raise DataFormatError(
            f"{path}: a Parquet file is compressed inside. Unpack the {path.suffix} first."
        )
    check_file(path)
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        raise DataFormatError(
            f"{path}: reading Parquet needs pyarrow. Install it with: pip install 'dxml[parquet]'."
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            present, strings = file.schema_arrow.names, _strings(file)
        check_columns(str(path), columns, present)
        read = [*columns, *(name for name in optional if name in present)]
        with parquet.ParquetFile(path, read_dictionary=strings) as file:
            total = file.metadata.num_rows
            with progress.stage(f"read {path.name}", total, "rows") as stage:
                number, expanded = 0, 0
                for batch in file.iter_batches(_BATCH, columns=read or None):
                    expanded += _ROW * batch.num_rows + sum(map(_bytes, batch.columns))
                    check_expansion(path, expanded, "the file")
                    cells = [_plain(column).to_pylist() for column in batch.columns]
                    for row in zip(*cells, strict=True) if cells else [()] * batch.num_rows:
                        number += 1
                        yield (
                            f"{path} row {number}",
                            dict(zip(batch.schema.names, row, strict=True)),
                        )
                    stage.advance(batch.num_rows)
    except DataFormatError:
        raise
    except Exception as error:  # pyarrow has its own, and Python's where names are no UTF-8
        raise DataFormatError(
            f"{path}: expected a Parquet file, found something else or a damaged one ({error}). "
            "Write or download it again."
        ) from error


def _strings(file: Any) -> list[str]:
    """The columns of strings and bytes; those in lists pyarrow reads plain, 2 GB at most."""
    found = (file.schema.column(i) for i in range(len(file.schema)))
    return [
        column.path
        for column in found
        if column.physical_type == "BYTE_ARRAY" and column.path == column.name
    ]


def _bytes(array: Any) -> int:
    """Of what an array stands for."""
    types, compute = import_module("pyarrow.types"), import_module("pyarrow.compute")
    if types.is_dictionary(array.type) and _has_lengths(array.dictionary.type):
        lengths = compute.binary_length(array.dictionary).take(array.indices)
        return int(compute.sum(compute.cast(lengths, "int64")).as_py() or 0)
    if types.is_list(array.type) or types.is_large_list(array.type):
        return 8 * len(array) + _bytes(array.flatten())
    return int(array.nbytes)


def _has_lengths(kind: Any) -> bool:
    types = import_module("pyarrow.types")
    return bool(
        types.is_string(kind)
        or types.is_binary(kind)
        or types.is_large_string(kind)
        or types.is_large_binary(kind)
    )


def _plain(array: Any) -> Any:
    """An array without a dictionary, which becomes Python's values more quickly."""
    types = import_module("pyarrow.types")
    return array.dictionary_decode() if types.is_dictionary(array.type) else array
