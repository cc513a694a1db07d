"""What the first command on a machine is doing while loops are compiled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from dxml._core.compiled import are_kept
from dxml._core.counted import counted

__all__ = ["CompilingNotice"]

EVERY = 5.0  # seconds between two lines
LONG = 2.0  # seconds from which on the total is told
NOT_KEPT = (
    "they are not kept, since no folder for them can be written to: "
    "NUMBA_CACHE_DIR=FOLDER names one"
)


class CompilingNotice:
    """Says that loops are compiled, which one, and how many are done, for as long as it takes.

    Parameters
    ----------
    say : callable
        Called with each line.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._running: list[str] = []
        self._done = 0
        self._seconds = self._start = 0.0
        self._ended = threading.Event()

    def start(self, name: str) -> None:
        """A loop is about to be compiled; those that it calls may be compiled inside."""
        if not self._running:
            self._start = time.perf_counter()
        self._running.append(name)
        if self._done == 0 and len(self._running) == 1:
            self._say("compiling loops, once on this machine: it may take a minute")
            threading.Thread(target=self._repeat, daemon=True).start()

    def end(self, name: str) -> None:
        """A loop is compiled."""
        self._running.pop()
        self._done += 1
        if not self._running:
            self._seconds += time.perf_counter() - self._start

    def close(self) -> None:
        """Say how long all of it took, if it took long."""
        self._ended.set()
        if self._seconds > LONG:
            then = "next time they are there" if are_kept() else NOT_KEPT
            self._say(f"compiled {counted(self._done, 'loop')} in {self._seconds:.0f} s; {then}")

    def _repeat(self) -> None:
        while not self._ended.wait(EVERY):
            if self._running:
                self._say(f"compiling loops: {self._done} done, now {self._running[0].strip('_')}")
