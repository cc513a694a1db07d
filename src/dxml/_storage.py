"""A saved model is a folder anyone can open: ``config.json`` and a safetensors file.

The arrays go to a file with a fresh name, and ``config.json``, which names that file, is replaced
last and in one step. A crash at any moment leaves the old model or the new one. Arrays are
memory-mapped on reading. Methods that use them as they are (all but `Joint`, whose numbers are
packed in fewer bits and unpacked into memory) leave them in the file, whose pages processes share.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from safetensors import SafetensorError
from safetensors.numpy import save_file

from dxml._sparse import plain_csr
from dxml.exceptions import ModelFormatError

__all__ = ["FORMAT", "pack_csr", "read_folder", "unpack_csr", "write_folder"]

FORMAT = 4
"""Raised by one when a reader of the old number could no longer read what is written.
Each past number keeps a folder under tests/models that must go on loading."""

_DTYPES: dict[str, type[np.generic]] = {
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

Arrays = dict[str, npt.NDArray[Any]]


def write_folder(
    folder: str | Path, config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> Path:
    """Write a model; an older one in the same folder is replaced in one step."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ModelFormatError(f"{folder}: a model is saved as a folder, and this is a file.")
    folder.mkdir(parents=True, exist_ok=True)
    name = f"arrays-{secrets.token_hex(6)}.safetensors"
    partial = folder / f"{name}.partial"
    try:
        partial.touch()
        readable = partial.stat().st_mode  # safetensors makes files that only the owner can read
        save_file({key: np.ascontiguousarray(value) for key, value in arrays.items()}, partial)
        partial.chmod(readable)
        _flush(partial)
        os.replace(partial, folder / name)
        described = {"format": FORMAT, **config}
        described["arrays"] = {"file": name, "bytes": (folder / name).stat().st_size}
        partial = folder / "config.json.partial"
        partial.write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", "utf-8")
        _flush(partial)
        os.replace(partial, folder / "config.json")
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, SafetensorError):  # what it makes of a full disk
            raise OSError(errno.EIO, str(error), str(folder)) from error
        raise
    for stale in folder.glob("arrays-*.safetensors*"):
        if stale.name != name:
            stale.unlink(missing_ok=True)
    return folder


def read_folder(folder: str | Path) -> tuple[dict[str, Any], Arrays]:
    """The config and the memory-mapped arrays of a saved model.

    Writing into an array changes this process's copy of the page, never the file.
    """
    folder = Path(folder)
    config = _read_config(folder)
    try:
        path = folder / str(config["arrays"]["file"])
        expected = int(config["arrays"]["bytes"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFormatError(
            f"{folder / 'config.json'}: the entry 'arrays' is missing or damaged. "
            "Restore the folder from a copy or train again."
        ) from error
    if not path.is_file():
        raise ModelFormatError(
            f"{folder}: config.json names {path.name}, which is not there. "
            "Copy the whole folder, or train again."
        )
    if path.stat().st_size != expected:
        raise ModelFormatError(
            f"{path}: expected {expected} bytes, got {path.stat().st_size}: the file is damaged. "
            "Restore the folder from a copy or train again."
        )
    return config, _map_arrays(path)


def pack_csr(name: str, matrix: sp.csr_matrix) -> Arrays:
    """A sparse matrix as named arrays; boolean matrices need no values."""
    packed: Arrays = {
        f"{name}.indptr": matrix.indptr,
        f"{name}.indices": matrix.indices,
        f"{name}.shape": np.asarray(matrix.shape, dtype=np.int64),
    }
    if matrix.dtype != bool:
        packed[f"{name}.data"] = matrix.data
    return packed


def unpack_csr(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> sp.csr_matrix:
    """The inverse of `pack_csr`; the arrays stay memory-mapped."""
    indices = arrays[f"{name}.indices"]
    data = arrays.get(f"{name}.data")
    if data is None:
        data = np.ones(len(indices), dtype=bool)
    return plain_csr(data, indices, arrays[f"{name}.indptr"], arrays[f"{name}.shape"].tolist())


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise ModelFormatError(
            f"{folder}: no model here (config.json is missing). "
            "Give the folder that `dxml train --model` or save() wrote."
        )
    try:
        config = json.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ModelFormatError(
            f"{path}: damaged, not valid JSON ({error}). "
            "Restore the folder from a copy or train again."
        ) from error
    written = config.get("format") if isinstance(config, dict) else None
    if not isinstance(written, int):
        raise ModelFormatError(f"{path}: not a dxml model (no format number).")
    if written > FORMAT:
        raise ModelFormatError(
            f"{folder}: model format {written} is newer than this dxml can read ({FORMAT}). "
            "Upgrade dxml: pip install --upgrade dxml."
        )
    return dict(config)


def _map_arrays(path: Path) -> Arrays:
    """safetensors' own layout: 8 bytes of header length, a JSON header, then the raw arrays."""
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        arrays = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
            start = 8 + length + begin
            if end - begin != dtype.itemsize * int(np.prod(shape)) or 8 + length + end > size:
                raise ValueError(f"array {name!r} does not fit the file")
            if end == begin:
                arrays[name] = np.empty(shape, dtype)
            else:
                arrays[name] = np.asarray(np.memmap(path, dtype, "c", start, shape))
    except (ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise ModelFormatError(
            f"{path}: damaged, not a safetensors file ({error}). "
            "Restore the folder from a copy or train again."
        ) from error
    return arrays


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
