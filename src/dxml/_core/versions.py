"""Earlier versions of a model folder, each with what it does not share with a later one.

A version is a folder ``versions/0001`` in the model's: its ``config.json``, files with its arrays,
and ``version.json``, which says what file each array is in. Files are hard links, so that keeping a
version takes no room by itself. When the model has been replaced, arrays that the new one has too
are looked up there, and only the others stay: an encoder of which nothing changed is on the disk
once. Each version has links to all it needs, so that it does not matter what becomes of the model.

A program that is killed leaves the model and all versions readable at any moment: a version is made
under another name and then renamed, and files go when ``version.json`` no longer names them. What
is given back must have the SHA-256 that the version's own ``config.json`` says.
"""

from __future__ import annotations

import io
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dxml._core.card import CARD, write_card
from dxml._core.files import remove_folder, replace_text
from dxml._core.locking import folder_lock
from dxml._core.storage import (
    CONFIG,
    LONGEST_CONFIG,
    arrays_file,
    on_disk,
    read_config,
    regular_file,
    write_folder,
)
from dxml._core.tensors import map_tensors, write_tensors
from dxml.exceptions import ModelFormatError, ParameterError

__all__ = ["KEPT", "Version", "keeping", "list_versions", "restore_version"]

VERSIONS = "versions"
RECORD = "version.json"
LONGEST_RECORD = 1 << 24  # bytes; it names each array once
_FILES = re.compile(r"(arrays|rest)-[0-9a-f]{12}\.safetensors")
KEPT = 5
"""Versions that are kept by default."""

Named = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Version:
    """An earlier version of a model.

    Attributes
    ----------
    number : int
    time : float
        When it was replaced, in seconds since 1970.
    note : str
        By what it was replaced.
    size : int
        Bytes that neither the model nor another version has too.
    """

    number: int
    time: float
    note: str
    size: int


@contextmanager
def keeping(folder: str | Path, note: str, most: int = KEPT) -> Iterator[None]:
    """Inside, the model of a folder is replaced; the one before is kept as a version.

    Parameters
    ----------
    note : str
        What is being done.
    most : int
        Versions kept; the oldest go. 0: none is kept or removed.
    """
    folder = Path(folder)
    if not most:
        yield
        return
    with folder_lock(folder):
        made = _make(folder, note)
        before = _arrays_file(folder)
        try:
            yield
        except BaseException:
            with suppress(OSError):  # of a disk that fails; else this would be told, and not that
                _remove(made)
            raise
        _share(folder, before)
        for old in _folders(folder)[:-most]:
            _remove(old)


def list_versions(folder: str | Path) -> list[Version]:
    """The versions of a model, oldest first."""
    found = []
    for path in _folders(Path(folder)):
        record = _record(path)
        files = [file.stat() for file in path.iterdir()]
        size = sum(file.st_size for file in files if file.st_nlink == 1)
        found.append(Version(int(path.name), record["time"], record["note"], size))
    return found


def restore_version(folder: str | Path, number: int, most: int = KEPT) -> None:
    """Put a version in the place of the model, which is kept as a version itself."""
    folder = Path(folder)
    with folder_lock(folder):
        version = _find(folder, number)
        config, arrays = _read(version)
        card = version / CARD
        own = card.is_file() and not card.is_symlink()
        text = card.read_text("utf-8", "replace") if own else ""
        with keeping(folder, f"restored version {number}", most):
            write_folder(folder, config, arrays)
        if text:
            write_card(folder, text)


def _find(folder: Path, number: int) -> Path:
    path = folder / VERSIONS / f"{number:04d}"
    if path not in _folders(folder) or not (path / RECORD).is_file():
        known = ", ".join(str(int(each.name)) for each in _folders(folder)) or "none"
        raise ParameterError(f"{folder}: there is no version {number}. Kept are: {known}.")
    return path


def _folders(folder: Path) -> list[Path]:
    """The folders of all versions, oldest first; a link may lead to anybody's files."""
    if (folder / VERSIONS).is_symlink():
        raise ModelFormatError(f"{folder / VERSIONS}: is a link. Remove it.")
    found = (folder / VERSIONS).glob("[0-9]*")
    own = (path for path in found if path.name.isdecimal() and not path.is_symlink())
    return sorted(own, key=lambda path: int(path.name))


def _arrays_file(folder: Path) -> str:
    return arrays_file(folder, read_config(folder))


def _record(path: Path) -> dict[str, Any]:
    try:
        with regular_file(path / RECORD) as file:
            text = file.read(LONGEST_RECORD + 1)
        if len(text) > LONGEST_RECORD:
            raise ValueError(f"{RECORD} is longer than {LONGEST_RECORD >> 20} MB")
        record = json.loads(text)
        arrays = {str(name): str(file) for name, file in record["arrays"].items()}
        for name in arrays.values():
            if not _FILES.fullmatch(name):
                raise ValueError(f"{name!r:.80} names no file of arrays")
        return {"time": float(record["time"]), "note": str(record["note"]), "arrays": arrays}
    except ModelFormatError:
        raise
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFormatError(f"{path}: the version is damaged ({error}). Remove it.") from error


