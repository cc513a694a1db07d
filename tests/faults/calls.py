"""Calls of the system that change files, counted; at one of them the process dies or is refused.

Python's functions for them are replaced in this process: those of ``os`` that change names or
flush, and ``open`` for writing, whose writes count too. A write that is the chosen call is
done by half before the process dies. Statements of SQLite that change something are calls as well.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
import sqlite3
from collections.abc import Callable
from typing import Any

NAMES = ("fsync", "link", "mkdir", "rename", "replace", "rmdir", "symlink", "truncate", "unlink")
STATEMENTS = ("BEGIN", "COMMIT", "CREATE", "DELETE", "DROP", "INSERT", "UPDATE", "VACUUM")
ERRORS = {"full disk": errno.ENOSPC, "I/O error": errno.EIO, "read-only": errno.EROFS}


class Calls:
    """Counts calls, and acts at one of them.

    Parameters
    ----------
    at : int
        The number of the call at which something happens, from 1; 0: never.
    what : str
        "kill", or one of `ERRORS`, which every later call meets too but those that remove files.
    """

    def __init__(self, at: int = 0, what: str = "kill") -> None:
        self.at, self.what, self.count = at, what, 0
        self.names: list[str] = []

    def meet(
        self, name: str, path: Any = None, before_dying: Callable[[], object] = lambda: None
    ) -> None:
        """One more call; it may not return. Errors of the system name the path, if there is one."""
        self.count += 1
        self.names.append(name)
        if not self.at or self.count < self.at:
            return
        if self.what == "kill":
            before_dying()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.count == self.at or name not in ("unlink", "rmdir"):
            number = ERRORS[self.what]
            named = (os.fspath(path),) if isinstance(path, str | os.PathLike) else ()
            raise OSError(number, os.strerror(number), *named)

    def install(self) -> None:
        """Replace the functions; there is no way back, so do it in a process that ends."""
        for name in NAMES:
            setattr(os, name, self._counted(name, getattr(os, name)))
        real_open, real_os_open, real_connect = builtins.open, os.open, sqlite3.connect

        def os_open(path: Any, flags: int, *rest: Any, **named: Any) -> int:
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                self.meet("open", path)
            return real_os_open(path, flags, *rest, **named)

        def opened(file: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
            if not set(mode) & set("wax+"):
                return real_open(file, mode, *rest, **named)
            if not isinstance(file, int):
                self.meet("open", file)
            return _Written(real_open(file, mode, *rest, **named), self)

        def connect(*arguments: Any, **named: Any) -> sqlite3.Connection:
            connection = real_connect(*arguments, factory=_Connection, **named)
            connection.calls = self
            return connection

        os.open, sqlite3.connect = os_open, connect  # type: ignore[assignment]
        builtins.open = io.open = opened  # type: ignore[assignment]

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.meet(name, *arguments[:1])
            return function(*arguments, **named)

        return call


class _Connection(sqlite3.Connection):
    """A database whose changing statements are calls."""

    calls: Calls

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Refused, the statement ends its transaction, as SQLite does where the disk fails."""
        word = sql.split()[0]
        if word in STATEMENTS:
            try:
                self.calls.meet(word)
            except OSError as error:
                self.rollback()
                raise sqlite3.OperationalError(error.strerror) from error
        return super().execute(sql, *values)


class _Written:
    """A file that is open for writing; its writes are calls."""

    def __init__(self, file: Any, calls: Calls) -> None:
        self._file, self._calls = file, calls

    def write(self, data: Any) -> Any:
        def half() -> None:
            self._file.write(data[: len(data) // 2])
            self._file.flush()

        self._calls.meet("write", before_dying=half)
        return self._file.write(data)

    def __enter__(self) -> _Written:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __iter__(self) -> Any:
        return iter(self._file)
