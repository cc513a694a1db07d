"""The layout of a safetensors file: 8 bytes of header length, a JSON header, then the raw arrays.

Written here rather than by the safetensors package, which follows links and leaves files of its own
behind when it is killed; that package reads what is written here, and a test holds us to it.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from dxml._core.arrays import HELP
from dxml.exceptions import ModelFormatError

__all__ = ["map_tensors", "write_tensors"]

DTYPES: dict[str, type[np.generic]] = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "U16": np.uint16,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": np.bool_,
}
LONGEST_HEADER = 1 << 24  # bytes, of some 100,000 arrays; parsed it takes many times as much
BLOCK = 1 << 24  # bytes written at a time
BLOCK_READ = 1 << 20  # bytes read at a time for a checksum


def write_tensors(file: BinaryIO, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Write the arrays; how many ``bytes`` that made, their ``crc32`` and their ``sha256``.

    Arrays of wide numbers come first, so that each lies at a multiple of its numbers' size.
    """
    names = {np.dtype(kind): name for name, kind in DTYPES.items()}
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    header, end = {}, 0
    for name in order:
        begin, end = end, end + arrays[name].nbytes
        kind, shape = names[arrays[name].dtype], list(arrays[name].shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST_HEADER:
        raise ModelFormatError(f"a model of {len(arrays):,} arrays is too much for a folder.")
    start = len(text).to_bytes(8, "little") + text
    digest, check = hashlib.sha256(start), zlib.crc32(start)
    file.write(start)
    for name in order:
        whole = np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data
        for at in range(0, len(whole), BLOCK):
            block = whole[at : at + BLOCK]
            check = zlib.crc32(block, check)
            digest.update(block)
            file.write(block)
    return {"bytes": len(start) + end, "crc32": check, "sha256": digest.hexdigest()}


def map_tensors(file: BinaryIO, path: Path, crc32: int | None = None) -> dict[str, Any]:
    """The arrays of an open file, memory-mapped; writing into one changes this process's copy.

    Parameters
    ----------
    path : Path
        Named in errors.
    crc32 : int, optional
        What the file must have; without it the file is not read through.
    """
    try:
        if crc32 is not None and _checksum(file) != crc32:
            raise ModelFormatError(
                f"{path}: damaged, its content is not what was written (by its CRC-32). {HELP}"
            )
        pages = np.memmap(file, np.uint8, "c")
        length = int.from_bytes(pages[:8].tobytes(), "little")
        if length > min(LONGEST_HEADER, len(pages) - 8):
            raise ValueError(f"the header cannot be {length} bytes long")
        header = json.loads(pages[8 : 8 + length].tobytes())
        if not isinstance(header, dict):
            raise ValueError("the header is no JSON object")
        found = {name: entry for name, entry in header.items() if name != "__metadata__"}
        return {name: _view(pages, 8 + length, name, entry) for name, entry in found.items()}
    except ModelFormatError:
        raise
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
        raise ModelFormatError(
            f"{path}: damaged, not a safetensors file ({error}). {HELP}"
        ) from error


def _checksum(file: BinaryIO) -> int:
    """The CRC-32 of a file, read block by block: pages that are mapped would stay in memory."""
    check = 0
    while block := file.read(BLOCK_READ):
        check = zlib.crc32(block, check)
    return check


def _view(pages: npt.NDArray[np.uint8], start: int, name: str, entry: Any) -> npt.NDArray[Any]:
    """One array, where the header says that it lies, if that is within the file."""
    (begin, end), shape = entry["data_offsets"], tuple(entry["shape"])
    dtype = np.dtype(DTYPES[entry["dtype"]])
    if not all(type(number) is int and number >= 0 for number in (begin, end, *shape)):
        raise ValueError(f"the place or shape of array {name!r} is not made of whole numbers")
    if end - begin != dtype.itemsize * prod(shape) or start + end > len(pages):
        raise ValueError(f"array {name!r} does not fit the file")
    if end == begin:
        return np.empty(shape, dtype)
    if (start + begin) % dtype.itemsize:
        raise ValueError(f"array {name!r} does not begin at a multiple of its numbers' size")
    return np.ndarray(shape, dtype, pages, start + begin)
