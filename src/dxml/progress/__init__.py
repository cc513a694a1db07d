"""How long-running work reports its progress: one hook for bars, log lines and timings.

The library calls ``with progress.stage("walks", n, "walks") as stage: stage.advance(64)``. The
caller passes the object that is told: `SILENT` (the default), bars (`open_progress`), or a
`StageTimer`.

>>> with open_progress(quiet=True) as progress, progress.stage("read", 10, "rows") as stage:
...     stage.advance(10)
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

__all__ = ["SILENT", "Progress", "Silent", "Stage", "StageTimer", "open_progress"]


class Stage(Protocol):
    """One long step that is running."""

    def advance(self, amount: float = 1) -> None:
        """`amount` more units of the stage's total are done."""

    def note(self, text: str) -> None:
        """A few words beside the bar, e.g. ``loss 0.0123``."""


class Progress(Protocol):
    """An object that is told about long steps."""

    @contextmanager
    def stage(self, name: str, total: float | None = None, unit: str = "steps") -> Iterator[Stage]:
        """Enter a long step; `total` is None where its length is not known."""
        ...


class _SilentStage:
    def advance(self, amount: float = 1) -> None: ...

    def note(self, text: str) -> None: ...


class Silent:
    """Ignores all reports."""

    @contextmanager
    def stage(self, name: str, total: float | None = None, unit: str = "steps") -> Iterator[Stage]:
        yield _SilentStage()


SILENT = Silent()


def open_progress(quiet: bool = False) -> AbstractContextManager[Progress]:
    """Show progress on standard error: bars on a terminal, plain lines elsewhere.

    Parameters
    ----------
    quiet : bool
        Show nothing.

    Returns
    -------
    A context manager that gives a `Progress`.
    """
    if quiet:
        return nullcontext(SILENT)
    from dxml.progress._console import show_progress  # rich takes its time to import

    return show_progress()


class StageTimer:
    """Adds up the seconds of each stage by name and passes everything on to `inner`."""

    def __init__(self, inner: Progress = SILENT) -> None:
        self.inner = inner
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str, total: float | None = None, unit: str = "steps") -> Iterator[Stage]:
        start = time.perf_counter()
        try:
            with self.inner.stage(name, total, unit) as stage:
                yield stage
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
