"""Heads that come too slowly or never, and the sockets of connections."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

import pytest
import uvicorn

from dxml.service._connections import Connection

from .conftest import PATIENCE, wait_until

TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\n"


class Impatient(Connection):
    head_seconds = 0.2
    read_seconds = 1.0
    lost: ClassVar[list[float]] = []
    undelayed: ClassVar[list[int]] = []

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        own = transport.get_extra_info("socket")
        self.undelayed.append(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.lost.append(time.monotonic())


class Patient(Connection):
    head_seconds = PATIENCE
    head_bytes = 1 << 19
    said: ClassVar[list[bytes]] = []

    def _hang_up(self, said: bytes) -> None:
        super()._hang_up(said)
        self.said.append(said)


LARGE = 8 << 20  # bytes; more than the sockets of both sides hold
left: list[str] = []  # paths of answers that were sent, or could not be


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/slow":
        await asyncio.sleep(3 * Impatient.head_seconds)
    while (message := await receive()).get("more_body"):
        pass
    if message["type"] == "http.disconnect":
        left.append("gone")
        return
    content = b"x" * LARGE if scope["path"] == "/large" else scope["path"].encode()
    headers = [(b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for start in range(0, len(content), 1 << 16):
        more = start + (1 << 16) < len(content)
        part = content[start : start + (1 << 16)]
        await send({"type": "http.response.body", "body": part, "more_body": more})
    left.append(scope["path"])


@contextmanager
def serving(http: type[Connection]) -> Iterator[int]:
    """The port of a server with such connections."""
    with running(http) as (port, _):
        yield port


@contextmanager
def running(http: type[Connection]) -> Iterator[tuple[int, uvicorn.Server]]:
    """A server with such connections, and its port."""
    listening = socket.socket()  # of no protocol by its number, as uvicorn makes it for workers
    listening.bind(("127.0.0.1", 0))
    listening.listen()  # who comes before the server has started waits
    config = uvicorn.Config(
        app,
        http=http,
        lifespan="off",
        log_level="error",
        ws="none",
        h11_max_incomplete_event_size=1 << 30,  # as httptools, which sets no limit
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield int(listening.getsockname()[1]), server
    server.should_exit = True
    thread.join(20)
    listening.close()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(Impatient) as number:
        yield number


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


@pytest.mark.parametrize("line", [b"X-A: " + b"a" * (1 << 20), b"X-A: a\r\n" * (1 << 17)])
def test_a_head_without_end_is_given_up(line: bytes) -> None:
    """Whatever is read of it is kept in memory until it is complete."""
    Patient.said.clear()
    with (
        serving(Patient) as port,
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client,
    ):
        with suppress(BrokenPipeError, ConnectionResetError):  # it hangs up before all was sent
            client.sendall(b"GET /short HTTP/1.1\r\nHost: a\r\n" + line)
        wait_until(lambda: Patient.said)
    assert Patient.said[0].startswith(b"HTTP/1.1 431 ")


def test_the_next_head_has_its_time_too(port: int) -> None:
    got = answer(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HT")
    assert got.startswith(b"HTTP/1.1 200 OK\r\n") and got.count(b"HTTP/1.1") == 2
    assert TOO_LATE in got


def test_a_slow_answer_is_no_slow_head(port: int) -> None:
    got = answer(port, b"GET /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 200 OK\r\n") and got.endswith(b"/slow")


def test_answers_leave_at_once(port: int) -> None:
    answer(port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert Impatient.undelayed and all(Impatient.undelayed)


def test_a_client_that_has_closed_its_half_is_answered(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        client.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        got = b""
        while more := client.recv(1000):  # until the other side hangs up, which it does at once
            got += more
    assert got.startswith(b"HTTP/1.1 200 OK\r\n") and got.endswith(b"/slow")


def test_half_a_body_and_the_end_is_no_request(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        client.sendall(b"POST /half HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1000) == b""
    wait_until(lambda: "gone" in left)
    assert "/half" not in left


def test_requests_in_a_row_are_answered_in_their_order(port: int) -> None:
    paths = ["/slow", "/1", "/2", "/slow", "/3"]
    sent = b"".join(b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % path.encode() for path in paths)
    got = answer(port, sent + b"GET /4 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    bodies = [each.partition(b"\r\n\r\n")[2] for each in got.split(b"HTTP/1.1 200 OK\r\n")[1:]]
    assert bodies == [path.encode() for path in [*paths, "/4"]]


def test_who_does_not_read_the_answer_is_given_up(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        before = len(Impatient.lost)
        client.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_until(lambda: len(Impatient.lost) > before)
        got = b""
        with pytest.raises(ConnectionResetError):
            while more := client.recv(1 << 20):
                got += more
            raise ConnectionResetError  # closed without a reset
    assert len(got) < LARGE
    wait_until(lambda: "/large" in left)  # nothing of it is left behind


def test_who_reads_slowly_but_reads_gets_all(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        size = 0
        while more := client.recv(1 << 20):
            size += len(more)
            time.sleep(0.01)
    assert size > LARGE


class Leaving(Connection):
    last_seconds = PATIENCE
    told: ClassVar[list[Connection]] = []

    def shutdown(self) -> None:
        super().shutdown()
        self.told.append(self)


GET = b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n"


def all_of(client: socket.socket) -> bytes:
    """What comes until the other side hangs up."""
    return b"".join(iter(lambda: client.recv(1000), b""))


def test_what_comes_while_the_server_ends_is_answered() -> None:
    """On connections that wait: the answer tells the client that it is the last one."""
    Leaving.told.clear()
    with (
        running(Leaving) as (port, server),
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as used,
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as fresh,
    ):
        used.sendall(GET % b"1")
        first = used.recv(1000)
        while not first.endswith(b"/1"):
            first += used.recv(1000)
        assert b"connection: close" not in first.lower()
        server.should_exit = True
        wait_until(lambda: len(Leaving.told) == 2)
        for client, path in ((used, b"2"), (fresh, b"3")):
            client.sendall(GET % path)
            got = all_of(client)
            assert got.startswith(b"HTTP/1.1 200 OK\r\n") and got.endswith(b"/" + path)
            assert b"connection: close\r\n" in got.lower()


def test_a_request_that_is_answered_when_the_server_ends_is_the_last() -> None:
    Leaving.told.clear()
    with (
        running(Leaving) as (port, server),
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client,
    ):
        client.sendall(GET % b"slow")
        wait_until(lambda: server.server_state.tasks)
        server.should_exit = True
        got = all_of(client)
    assert got.endswith(b"/slow") and b"connection: close\r\n" in got.lower()
    assert len(Leaving.told) == 1


def test_who_asks_nothing_more_is_hung_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leaving, "last_seconds", 0.1)
    with (
        running(Leaving) as (port, server),
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client,
    ):
        wait_until(lambda: server.server_state.connections)
        server.should_exit = True
        assert client.recv(1000) == b""
