"""Results of long steps of a training, stored as each is done: a run that broke off takes them up.

A step is a function of its inputs alone. What it gives is stored under a checksum of those, so that
a result is taken for no other data and no other settings. Steps that take less than `LEAST` seconds
are done again.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.storage import read_folder, write_folder
from dxml.exceptions import ModelFormatError

__all__ = ["has_stages", "open_stages", "remembered", "remove_stages"]

LEAST = 5.0  # seconds
FOLDER = "stages"
Named = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class _Stages:
    """Where results are stored."""

    folder: Path


_open: ContextVar[_Stages | None] = ContextVar("stages", default=None)


@contextmanager
def open_stages(folder: Path | None, resume: bool = False) -> Iterator[None]:
    """Inside, results of long steps are stored in a folder; None: nowhere.

    Parameters
    ----------
    resume : bool
        Take up what is stored there; else it is removed.
    """
    if folder is None:
        yield
        return
    if not resume:
        remove_stages(folder)
    before = _open.set(_Stages(folder / FOLDER))
    try:
        yield
    finally:
        _open.reset(before)


def has_stages(folder: Path) -> bool:
    """Whether a result is stored in a folder."""
    return any((folder / FOLDER).glob("*"))


def remove_stages(folder: Path) -> None:
    """Remove all results of a folder, and the folder where that empties it."""
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def remembered(name: str, inputs: Mapping[str, Any], compute: Callable[[], Named]) -> Named:
    """The arrays that `compute` gives, stored or computed.

    Parameters
    ----------
    name : str
        Of the step, which may be done several times.
    inputs : mapping
        All that the result depends on: numbers, texts, arrays, sparse matrices, None.
    """
    stages = _open.get()
    if stages is None:
        return compute()
    path = stages.folder / f"{name}-{_checksum(inputs)}"
    if (found := _read(path)) is not None:
        return found
    start = time.monotonic()
    made = compute()
    if time.monotonic() - start >= LEAST:
        write_folder(path, {"stage": name}, made)
    return made


def _read(path: Path) -> Named | None:
    """What is stored, in memory; None where there is nothing, or nothing whole."""
    try:
        _, arrays = read_folder(path)
    except ModelFormatError:
        return None
    return {name: np.array(array) for name, array in arrays.unchecked().items()}


def _checksum(inputs: Mapping[str, Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name, value in inputs.items():
        digest.update(f"{name}:".encode())
        _add(digest, value)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, sp.csr_matrix):
        digest.update(f"rows {value.shape}".encode())
        for array in (value.indptr, value.indices, value.data):
            _add(digest, array)
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    else:
        digest.update(f"{type(value).__name__} {value!r};".encode())
