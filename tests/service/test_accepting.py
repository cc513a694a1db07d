"""Workers at one socket: connections go to the one that has fewest, and none is left waiting."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from dxml.service import _accepting
from dxml.service._accepting import Listening, Tally, sharing_loop
from dxml.service._connections import Connection

from .conftest import PATIENCE, wait_until


@pytest.fixture
def make_tally(tmp_path: Path) -> Iterator[Callable[[int], Tally]]:
    """For so many workers; closed at the end."""
    with ExitStack() as stack:
        yield lambda count: stack.enter_context(closing(Tally(tmp_path, count)))


def test_who_has_least(make_tally: Callable[[int], Tally]) -> None:
    first, second = make_tally(2), make_tally(2)
    first.begin()
    first.add(3)
    assert first.has_least()  # the other takes no part yet
    second.begin()
    assert second.has_least() and not first.has_least()
    second.add(3)
    assert second.has_least() and first.has_least()
    second.add(1)
    assert first.has_least() and not second.has_least()
    second.add(-2)
    assert second.has_least() and not first.has_least()
    second.end()
    assert first.has_least()
    second.add(-2)  # connections that end after the listening has
    assert first.has_least()


def test_a_new_worker_takes_the_place_of_one_that_ended(
    tmp_path: Path, make_tally: Callable[[int], Tally]
) -> None:
    first, second = make_tally(2), make_tally(2)
    for tally in (first, second):
        tally.begin()
    first.add(5)
    second._lock.close()  # killed: it could not say that it ends
    assert not first.has_least()
    third = make_tally(2)
    assert first.has_least()  # which loads its model and does not accept yet
    third.begin()
    assert not first.has_least()
    third.add(6)
    assert first.has_least() and not third.has_least()
    assert len(list(tmp_path.glob("connections-*.lock"))) == 2


def test_more_workers_than_were_told_have_places_too(make_tally: Callable[[int], Tally]) -> None:
    tallies = [make_tally(1) for _ in range(3)]
    for tally in tallies:
        tally.begin()
        tally.add(1)
    tallies[0].add(-1)
    assert tallies[0].has_least() and not tallies[2].has_least()


@contextmanager
def worker(number: int, listening: socket.socket, tally: Tally) -> Iterator[None]:
    """A server in a thread, which answers with its number."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        content = str(number).encode()
        headers = [(b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    config = uvicorn.Config(
        app, http=Connection, lifespan="off", log_level="error", timeout_keep_alive=int(PATIENCE)
    )
    server, loop = uvicorn.Server(config), sharing_loop(tally)
    thread = threading.Thread(
        target=loop.run_until_complete, args=(server.serve(sockets=[listening.dup()]),)
    )
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        loop.close()


@contextmanager
def workers(tallies: list[Tally]) -> Iterator[int]:
    """The port of several servers that share a socket."""
    with socket.socket() as listening, ExitStack() as stack:
        listening.bind(("127.0.0.1", 0))
        for number, tally in enumerate(tallies):
            stack.enter_context(worker(number, listening, tally))
        yield int(listening.getsockname()[1])


def answered_by(client: socket.socket) -> bytes:
    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    got = b""
    while b"\r\n\r\n" not in got or not got.partition(b"\r\n\r\n")[2]:
        more = client.recv(1000)
        assert more
        got += more
    return got.partition(b"\r\n\r\n")[2]


def connect(port: int, count: int, stack: ExitStack) -> list[socket.socket]:
    """Connections that are opened together, then all of them asked."""
    clients = [stack.enter_context(socket.socket()) for _ in range(count)]
    for client in clients:
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", port))
    for client in clients:
        client.settimeout(PATIENCE)
    return clients


@pytest.mark.parametrize("count", [2, 3])
def test_connections_that_come_together_are_shared(
    make_tally: Callable[[int], Tally], monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(_accepting, "PATIENCE", 1_000_000)  # nobody is too slow
    tallies = [make_tally(count) for _ in range(count)]
    with workers(tallies) as port, ExitStack() as stack:
        clients = connect(port, 8 * count, stack)
        found = [answered_by(client) for client in clients]
        assert sorted(Counter(found).values()) == [8] * count
        gone = [client for client, by in zip(clients, found, strict=True) if by == b"0"]
        for client in gone:
            client.close()
        wait_until(lambda: tallies[0]._read(0) == 1)
        more = connect(port, 8, stack)  # all go to the one that has none left
        assert {answered_by(client) for client in more} == {b"0"}


def test_one_that_does_not_accept_keeps_nobody_waiting(
    make_tally: Callable[[int], Tally],
) -> None:
    stuck = make_tally(2)
    stuck.begin()
    with workers([make_tally(2)]) as port, ExitStack() as stack:
        found = [answered_by(client) for client in connect(port, 20, stack)]
        assert found == [b"0"] * 20


class Refusing:
    """A socket that cannot accept, once; then one connection comes."""

    def __init__(self, own: socket.socket) -> None:
        self.own = own
        self.tried = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def accept(self) -> Any:
        self.tried += 1
        if self.tried == 1:
            raise OSError(24, "Too many open files")
        return self.own.accept()


def test_a_worker_without_handles_tries_again(
    make_tally: Callable[[int], Tally],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(_accepting, "EXHAUSTED", 0.01)

    class Quiet(asyncio.Protocol):
        made = 0

        def connection_made(self, transport: Any) -> None:
            Quiet.made += 1

        def when_lost(self, call: Any) -> None:
            pass

    async def run() -> None:
        with socket.socket() as own, socket.socket() as client:
            own.bind(("127.0.0.1", 0))
            refusing: Any = Refusing(own)
            factory: Any = Quiet
            server = Listening(asyncio.get_running_loop(), factory, refusing, make_tally(1))
            server.start(10)
            client.connect(own.getsockname())
            while not Quiet.made:
                await asyncio.sleep(0.01)
            server.close()
            server.close()  # nothing is left to close
            await server.wait_closed()
            assert refusing.tried >= 2 and server.sockets == []

    asyncio.run(asyncio.wait_for(run(), PATIENCE))
    assert "no connection can be accepted: Too many open files" in caplog.text
