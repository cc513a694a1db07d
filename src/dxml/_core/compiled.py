"""Loops that numba compiles, imported and compiled when one is first called.

Importing numba takes time and memory, and the first call of a compiled function as much again, even
where its code comes from the cache on disk (benchmarks/startup.py). What runs no such loop needs
neither.

Where no folder can be written to, neither beside the code nor the user's own, nothing is kept, and
every process compiles anew: `are_kept`.

Where numba has neither OpenMP nor TBB, as in slim containers and on macOS, two threads that run
loops at once would end the process. Calls take turns there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Event, RLock, local
from types import FunctionType
from typing import Any

__all__ = [
    "Compiled",
    "Stopped",
    "are_kept",
    "compiled",
    "is_loaded",
    "prange",
    "rehearsal",
    "spare",
    "when_compiling",
    "when_loaded",
]

FEW_ROWS = 64  # that numpy has done before numba is imported

prange = range
"""Inside a compiled function this is numba's `prange`."""

_lock = RLock()
_turn = RLock()
_listeners: list[tuple[Callable[[str], None], Callable[[str], None]]] = []
_prepared: list[Callable[[Any], None]] = []  # and not called yet


class Stopped(BaseException):
    """A rehearsal was stopped; no error of the work that it does."""


class _Mine(local):
    """Of each thread: what stops its rehearsal, or None."""

    stop: Event | None = None


_mine = _Mine()
_rehearsals: list[Event] = []


class Compiled:
    """A function that becomes numba's at its first call; `__wrapped__` is the function itself."""

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        self.__wrapped__ = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        self._options = options
        self._dispatcher: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        if (stop := _mine.stop) is not None and stop.is_set():
            raise Stopped
        run = self._dispatcher or self.dispatcher()
        if _Side.by_side:
            return run(*arguments)
        with _turn:
            found = run(*arguments)
            _Side.look()
        return found

    def dispatcher(self) -> Callable[..., Any]:
        """numba's function; what it calls is numba's too, for it alone."""
        with _lock:
            if self._dispatcher is None:
                numba = _loaded()
                plain = self.__wrapped__
                names = dict(plain.__globals__)
                for name in plain.__code__.co_names:
                    found = names.get(name)
                    if isinstance(found, Compiled):
                        names[name] = found.dispatcher()
                    elif found is prange:
                        names[name] = numba.prange
                while _prepared:
                    _prepared.pop()(numba)
                own = FunctionType(
                    plain.__code__, names, plain.__name__, plain.__defaults__, plain.__closure__
                )
                own.__qualname__, own.__module__ = plain.__qualname__, plain.__module__
                try:
                    self._dispatcher = numba.njit(cache=True, **self._options)(own)
                except RuntimeError:  # there is no folder for what is compiled
                    _Side.kept = False
                    self._dispatcher = numba.njit(**self._options)(own)
            return self._dispatcher


class _Side:
    """Whether several threads may run loops at once, and whether what is compiled is kept."""

    by_side = False
    kept = True

    @classmethod
    def look(cls) -> None:
        """numba tells after the first loop over several cores; until then nobody knows."""
        numba = _loaded()
        try:
            cls.by_side = numba.threading_layer() != "workqueue"
        except ValueError:
            cls.by_side = False


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Have numba compile a function when it is first called; what it compiled stays on disk.

    Parameters
    ----------
    **options
        Those of ``numba.njit``, such as ``parallel=True``.
    """
    return lambda function: Compiled(function, options)


def are_kept() -> bool:
    """Whether loops that were compiled are there for the next process, as far as is known."""
    return _Side.kept


def is_loaded() -> bool:
    """Whether numba is imported already, so that a compiled function costs no more than its run.

    During a `rehearsal` it is, for the thread that rehearses alone.
    """
    return _mine.stop is not None or ("numba" in sys.modules and not _rehearsals)


@contextmanager
def rehearsal(stop: Event) -> Iterator[None]:
    """Inside, this thread runs compiled loops only, and is the only one that waits for them.

    Others go on as if numba were not imported. What they do is best done inside once, so that
    nobody waits afterwards. Once `stop` is set the next loop raises `Stopped`.
    """
    _rehearsals.append(stop)
    _mine.stop = stop
    try:
        yield
    finally:
        _mine.stop = None
        _rehearsals.remove(stop)


def spare(rows: int) -> bool:
    """Whether so few rows should be done by numpy, as numba is not imported yet.

    Who asks has both, and both give the same: to the bit, or as near as another order of addition.
    """
    return rows <= FEW_ROWS and not is_loaded()


def when_compiling(
    start: Callable[[str], None], end: Callable[[str], None] = lambda name: None
) -> None:
    """Have functions called with the name of each loop before and after it is compiled.

    Loops that come from the cache on disk are not compiled. One that calls another may have it
    compiled meanwhile.
    """
    _listeners.append((start, end))


def when_loaded(prepare: Callable[[Any], None]) -> Callable[[Any], None]:
    """Have `prepare` called with the module numba before the next loop is made ready."""
    _prepared.append(prepare)
    return prepare


def _name_in(event: Any) -> str:
    return str(event.data["dispatcher"].py_func.__name__)


@cache
def _loaded() -> Any:
    """The module numba; it tells the listeners from now on."""
    import numba
    from numba.core import event as events

    class Telling(events.Listener):
        def on_start(self, event: events.Event) -> None:
            for start, _ in _listeners:
                start(_name_in(event))

        def on_end(self, event: events.Event) -> None:
            for _, end in _listeners:
                end(_name_in(event))

    events.register("numba:compile", Telling())
    return numba
