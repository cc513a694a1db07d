"""benchmarks/light_client.py: every answer is read to its end, and errors are counted."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from .scripts import load_script

REQUESTS = [b"first", b"other"]  # of one length, so that the server knows where each ends


def answer(request: bytes) -> tuple[bytes, bytes]:
    """In two parts that are sent one after the other: "other" is refused."""
    status = b"200 OK" if request == b"first" else b"503 Busy"
    content = request * 1000
    return b"HTTP/1.1 %s\r\nContent-Le" % status, b"ngth: %d\r\n\r\n%s" % (len(content), content)


@contextmanager
def server(seen: list[bytes], *, hangs_up: bool = False) -> Iterator[int]:
    def serve(connected: socket.socket) -> None:
        with connected, suppress(ConnectionError):  # the client goes without reading all
            while request := connected.recv(5, socket.MSG_WAITALL):
                seen.append(request)
                if hangs_up:
                    return
                for part in answer(request):
                    connected.sendall(part)

    def accept() -> None:
        for _ in range(2):
            threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(60)
        threading.Thread(target=accept, daemon=True).start()
        yield int(listening.getsockname()[1])


def test_all_answers_are_counted() -> None:
    seen: list[bytes] = []
    with server(seen) as port:
        found = load_script("light_client").ask(port, REQUESTS, 2, 0.5)
    assert len(seen) - 2 <= found.requests <= len(seen)
    assert set(found.errors) == {"503"} and abs(found.errors["503"] - found.requests / 2) <= 2
    assert 0 < found.p50 <= found.p99 and found.seconds >= 0.5
    assert 0 < found.client_s <= found.seconds * 1.5


def test_a_slow_service_is_waited_for() -> None:
    with server([]) as port:
        found = load_script("light_client").ask(port, REQUESTS, 2, 0.0)
    assert found.requests >= 2


def test_a_service_that_hangs_up_ends_it() -> None:
    with (
        server([], hangs_up=True) as port,
        pytest.raises(SystemExit, match="closed a connection"),
    ):
        load_script("light_client").ask(port, REQUESTS, 2, 5)
