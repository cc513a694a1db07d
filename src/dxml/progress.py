"""How long work reports itself: one hook that serves progress bars, logs and stage timings.

The library calls ``with progress.stage("walks", n, "walks") as stage: stage.advance(64)``. What
becomes of that is the caller's choice: nothing (the default), a rich bar (the command line), or a
stored number of seconds (the benchmark).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["SILENT", "Progress", "Silent", "Stage", "StageTimer"]


class Stage(Protocol):
    """One long step under way."""

    def advance(self, amount: float = 1) -> None:
        """`amount` more units of the stage's total are done."""

    def note(self, text: str) -> None:
        """A few words beside the bar, e.g. ``loss 0.0123``."""


class Progress(Protocol):
    """Something that wants to hear of long steps."""

    @contextmanager
    def stage(self, name: str, total: float | None = None, unit: str = "steps") -> Iterator[Stage]:
        """Enter a long step; `total` is None where its length is not known."""
        ...


class _SilentStage:
    def advance(self, amount: float = 1) -> None: ...

    def note(self, text: str) -> None: ...


class Silent:
    """Hears and forgets."""

    @contextmanager
    def stage(self, name: str, total: float | None = None, unit: str = "steps") -> Iterator[Stage]:
        yield _SilentStage()


SILENT = Silent()


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