def _make(folder: Path, note: str) -> Path:
    """The model as a version, by links to its files."""
    _clean(folder)
    number = max((int(path.name) for path in _folders(folder)), default=0) + 1
    partial = folder / VERSIONS / f"{number:04d}.{secrets.token_hex(6)}.partial"
    partial.mkdir(parents=True)
    file = _arrays_file(folder)
    for name in (CONFIG, file):
        _link(folder / name, partial / name)
    if (folder / CARD).is_file():
        _link(folder / CARD, partial / CARD)
    arrays = dict.fromkeys(_tensors(folder / file), file)
    replace_text(partial / RECORD, _text(time.time(), note, arrays))
    made = partial.with_name(f"{number:04d}")
    partial.rename(made)
    return made


def _clean(folder: Path) -> None:
    """Remove what programs have left that were killed, or whose disk failed."""
    for path in _folders(folder):
        if _config(path) == _config(folder):  # kept for a replacement that was not done
            _remove(path)
    kept = _folders(folder)
    for path in (folder / VERSIONS).glob("*"):
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir() and path not in kept:
            shutil.rmtree(path, ignore_errors=True)
    for version in kept:
        known = {CARD, CONFIG, RECORD, *_record(version)["arrays"].values()}
        for path in version.iterdir():
            if path.name not in known and (path.is_symlink() or not path.is_dir()):
                path.unlink()


def _config(path: Path) -> bytes:
    try:
        with regular_file(path / CONFIG) as file:
            return file.read(LONGEST_CONFIG)
    except (OSError, ModelFormatError):
        return str(path).encode()


def _remove(version: Path) -> None:
    """Take a version away; its name goes first."""
    gone = version.with_name(f"{version.name}.{secrets.token_hex(6)}.partial")
    version.rename(gone)
    remove_folder(gone)


def _text(time: float, note: str, arrays: Mapping[str, str]) -> str:
    return json.dumps({"time": time, "note": note, "arrays": arrays}, indent=1, ensure_ascii=False)


def _link(source: Path, target: Path) -> None:
    """A hard link, or a copy where the file system has none."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _tensors(path: Path) -> Named:
    with regular_file(path) as file:
        return map_tensors(file, path)


def _share(folder: Path, before: str) -> None:
    """Let versions look up in the model what it has as they have it, and keep only the rest."""
    now = _arrays_file(folder)
    users = [path for path in _folders(folder) if (path / before).is_file()]
    if now == before or not users:
        return
    old, new = _tensors(users[0] / before), _tensors(folder / now)
    rest = {name: array for name, array in old.items() if not _same(array, new.get(name))}
    if len(rest) == len(old):
        return
    own = before.replace("arrays-", "rest-")
    written = folder / VERSIONS / own
    with on_disk(written) as file:
        write_tensors(file, rest)
    for path in users:
        record = _record(path)
        moved = {name: own if name in rest else now for name in old}
        arrays = {
            name: moved[name] if file == before else file for name, file in record["arrays"].items()
        }
        for name, source in ((own, written), (now, folder / now)):
            if name in arrays.values() and not (path / name).exists():
                _link(source, path / name)
        replace_text(path / RECORD, _text(record["time"], record["note"], arrays))
        (path / before).unlink()
    written.unlink()


def _same(array: npt.NDArray[Any], other: npt.NDArray[Any] | None) -> bool:
    """Whether two arrays are the same bit for bit."""
    if other is None or array.dtype != other.dtype or array.shape != other.shape:
        return False
    one, two = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (array, other))
    return bool(np.array_equal(one, two))


def _read(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Config and arrays of a version, compared with the checksum of what it was."""
    config = read_config(path)
    record = _record(path)
    try:
        files = {name: _tensors(path / name) for name in set(record["arrays"].values())}
        arrays = {name: files[file][name] for name, file in record["arrays"].items()}
    except (OSError, KeyError) as error:
        raise ModelFormatError(f"{path}: a part of the version is missing ({error}).") from error
    entry = config.pop("arrays")
    config.pop("sha256", None)
    if "sha256" in entry and write_tensors(_Nowhere(), arrays)["sha256"] != entry["sha256"]:
        raise ModelFormatError(
            f"{path}: damaged, its arrays are not what was kept (by their SHA-256). "
            "Restore another version."
        )
    return config, arrays


class _Nowhere(io.BytesIO):
    """A file that keeps nothing."""

    def write(self, data: Any) -> int:
        return len(data)
