"""A saved model is a folder in open formats: ``config.json`` and a safetensors file.

The arrays go to a file with a fresh name, and ``config.json``, which names that file, is replaced
last and in one step. A crash at any moment leaves the old model or the new one; files and names are
on the disk before the old ones go. Of several writers one writes at a time (`dxml._core.locking`),
and readers need not wait. Arrays are memory-mapped on reading, and what is used as it is stays in
the file, whose pages processes share.

``config.json`` ends in the SHA-256 of all its text before, and says what checksums the arrays must
have: a CRC-32, which a reading compares, as that takes 20 ms for 100 MB, and a SHA-256, which takes
several times as long and is for `verify_folder`. Folders that older versions wrote have none. What
is damaged all the same meets the checks of `dxml._core.arrays`. A large file that passed both, and
was not touched since, is not read through again (`dxml._core.checked`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import HELP, Arrays
from dxml._core.checked import is_marked, mark_of
from dxml._core.files import naming
from dxml._core.json_values import count_values
from dxml._core.locking import LOCK, folder_lock
from dxml._core.tensors import map_tensors, write_tensors
from dxml.exceptions import ModelFormatError

__all__ = [
    "CONFIG",
    "FORMAT",
    "arrays_file",
    "is_unfinished",
    "on_disk",
    "pack_csr",
    "read_config",
    "read_folder",
    "regular_file",
    "verify_folder",
    "write_folder",
]

FORMAT = 6
"""Raised by one when a reader of the old number could no longer read what is written.
Each past number keeps a folder under tests/models that must go on loading."""

CONFIG = "config.json"
LONGEST_CONFIG = 1 << 28  # bytes; it holds the labels' names: 80 bytes each of three million
MOST_VALUES = 1 << 23  # of the config; a name is one
_ARRAYS = re.compile(r"arrays-[0-9a-f]{12}\.safetensors")
_STALE = ("arrays-*.safetensors", "*.partial", ".tmp??????")
"""What saves leave behind when they are killed; the last is what older versions left."""
_SEAL = re.compile(rb',\n  "sha256": "([0-9a-f]{64})"\n}\n')


def write_folder(
    folder: str | Path, config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> Path:
    """Write a model; an older one in the same folder is replaced in one step."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ModelFormatError(f"{folder}: a model is saved as a folder, and this is a file.")
    folder.mkdir(parents=True, exist_ok=True)
    with folder_lock(folder):
        _write(folder, config, arrays)
    return folder


