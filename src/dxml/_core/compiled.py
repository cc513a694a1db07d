"""Loops that numba compiles, imported and compiled when one is first called.

Importing numba takes time and memory, and the first call of a compiled function as much again, even
where its code comes from the cache on disk (benchmarks/startup.py). What runs no such loop needs
neither.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from threading import RLock
from typing import Any

__all__ = [
    "Compiled",
    "compiled",
    "is_loaded",
    "prange",
    "spare",
    "when_compiling",
    "when_loaded",
]

FEW_ROWS = 64  # that numpy has done before numba is imported

prange = range
"""Inside a compiled function this is numba's `prange`."""

_lock = RLock()
_listeners: list[tuple[Callable[[str], None], Callable[[str], None]]] = []
_prepared: list[Callable[[Any], None]] = []  # and not called yet


class Compiled:
    """A function that becomes numba's at its first call; `__wrapped__` is the function itself."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.__wrapped__ = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        self._options = options
        self._dispatcher: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        return (self._dispatcher or self.dispatcher())(*arguments)

    def dispatcher(self) -> Callable[..., Any]:
        """numba's function; names of the module that it uses become numba's too."""
        with _lock:
            if self._dispatcher is None:
                numba = _loaded()
                names = self.__wrapped__.__globals__
                for name in self.__wrapped__.__code__.co_names:
                    found = names.get(name)
                    if isinstance(found, Compiled):
                        names[name] = found.dispatcher()
                    elif found is prange:
                        names[name] = numba.prange
                while _prepared:
                    _prepared.pop()(numba)
                self._dispatcher = numba.njit(cache=True, **self._options)(self.__wrapped__)
            return self._dispatcher


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Have numba compile a function when it is first called; what it compiled stays on disk.

    Parameters
    ----------
    **options
        Those of ``numba.njit``, such as ``parallel=True``.
    """
    return lambda function: Compiled(function, options)


def is_loaded() -> bool:
    """Whether numba is imported already, so that a compiled function costs no more than its run."""
    return "numba" in sys.modules


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
    from numba.core.event import Event, Listener, register

    class Telling(Listener):
        def on_start(self, event: Event) -> None:
            for start, _ in _listeners:
                start(_name_in(event))

        def on_end(self, event: Event) -> None:
            for _, end in _listeners:
                end(_name_in(event))

    register("numba:compile", Telling())
    return numba
