"""The most memory that a process had of its own, looked at from outside a hundred times a second.

``RssAnon`` of Linux is what counts: all that a process has in memory of its own. Pages of files are
the system's cache, which it gives up when others need room.

    with OwnMemory(os.getpid()) as memory: ...
    print(memory.peak)
"""

from __future__ import annotations

import re
import select
import subprocess
import sys
from pathlib import Path
from types import TracebackType

INTERVAL = 0.01  # seconds between two looks


class OwnMemory:
    """Watches a process from another one, which no loop of the first can hold up."""

    peak = 0  # bytes, when the block has ended

    def __init__(self, process: int) -> None:
        self._process = process

    def __enter__(self) -> OwnMemory:
        self._watcher = subprocess.Popen(
            [sys.executable, __file__, str(self._process)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._watcher.stdout is not None
        self._watcher.stdout.readline()  # it looks from now on
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        said, _ = self._watcher.communicate()
        self.peak = int(said)


def own_bytes(process: int) -> int:
    """Of now; 0 of a process that has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text("utf-8")
    except OSError:
        return 0
    found = re.search(r"^RssAnon:\s+(\d+) kB$", status, re.MULTILINE)
    return 1024 * int(found[1]) if found else 0


def watch(process: int) -> int:
    """The peak until the standard input ends."""
    peak = own_bytes(process)
    while not select.select([sys.stdin], [], [], INTERVAL)[0]:
        peak = max(peak, own_bytes(process))
    return peak


if __name__ == "__main__":
    print("watching", flush=True)
    print(watch(int(sys.argv[1])))