def _write(folder: Path, config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    name = f"arrays-{secrets.token_hex(6)}.safetensors"
    with on_disk(folder / name) as file:
        written = write_tensors(file, arrays)
        text = sealed({"format": FORMAT, **config, "arrays": {"file": name, **written}})
        _check_size(folder / CONFIG, text, "Give labels and features shorter names, or none.")
    with on_disk(folder / CONFIG) as file:
        file.write(text)
    for pattern in _STALE:
        for stale in folder.glob(pattern):
            if stale.name != name:
                stale.unlink(missing_ok=True)


def is_unfinished(folder: Path) -> bool:
    """Whether a folder holds nothing, or nothing but what a save left that was killed."""
    left = {path.name for pattern in _STALE for path in folder.glob(pattern)}
    return {path.name for path in folder.iterdir()} <= left | {LOCK}


def sealed(config: Mapping[str, Any]) -> bytes:
    """A config as it is written: its last entry is the SHA-256 of the text before it."""
    text = json.dumps(config, indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass")
    text = text.removesuffix(b"\n}")
    return text + b',\n  "sha256": "%s"\n}\n' % hashlib.sha256(text).hexdigest().encode()


@contextmanager
def on_disk(path: Path) -> Iterator[BinaryIO]:
    """A new file beside `path`, which takes its place when all is written and on the disk."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(6)}.partial")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with naming(path.parent):
        try:
            with open(os.open(partial, flags, 0o666), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
            _flush(path.parent)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def _flush(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def read_folder(folder: str | Path) -> tuple[dict[str, Any], Arrays]:
    """The config and the memory-mapped arrays of a saved model.

    Writing into an array changes this process's copy of the page, never the file. A model that is
    replaced meanwhile is read as it was before, or as it is then. Who has read all of it without an
    error calls `Arrays.accept`.
    """
    config, file, path = _open_arrays(Path(folder))
    with file:
        seals = (str(config.get("sha256")), str(config["arrays"].get("sha256")))
        return config, _arrays_of(file, path, config["arrays"], mark_of(file.fileno(), *seals))


def _open_arrays(folder: Path) -> tuple[dict[str, Any], BufferedReader, Path]:
    """The config, and the file that it names; once open, that may be replaced."""
    config = read_config(folder)
    while True:
        path = folder / arrays_file(folder, config)
        try:
            return config, regular_file(path), path
        except FileNotFoundError:
            before, config = config, read_config(folder)
        if config["arrays"] == before["arrays"]:
            raise ModelFormatError(
                f"{folder}: {CONFIG} names {path.name}, which is not there. "
                "Copy the whole folder, or train again."
            )


def _arrays_of(
    file: BufferedReader, path: Path, entry: Mapping[str, Any], mark: Path | None = None
) -> Arrays:
    size = os.fstat(file.fileno()).st_size
    if size != entry["bytes"]:
        raise ModelFormatError(
            f"{path}: expected {entry['bytes']} bytes, got {size}: the file is damaged. {HELP}"
        )
    checksum = None if is_marked(mark) else entry.get("crc32")
    return Arrays(map_tensors(file, path, checksum), path, mark)


class Verified(NamedTuple):
    """A file of a model folder that is what was written, or about which nothing is known."""

    name: str
    size: int
    said: str


def verify_folder(folder: str | Path) -> list[Verified]:
    """Compare all checksums of a model folder; whatever differs is a `ModelFormatError`.

    The files are read through, which `read_folder` does only once, for a quicker checksum.
    """
    config, file, path = _open_arrays(Path(folder))
    entry, old = config["arrays"], "no checksum, as an older version wrote it"
    with file:
        arrays = _arrays_of(file, path, entry)
        file.seek(0)
        if "sha256" in entry and hashlib.file_digest(file, "sha256").hexdigest() != entry["sha256"]:
            raise ModelFormatError(
                f"{path}: damaged, its content is not what was written (by its SHA-256). {HELP}"
            )
    same = "as written (SHA-256)"
    size = (path.parent / CONFIG).stat().st_size
    return [
        Verified(CONFIG, size, same if "sha256" in config else old),
        Verified(
            path.name,
            entry["bytes"],
            f"{len(arrays)} arrays, {same if 'sha256' in entry else old}",
        ),
    ]


def read_config(folder: str | Path) -> dict[str, Any]:
    """The config of a saved model, checked but for what only its method knows."""
    path = Path(folder) / CONFIG
    try:
        with regular_file(path) as file:
            text = file.read(LONGEST_CONFIG + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise ModelFormatError(
            f"{folder}: no model here ({CONFIG} is missing). "
            "Give the folder that `dxml train --model` or save() wrote."
        ) from None
    _check_size(path, text, HELP)
    try:
        config = json.loads(text.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"{path}: damaged, not valid JSON ({error}). {HELP}") from error
    written = config.get("format") if isinstance(config, dict) else None
    if not isinstance(written, int) or isinstance(written, bool) or written < 1:
        raise ModelFormatError(f"{path}: not a dxml model (no format number).")
    if written > FORMAT:
        raise ModelFormatError(
            f"{folder}: model format {written} is newer than this dxml can read ({FORMAT}). "
            "Upgrade dxml: pip install --upgrade dxml."
        )
    _check_seal(path, text, config)
    return dict(config)


def _check_size(path: Path, text: bytes, help: str) -> None:
    """Refuse a config that no model has: parsed it would take many times its bytes."""
    if len(text) > LONGEST_CONFIG:
        raise ModelFormatError(f"{path}: longer than {LONGEST_CONFIG >> 20} MB. {help}")
    if count_values(text, MOST_VALUES) > MOST_VALUES:
        raise ModelFormatError(f"{path}: has more than {MOST_VALUES:,} values. {help}")


def _check_seal(path: Path, text: bytes, config: Mapping[str, Any]) -> None:
    """Refuse a config that was changed; one without any SHA-256 comes from an older version."""
    arrays = config.get("arrays")
    if "sha256" not in config and not (isinstance(arrays, dict) and "sha256" in arrays):
        return
    start = text.rfind(b',\n  "sha256": "')
    seal = _SEAL.fullmatch(text, max(start, 0))
    if seal is None or hashlib.sha256(text[:start]).hexdigest().encode() != seal[1]:
        raise ModelFormatError(
            f"{path}: damaged or edited, its content is not what was written (by its SHA-256). "
            f"{HELP}"
        )


def arrays_file(folder: Path, config: Mapping[str, Any]) -> str:
    """The name of the arrays' file; a config says its size too, and perhaps its checksums."""
    entry = config.get("arrays")
    good = (
        isinstance(entry, dict)
        and isinstance(entry.get("file"), str)
        and _ARRAYS.fullmatch(entry["file"]) is not None
        and type(entry.get("bytes")) is int
        and type(entry.get("crc32", 0)) is int
        and isinstance(entry.get("sha256", ""), str)
    )
    if not good:
        raise ModelFormatError(
            f"{folder / CONFIG}: the entry 'arrays' is missing or damaged; it names a file of the "
            f"folder, such as arrays-0123456789ab.safetensors, and its size. {HELP}"
        )
    return str(config["arrays"]["file"])


def regular_file(path: Path) -> BufferedReader:
    """An open file that is one: a link may lead out of the folder, and a pipe never ends."""
    if path.is_symlink():
        raise ModelFormatError(f"{path}: is a link. Copy the file itself into the folder.")
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise ModelFormatError(f"{path}: is no file. {HELP}")
    return open(opened, "rb")


def pack_csr(name: str, matrix: sp.csr_matrix) -> dict[str, npt.NDArray[Any]]:
    """A sparse matrix as named arrays; boolean matrices need no values. See `Arrays.csr`."""
    packed: dict[str, npt.NDArray[Any]] = {
        f"{name}.indptr": matrix.indptr,
        f"{name}.indices": matrix.indices,
        f"{name}.shape": np.asarray(matrix.shape, dtype=np.int64),
    }
    if matrix.dtype != bool:
        packed[f"{name}.data"] = matrix.data
    return packed
