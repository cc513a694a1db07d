"""Carries out an experiment: what is stored is skipped, each run has a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO

from dxml.bench import _machine as machine
from dxml.bench._own_files import checksums
from dxml.bench._results import Store, Stored
from dxml.bench._spec import Experiment, Run
from dxml.bench._worker import Settings, carry_out, failure
from dxml.exceptions import ParameterError

__all__ = ["Event", "run_experiment", "to_do"]

WORKER = (sys.executable, "-P", "-m", "dxml.bench._worker")
"""-P: files beside the adapter, such as one called random.py, are not taken for modules."""
_TAIL = 1500  # last characters of a failed process's output that are kept


@dataclass(frozen=True)
class Event:
    """A run has ended.

    Attributes
    ----------
    done, total : int
        Runs ended and runs there are, stored ones included.
    seconds : float
        From the process's start to its end.
    left : float
        Seconds until all is done, as far as one can tell.
    """

    stored: Stored
    done: int
    total: int
    seconds: float
    left: float


@dataclass
class _Process:
    """A run under way."""

    run: Run
    popen: subprocess.Popen[str]
    log: IO[str]
    limit: float | None
    start: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.start

    def overdue(self) -> bool:
        return self.limit is not None and self.seconds > self.limit

    def last_words(self) -> str:
        self.log.seek(0)
        return self.log.read().strip()[-_TAIL:]

    def stop(self) -> None:
        """End it and whatever it started; an ended process is no mistake."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()
        if self.popen.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.popen.stdin.close()
        self.log.close()


def to_do(
    experiment: Experiment,
    store: Store,
    *,
    only: Sequence[str] = (),
    retry_failed: bool = False,
    rerun: bool = False,
) -> list[Run]:
    """The runs that are not stored yet, or are to be done again.

    With `only`, those alone that have each of the words in their data, method, parameters or label.
    """
    called = experiment.names
    chosen = [run for run in experiment.runs if all(word in called[run] for word in only)]
    if only and not chosen:
        raise ParameterError(
            f"no run of {experiment.name} has {' and '.join(map(repr, only))} in its name, such as "
            f"{called[experiment.runs[0]]!r}."
        )
    wanted = []
    for run in chosen:
        stored = None if rerun else store.get(run)
        if stored is None or stored.stale or (retry_failed and stored.status == "failed"):
            wanted.append(run)
    return wanted


def run_experiment(
    experiment: Experiment,
    store: Store,
    settings: Settings | None = None,
    *,
    jobs: int = 1,
    limit: float | None = None,
    only: Sequence[str] = (),
    retry_failed: bool = False,
    rerun: bool = False,
    report: Callable[[Event], None] = lambda event: None,
) -> None:
    """Carry out what is not stored.

    Parameters
    ----------
    jobs : int
        Processes at once; each may use its share of the cores.
    limit : float or None
        Seconds that a run may take, where that is less than the experiment allows.
    only : sequence of str
        Words that a run must have in its data, method or parameters.
    retry_failed, rerun : bool
        Do failed runs, or all runs, again.
    report : callable
        Hears of every run that has ended.
    """
    settings = replace(settings or Settings(), warm_up=experiment.warm_up)
    if settings.threads is None:
        settings = replace(settings, threads=max(1, machine.cores() // jobs))
    wanted = to_do(experiment, store, only=only, retry_failed=retry_failed, rerun=rerun)
    clock = _Clock(wanted, len(experiment.runs), jobs)
    if not experiment.processes:
        for run in wanted:
            start = time.monotonic()
            stored = carry_out(run, store, settings)
            report(clock.ended(stored, time.monotonic() - start))
        return
    limits = {run: _shortest(experiment.time_limit(run), limit) for run in wanted}
    _run_processes(limits, store, settings, jobs, clock, report)


def _shortest(*limits: float | None) -> float | None:
    """The least of the limits that there are."""
    return min((limit for limit in limits if limit is not None), default=None)


def _run_processes(
    limits: dict[Run, float | None],
    store: Store,
    settings: Settings,
    jobs: int,
    clock: _Clock,
    report: Callable[[Event], None],
) -> None:
    waiting = list(reversed(limits))
    active: list[_Process] = []
    try:
        while waiting or active:
            while waiting and len(active) < jobs:
                run = waiting.pop()
                active.append(_start(run, store, settings, limits[run]))
            for process in [p for p in active if p.popen.poll() is not None or p.overdue()]:
                active.remove(process)
                report(clock.ended(_collect(process, store, settings), process.seconds))
            time.sleep(0.05)
    finally:  # an interrupt leaves nothing half-written
        for process in active:
            process.stop()
            store.discard_partial(process.run)


def _start(run: Run, store: Store, settings: Settings, limit: float | None) -> _Process:
    threads = str(settings.threads)
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), threads)
    limits["OPENBLAS_NUM_THREADS"] = threads
    log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
    popen = subprocess.Popen(
        [*WORKER, str(Path(store.root).resolve())],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        text=True,
        start_new_session=True,  # a group of its own, to be ended as a whole
        env={"OMP_WAIT_POLICY": "PASSIVE", **os.environ, **limits},
    )
    assert popen.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it may be dead already
        popen.stdin.write(json.dumps({"run": run.as_dict(), "settings": asdict(settings)}) + "\n")
        popen.stdin.flush()  # it stays open: where this process ends, the other one does
    return _Process(run, popen, log, limit)


def _collect(process: _Process, store: Store, settings: Settings) -> Stored:
    """What the process stored, or else why it could not."""
    overdue, code = process.popen.poll() is None, process.popen.returncode
    words = process.last_words()
    process.stop()
    stored = store.get(process.run) if code == 0 else None
    if stored is not None:
        return stored
    if overdue:
        error = f"took longer than the limit of {process.limit:g} s"
    elif code < 0:
        error = f"the process was ended by signal {-code}"
    else:
        error = f"the process ended with code {code}"
    run = process.run
    files = {"files": checksums(run.method, run.dataset)}
    return store.put(run, {**failure(error, words, settings), **files}, None)


class _Clock:
    """Estimates the time left from the runs that have ended."""

    def __init__(self, wanted: list[Run], total: int, jobs: int) -> None:
        self._waiting = dict.fromkeys(wanted)
        self._total = total
        self._jobs = jobs
        self._seconds: dict[tuple[str, str], list[float]] = {}

    def ended(self, stored: Stored, seconds: float) -> Event:
        run = stored.run
        self._waiting.pop(run, None)
        self._seconds.setdefault((run.dataset, run.method), []).append(seconds)
        everything = [s for group in self._seconds.values() for s in group]
        left = 0.0
        for other in self._waiting:
            alike = self._seconds.get((other.dataset, other.method), everything)
            left += sum(alike) / len(alike)
        done = self._total - len(self._waiting)
        return Event(stored, done, self._total, seconds, left / self._jobs)
