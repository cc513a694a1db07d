"""Files of one's own that a run depends on: what pages call them, and checksums of what is in them.

A run names an adapter or a data set by its path. Its result belongs to what was in the files then:
with other content it is another run. Pages show names and never the path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from dxml.bench._machine import plain
from dxml.bench._own_data import is_own_data, read_own_data
from dxml.bench.peers import peer_of
from dxml.exceptions import ParameterError

__all__ = ["called", "check_names", "checksums", "is_adapter"]

_BLOCK = 1 << 20  # bytes that are read at once
_SHOWN = 16  # digits of a checksum


def is_adapter(method: str) -> bool:
    """Whether a method is named by a file."""
    return method.endswith(".py")


def called(source: str) -> str:
    """What pages call a method or a data set: of a file the name that it gives itself.

    >>> called("bibtex")
    'bibtex'
    """
    return read_own_data(source).name if is_own_data(source) else plain(source)


def checksums(method: str, dataset: str) -> dict[str, str]:
    """The start of the SHA-256 of an adapter, and of a data set's TOML file with its two files."""
    found = {}
    if is_adapter(method):
        found["method"] = _checksum([peer_of(method).adapter])
    if is_own_data(dataset):
        found["data"] = _checksum([Path(dataset), *read_own_data(dataset).files])
    return found


def check_names(methods: Iterable[str], datasets: Iterable[str]) -> None:
    """Refuse two files that a page would call by one name."""
    named = [("TITLE", each, peer_of(each).title) for each in methods if is_adapter(each)]
    named += [("name", each, called(each)) for each in datasets if is_own_data(each)]
    known: dict[tuple[str, str], str] = {}
    for key, path, name in named:
        other = known.setdefault((key, name), path)
        if other != path:
            raise ParameterError(
                f"{other} and {path} are both called {name!r}. Give one another {key}."
            )


def _checksum(paths: Iterable[Path]) -> str:
    """Of several files that of their checksums, in this order."""
    found = [_content(path, *_state(path)) for given in paths for path in _files(given)]
    joined = found[0] if len(found) == 1 else hashlib.sha256("".join(found).encode()).hexdigest()
    return joined[:_SHOWN]


def _files(path: Path) -> list[Path]:
    """A file, or all files of a folder."""
    return sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]


def _state(path: Path) -> tuple[int, int]:
    """By which a file is known to be as it was; what is not there has none."""
    if not path.is_file():
        return -1, -1
    found = path.stat()
    return found.st_size, found.st_mtime_ns


@cache
def _content(path: Path, size: int, changed: int) -> str:
    if size < 0:
        return "absent"
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return found.hexdigest()
