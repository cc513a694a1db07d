"""Progress on standard error: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import rich.progress as bars
from rich.console import Console
from rich.table import Column
from rich.text import Text

from dxml.progress import Progress, Stage

__all__ = ["show_progress"]

SECONDS_BETWEEN_LINES = 15
WIDE = 100  # columns of a terminal that has room for a bar, elsewhere a percentage


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Bars if standard error is a terminal, else lines."""
    if sys.stderr.isatty():
        console = Console(stderr=True)
        done = bars.BarColumn() if console.width >= WIDE else bars.TaskProgressColumn()
        with bars.Progress(
            bars.SpinnerColumn(finished_text="✓"),
            bars.TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            done,
            _DetailColumn(),
            bars.TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=console,
        ) as display:
            yield _Bars(display)
    else:
        yield _Lines()


class _DetailColumn(bars.ProgressColumn):
    """The note where there is one, else e.g. ``12.3k/96.0k points 8.1k/s``; never a second line."""

    def render(self, task: bars.Task) -> Text:
        return Text(task.fields["note"] or _counts(task), no_wrap=True, overflow="ellipsis")


def _counts(task: bars.Task) -> str:
    unit = task.fields["unit"]
    if task.total is None or not unit:
        return ""
    rate = f" {_short(task.speed)}/s" if task.speed else ""
    return f"{_short(task.completed)}/{_short(task.total)} {unit}{rate}"


class _BarStage:
    def __init__(self, display: bars.Progress, task: bars.TaskID) -> None:
        self._display = display
        self._task = task

    def advance(self, amount: float = 1) -> None:
        self._display.advance(self._task, amount)

    def note(self, text: str) -> None:
        self._display.update(self._task, note=text)


class _Bars:
    def __init__(self, display: bars.Progress) -> None:
        self._display = display

    @contextmanager
    def stage(self, name: str, total: float | None = None, unit: str = "steps") -> Iterator[Stage]:
        unit = "" if total is None else unit
        task = self._display.add_task(name, total=total, unit=unit, note="")
        yield _BarStage(self._display, task)
        finished = 1 if total is None else total
        self._display.update(task, total=finished, completed=finished)


class _LineStage:
    """Prints a line every few seconds at most, and one at the end."""

    def __init__(self, name: str, total: float | None, unit: str) -> None:
        self._name, self._total, self._unit = name, total, unit
        self._start = self._spoken = time.monotonic()
        self._done = 0.0
        self._note = ""

    def advance(self, amount: float = 1) -> None:
        self._done += amount
        now = time.monotonic()
        if now - self._spoken >= SECONDS_BETWEEN_LINES:
            self._spoken = now
            self._say(f"{_short(self._done)}{self._of_total()}{self._rate(now)}")

    def note(self, text: str) -> None:
        self._note = text

    def finish(self) -> None:
        self._say(f"done in {time.monotonic() - self._start:.1f} s")

    def _of_total(self) -> str:
        return f"/{_short(self._total)} {self._unit}" if self._total else f" {self._unit}"

    def _rate(self, now: float) -> str:
        rate = self._done / max(now - self._start, 1e-9)
        left = f", {(self._total - self._done) / rate:.0f} s left" if self._total and rate else ""
        return f", {_short(rate)}/s{left}"

    def _say(self, text: str) -> None:
        note = f" ({self._note})" if self._note else ""
        print(f"{self._name}: {text}{note}", file=sys.stderr, flush=True)


class _Lines:
    @contextmanager
    def stage(self, name: str, total: float | None = None, unit: str = "steps") -> Iterator[Stage]:
        stage = _LineStage(name, total, unit)
        yield stage
        stage.finish()


def _short(number: float) -> str:
    """1234567 → 1.2M."""
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if number >= limit:
            scale = 1e3 if suffix == "k" else limit
            return f"{number / scale:.1f}{suffix}"
    return f"{number:.0f}"
