"""Files and folders that are never there by halves, and where those go that may be made again.

What is being written lies beside its place under a name of its own, and is locked (``flock``) as
long as the writer lives. The next writer of the same place removes what nobody has locked: it was
left by a program that was killed.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = [
    "cache_directory",
    "naming",
    "remove_folder",
    "replace_folder",
    "replace_text",
    "replacing",
    "replacing_folder",
]

_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE
PARTIAL = ".partial"


def cache_directory() -> Path:
    """``DXML_CACHE``, else ``dxml`` in the user's cache directory."""
    if chosen := os.environ.get("DXML_CACHE"):
        return Path(chosen)
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "dxml"


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An error of the disk that names no file, as a full one does not, or one beside names this."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and str(error.filename or PARTIAL).endswith(PARTIAL):
            error.filename = str(path)
        raise


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it takes `path`'s place when the block ends well.

    Its folder is made where it is missing. Two writers at once do not meet: each has a name of its
    own, and the last one stays.
    """
    with naming(path), _beside(path, lambda new: new.touch(exist_ok=False)) as beside:
        yield beside
        os.replace(beside, path)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """As `replacing`, for a folder; the one that was there goes as a whole."""
    with naming(path), _beside(path, Path.mkdir) as beside:
        yield beside
        replace_folder(beside, path)


def replace_folder(new: Path, path: Path) -> None:
    """Put a folder in the place of another, which is there at every moment, and remove that.

    Where the system cannot exchange two names, there is a moment with neither.
    """
    if not path.exists():
        os.replace(new, path)
        return
    try:
        _exchange(new, path)
    except (AttributeError, OSError):
        aside = new.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
        os.rename(path, aside)
        os.rename(new, path)
        new = aside
    remove_folder(new)


def remove_folder(path: Path) -> None:
    """Remove a folder with all in it; an error names it, not what is in it without saying where."""
    try:
        shutil.rmtree(path)
    except OSError as error:
        error.filename = str(path)
        raise


def _exchange(one: Path, other: Path) -> None:
    """Two names change places in one step; Linux has that."""
    system = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    if system.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))


@contextmanager
def _beside(path: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """A new file or folder beside `path`, locked; it is removed where it is still there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for stale in path.parent.glob(f".{_literal(path.name)}.{'[0-9a-f]' * 12}.partial"):
        if (file := _locked(stale)) is not None:
            _remove(stale)
            os.close(file)
    held = None
    while held is None:  # another writer may have taken it for one that was left
        beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
        make(beside)
        held = _locked(beside, sure=False)
    try:
        yield beside
    finally:
        _remove(beside)
        os.close(held)


def _locked(path: Path, sure: bool = True) -> int | None:
    """The open file or folder, locked by us; None where somebody else has it or it is gone.

    A file system without locks locks nothing: with `sure`, that is None too.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        ours = path.exists()
    except BlockingIOError:
        ours = False
    except OSError:
        ours = not sure
    if ours:
        return file
    os.close(file)
    return None


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _literal(name: str) -> str:
    """For a pattern of names."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)


def replace_text(path: Path, text: str) -> None:
    """Write a text file in one step; half a character becomes a question mark."""
    with replacing(path) as beside:
        beside.write_text(text, "utf-8", "replace")
