"""One writer at a time in a model's folder.

The lock is an advisory one (``flock``) on the empty file ``.lock`` in the folder: a process that is
killed gives it up, and the file stays. Who has it may take it again, so that a program can hold it
from the reading of a model to its saving. Readers need none.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["LOCK", "folder_lock"]

LOCK = ".lock"
PATIENCE = 1.0  # seconds until it is said that somebody is waited for
PAUSE = 0.05  # seconds between two looks
_BUSY = (errno.EAGAIN, errno.EACCES)
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)  # of a file system that has none

_log = logging.getLogger(__name__)
_own = threading.local()  # what this thread has


@contextmanager
def folder_lock(
    folder: str | Path,
    *,
    timeout: float | None = None,
    waiting: Callable[[], object] | None = None,
) -> Iterator[None]:
    """Inside, no other process and no other thread writes to this folder.

    Parameters
    ----------
    folder : str or Path
        It must be there.
    timeout : float, optional
        Seconds to wait for others; by default as long as it takes.
    waiting : callable, optional
        Called once, when others have been waited for for a second.

    Raises
    ------
    TimeoutError
        When others still write after `timeout` seconds.
    """
    path = Path(folder) / LOCK
    held: set[tuple[int, int]] = vars(_own).setdefault("held", set())
    file = _locked(path, held, timeout, waiting or (lambda: _log.info("waiting for %s", path)))
    if file is None:  # this thread has it already
        yield
        return
    key = _identity(os.fstat(file))
    held.add(key)
    try:
        yield
    finally:
        held.discard(key)
        os.close(file)  # which gives up the lock


def _locked(
    path: Path,
    held: set[tuple[int, int]],
    timeout: float | None,
    waiting: Callable[[], object],
) -> int | None:
    """The open file of a lock that is ours now; None where it was before."""
    start, said = time.monotonic(), False
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            if _identity(os.fstat(file)) in held:
                os.close(file)
                return None
            if _try(file) and _is_there(path, file):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        spent = time.monotonic() - start
        if timeout is not None and spent >= timeout:
            said_so = f"another program is writing this model, and was for {timeout:g} s"
            raise TimeoutError(errno.ETIMEDOUT, f"{said_so}. Try again later", str(path.parent))
        if spent >= PATIENCE and not said:
            waiting()
            said = True
        time.sleep(PAUSE)


def _try(file: int) -> bool:
    """Whether the lock could be had at once; a file system without locks gives it to everyone."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        if error.errno not in _NO_LOCKS:
            raise
        _log.warning("the file system has no locks (%s): let only one program write", error)
    return True


def _is_there(path: Path, file: int) -> bool:
    """Whether the folder is still the one that was looked into; it may have been put aside."""
    try:
        return _identity(path.stat()) == _identity(os.fstat(file))
    except FileNotFoundError:
        return False


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
