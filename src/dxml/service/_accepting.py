"""How worker processes that listen at one socket share the connections that come.

All of them wake up when clients connect, and asyncio lets the first accept all that wait. A client
that opens its connections together would be answered by one worker alone, and the others would have
nothing to do. Here a worker accepts one connection at a time. While another has fewer, it leaves
the next one to that, for some milliseconds at most: the other may be busy, or have ended.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import mmap
import os
import socket
import ssl as tls
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dxml.service._slots import free_slot

if TYPE_CHECKING:
    from dxml.service._connections import Connection

__all__ = ["Listening", "Tally", "sharing_loop"]

PATIENCE = 10
"""How often a worker looks again whether one with fewer connections has accepted."""
PAUSE = 0.001
"""Seconds between looks."""
EXHAUSTED = 1.0
"""Seconds until a worker tries again that could not accept, say for want of handles."""

_NUMBER = struct.Struct("q")
_log = logging.getLogger(__name__)


class Tally:
    """Open connections of each worker, in a file that all of them map into their memory.

    Each worker writes its own number only, so no lock is needed. One that is started later takes
    the place of one that has ended.

    Parameters
    ----------
    folder : str or Path
        Where the file is.
    workers : int
        How many there are at a time.
    """

    def __init__(self, folder: str | Path, workers: int) -> None:
        self._own, self._lock = free_slot(folder, "connections-")
        self._n = max(workers, self._own + 1)
        size = self._n * _NUMBER.size
        with open(Path(folder) / "connections.lock", "a+b") as file:
            if os.fstat(file.fileno()).st_size < size:
                file.truncate(size)
            self._mapped = mmap.mmap(file.fileno(), size)
        self._write(0)

    def begin(self) -> None:
        """Take part: this worker accepts connections from now on."""
        self._write(1)

    def end(self) -> None:
        """Take no part any more."""
        self._write(0)

    def add(self, more: int) -> None:
        """Count connections that came, or with a minus went."""
        if number := self._read(self._own):
            self._write(number + more)

    def has_least(self) -> bool:
        """Whether no other worker that takes part has fewer connections."""
        own = self._read(self._own)
        return not any(0 < self._read(place) < own for place in range(self._n))

    def close(self) -> None:
        """Give the place away."""
        self.end()
        self._mapped.close()
        self._lock.close()

    def _read(self, place: int) -> int:
        """One more than the connections of a worker; 0 of one that takes no part."""
        number: int = _NUMBER.unpack_from(self._mapped, place * _NUMBER.size)[0]
        return number

    def _write(self, number: int) -> None:
        _NUMBER.pack_into(self._mapped, self._own * _NUMBER.size, number)


class Protocols(Protocol):
    """Makes the protocol of a connection."""

    def __call__(self) -> Connection: ...


class Listening:
    """Accepts connections at a socket that other processes listen at too.

    It has what uvicorn asks of an `asyncio.Server`.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
    factory : callable
        Makes the protocol of a connection.
    sock : socket.socket
    tally : Tally
    ssl : ssl.SSLContext, optional
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        factory: Protocols,
        sock: socket.socket,
        tally: Tally,
        ssl: tls.SSLContext | None = None,
    ) -> None:
        self._loop = loop
        self._factory = factory
        self._sock = sock
        self._tally = tally
        self._ssl = ssl
        self._later: asyncio.TimerHandle | None = None
        self._opening: set[asyncio.Task[None]] = set()
        self.sockets = [sock]

    def start(self, backlog: int) -> None:
        """Listen; `backlog` connections may wait to be accepted."""
        self._sock.setblocking(False)
        self._sock.listen(backlog)
        self._tally.begin()
        self._loop.add_reader(self._sock, self._come)

    def close(self) -> None:
        """Accept no more; connections that are open stay so."""
        if not self.sockets:
            return
        self.sockets = []
        self._tally.end()
        self._stop()
        self._sock.close()

    async def wait_closed(self) -> None:
        """Nothing is left to be done after `close`."""

    def _come(self) -> None:
        """A connection waits, or did when this worker was woken."""
        if self._tally.has_least():
            self._accept()
        else:
            self._stop()
            self._look_later(PAUSE, PATIENCE)

    def _look(self, more: int) -> None:
        """Whether it is this worker's turn by now; after `more` further looks it is."""
        if more and not self._tally.has_least():
            self._look_later(PAUSE, more - 1)
            return
        self._loop.add_reader(self._sock, self._come)
        self._accept()

    def _accept(self) -> None:
        try:
            connected, _ = self._sock.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another worker was faster, or the client has gone
        except OSError as error:
            _log.error("no connection can be accepted: %s", error.strerror)
            self._stop()
            self._look_later(EXHAUSTED, 0)
            return
        connected.setblocking(False)
        self._tally.add(1)
        task = self._loop.create_task(self._open(connected))
        self._opening.add(task)  # the loop keeps only a weak reference
        task.add_done_callback(self._opening.discard)

    async def _open(self, connected: socket.socket) -> None:
        """Give a connection to its protocol."""
        try:
            _, protocol = await self._loop.connect_accepted_socket(
                self._factory, connected, ssl=self._ssl
            )
        except OSError as error:  # the client has gone, or failed to agree on TLS
            _log.debug("a connection was lost at once: %s", error)
            self._tally.add(-1)
            connected.close()
            return
        protocol.when_lost(lambda: self._tally.add(-1))
        if not self.sockets:  # closed meanwhile, when this connection was none to be told so
            protocol.shutdown()

    def _look_later(self, seconds: float, more: int) -> None:
        self._later = self._loop.call_later(seconds, self._look, more)

    def _stop(self) -> None:
        self._loop.remove_reader(self._sock)
        if self._later is not None:
            self._later.cancel()
            self._later = None


def sharing_loop(tally: Tally) -> asyncio.AbstractEventLoop:
    """An event loop, uvloop's where that is installed, whose servers share connections."""
    base: Callable[[], asyncio.AbstractEventLoop] = asyncio.SelectorEventLoop
    try:
        base = importlib.import_module("uvloop").Loop
    except ModuleNotFoundError:
        pass

    class Sharing(base):  # type: ignore[misc, valid-type]  # whichever is installed
        async def create_server(
            self,
            protocol_factory: Protocols,
            *more: Any,
            sock: socket.socket | None = None,
            backlog: int = 100,
            ssl: tls.SSLContext | None = None,
            **options: Any,
        ) -> Any:
            """A server; at a socket that is given, one that shares."""
            if sock is None:
                return await super().create_server(
                    protocol_factory, *more, backlog=backlog, ssl=ssl, **options
                )
            listening = Listening(self, protocol_factory, sock, tally, ssl)
            listening.start(backlog)
            return listening

    return Sharing()
