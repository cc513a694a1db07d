"""Heads that come too slowly or never, and the sockets of connections."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
import uvicorn

from dxml.service._connections import Connection

from .conftest import PATIENCE

TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\n"


class Impatient(Connection):
    head_seconds = 0.2
    undelayed: ClassVar[list[int]] = []

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        own = transport.get_extra_info("socket")
        self.undelayed.append(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/slow":
        await asyncio.sleep(3 * Impatient.head_seconds)
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    listening = socket.socket()  # of no protocol by its number, as uvicorn makes it for workers
    listening.bind(("127.0.0.1", 0))
    listening.listen()  # who comes before the server has started waits
    config = uvicorn.Config(app, http=Impatient, lifespan="off", log_level="error", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield int(listening.getsockname()[1])
    server.should_exit = True
    thread.join(20)
    listening.close()


def answer(port: int, *parts: bytes) -> bytes:
    """All that comes back until the other side hangs up; a part is sent when there is an answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        got = b""
        for i, part in enumerate(parts):
            client.sendall(part)
            if i + 1 < len(parts):
                got += client.recv(1000)
        while more := client.recv(1000):
            got += more
        return got


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\nX-A: b\r\n"])
def test_a_head_that_does_not_come_is_given_up(port: int, sent: bytes) -> None:
    assert answer(port, sent).startswith(TOO_LATE)


def test_the_next_head_has_its_time_too(port: int) -> None:
    got = answer(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HT")
    assert got.startswith(b"HTTP/1.1 200 OK\r\n") and got.count(b"HTTP/1.1") == 2
    assert TOO_LATE in got


def test_a_slow_answer_is_no_slow_head(port: int) -> None:
    got = answer(port, b"GET /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 200 OK\r\n") and got.endswith(b"ok")


def test_answers_leave_at_once(port: int) -> None:
    answer(port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert Impatient.undelayed and all(Impatient.undelayed)
