"""Numbers of worker processes: each holds one as long as it lives."""

from __future__ import annotations

import fcntl
import itertools
from pathlib import Path
from typing import IO

__all__ = ["free_slot"]


def free_slot(folder: str | Path, what: str = "") -> tuple[int, IO[bytes]]:
    """The smallest number that no other process holds, and the lock that holds it.

    The lock ends when it is closed or the process ends. `what` tells apart what is numbered.
    """
    for slot in itertools.count():
        lock = open(Path(folder) / f"{what}{slot}.lock", "ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return slot, lock
        except BlockingIOError:
            lock.close()
    raise AssertionError  # a count has no end
