"""Connections of the server: heads must come in time and be short, answers leave and are read.

Uvicorn closes connections that are idle between requests, but sets no time limit for the first
head of a connection, nor for the rest of a head that was begun, nor for a client to read its
answer. With httptools it takes heads of any length. It drops the answer to a client that has closed
its own half of the connection. A server that is told to end closes connections between requests at
once, and one that a client is just sending is lost.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import ClassVar

from uvicorn.protocols.http.auto import AutoHTTPProtocol

__all__ = ["Connection"]

_TOO_LONG = b"HTTP/1.1 431 Headers Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # whichever is installed
    """Uvicorn's connection with limits for the head of a request."""

    head_seconds: ClassVar[float] = 10.0
    """From the first byte of a head to its last, and from a connection's start to its first."""

    read_seconds: ClassVar[float] = 60.0
    """For a client to read so much of an answer that the rest can be sent."""

    last_seconds: ClassVar[float] = 1.0
    """For a client to ask once more, when the server was told to end."""

    head_bytes: ClassVar[int] = 1 << 18
    """Of a head that is not complete. httptools, where it is installed, takes any number."""

    _come = 0  # bytes of a head that is not complete
    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _end: asyncio.TimerHandle | None = None
    _ending = False
    _lost = False
    _when_lost: Callable[[], None] | None = None

    def when_lost(self, call: Callable[[], None]) -> None:
        """Call a function when the connection has ended; at once where it has already."""
        if self._lost:
            call()
        else:
            self._when_lost = call

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the time limit for the first head."""
        super().connection_made(transport)
        connected = transport.get_extra_info("socket")
        if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6):
            # asyncio sets TCP_NODELAY only if the listening socket has proto IPPROTO_TCP
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read bytes of a head or a body; a complete head stops the time limit."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._come = 0
            self._stop_waiting()
            if self._ending:
                self._answer_and_close()
        elif before is None or before.response_complete:
            self._come += len(data)
            if self._come > self.head_bytes:
                self._hang_up(_TOO_LONG)
            elif self._deadline is None:
                self._wait()

    def eof_received(self) -> bool:
        """The client sends no more; a request that came completely is answered all the same."""
        asked = self.cycle
        if asked is None or asked.response_complete or asked.more_body:
            return False
        asked.keep_alive = False
        return True

    def shutdown(self) -> None:
        """The server ends: the next answer says that it is the last one, and closes.

        A client that was not told so may be sending a request at this moment.
        """
        self._ending = True
        if self.cycle is None or self.cycle.response_complete or self.cycle.response_started:
            self._end = self.loop.call_later(self.last_seconds, super().shutdown)
        else:
            self._answer_and_close()

    def _answer_and_close(self) -> None:
        self._stop_ending()
        self.cycle.default_headers = [*self.cycle.default_headers, (b"connection", b"close")]
        super().shutdown()

    def _stop_ending(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None

    def on_response_complete(self) -> None:
        """Go on with a request that came meanwhile."""
        before = self.cycle
        super().on_response_complete()
        if self._ending and self.cycle is not before:
            self._answer_and_close()

    def pause_writing(self) -> None:
        """Start the time limit for reading an answer."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self.read_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop it."""
        super().resume_writing()
        self._stop_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limits."""
        self._lost = True
        if self._when_lost is not None:
            self._when_lost()
        self._stop_waiting()
        self._stop_reading()
        self._stop_ending()
        super().connection_lost(exc)

    def _stop_reading(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(self.head_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        self._hang_up(_TOO_LATE)

    def _hang_up(self, said: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(said)
            self.transport.close()
