"""Which files of arrays were found in order, so that they need not be read through again.

Comparing a checksum and looking at every id of a large model takes longer than all else that
opening it does. A file that passed is remembered by an empty file in the user's cache directory,
whose name is made of the file's checksums, its place on the disk and its times. A file that was
copied, replaced or written to has other ones and is checked again. The cache is the user's own: a
folder from elsewhere cannot say of itself that it was checked.

Bytes that change on the disk by themselves are not noticed so; ``dxml model check`` reads them.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from dxml._core.files import cache_directory

__all__ = ["forget_oldest", "is_marked", "mark_of", "remember"]

CHECKS = 1
"""Raised when a check is added: what passed before is then checked again."""
LARGE = 1 << 20  # bytes of a file from which on it is remembered; smaller ones are read in a moment
SETTLED = 2.0  # seconds for which a file must not have changed: its times may be as coarse as that
MOST = 1000  # marks that are kept


def mark_of(file: int, *checksums: str) -> Path | None:
    """The mark of an open file; None where it is small, or has just been written.

    Parameters
    ----------
    file : int
        Its descriptor.
    checksums : str
        Those that the model's folder names.
    """
    found = os.fstat(file)
    changed = max(found.st_mtime, found.st_ctime)
    if found.st_size < LARGE or abs(time.time() - changed) < SETTLED:
        return None
    times = (found.st_mtime_ns, found.st_ctime_ns)
    key = (CHECKS, *checksums, found.st_dev, found.st_ino, found.st_size, *times)
    return cache_directory() / "checked" / hashlib.sha256(repr(key).encode()).hexdigest()


def is_marked(mark: Path | None) -> bool:
    """Whether a file with this mark was found in order before."""
    try:
        return mark is not None and mark.is_file()
    except OSError:
        return False


def remember(mark: Path | None) -> None:
    """Leave a mark; where that cannot be, the file is checked again the next time."""
    if mark is None:
        return
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
        forget_oldest(mark.parent, MOST)
    except OSError:
        pass


def forget_oldest(folder: Path, kept: int) -> None:
    """Remove the oldest marks, all but `kept`."""
    marks = list(folder.iterdir())
    if len(marks) > kept:
        for old in sorted(marks, key=lambda path: path.stat().st_mtime)[: len(marks) - kept]:
            old.unlink(missing_ok=True)
