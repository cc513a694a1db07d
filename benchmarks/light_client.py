"""A client that costs little: prepared bytes over several connections, from one process.

A service with two workers on a machine of two cores shows its worth only if who asks leaves the
cores to it. `load.py` takes a tenth of a millisecond and more for a request, this a few hundredths;
`Asked.client_s` says how much it was.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle

END = b"\r\n\r\n"
PATIENCE = 120  # seconds more than asked for, after which a service is given up


@dataclass(frozen=True)
class Asked:
    """What a service did; p50 and p99 in milliseconds, `client_s` in the client's CPU seconds."""

    requests: int
    seconds: float
    p50: float
    p99: float
    client_s: float
    errors: Counter[str]


@dataclass
class Client:
    """One connection: what it asked when, and what came of the answer so far."""

    sock: socket.socket
    since: float = 0.0
    got: bytearray = field(default_factory=bytearray)
    length: int = -1  # of the whole answer, as far as is known

    def send(self, request: bytes) -> None:
        """Ask; the last answer is forgotten."""
        self.got.clear()
        self.length = -1
        self.since = time.perf_counter()
        self.sock.setblocking(True)
        self.sock.sendall(request)
        self.sock.setblocking(False)

    def receive(self) -> bool:
        """Read what has come; whether the answer is complete."""
        more = self.sock.recv(1 << 18)
        if not more:
            raise SystemExit("the service has closed a connection")
        self.got += more
        if self.length < 0 and (head := self.got.find(END)) >= 0:
            start = self.got.lower().index(b"content-length:") + len(b"content-length:")
            self.length = head + len(END) + int(self.got[start : self.got.index(b"\r\n", start)])
        return 0 <= self.length <= len(self.got)

    def status(self) -> str:
        """That of the answer."""
        return self.got[9:12].decode()


def ask(port: int, requests: list[bytes], connections: int, seconds: float) -> Asked:
    """Ask for some seconds over connections that are opened together and kept.

    Each connection sends its next request when the last is answered. There are as many answers as
    connections at least, also if that takes longer; what is not answered then does not count.
    """
    endless = cycle(requests)
    times: list[float] = []
    errors: Counter[str] = Counter()
    place = ("127.0.0.1", port)
    with selectors.DefaultSelector() as selector, ExitStack() as stack:
        socks = [stack.enter_context(socket.create_connection(place)) for _ in range(connections)]
        clients = [Client(sock) for sock in socks]
        used, start = time.process_time(), time.perf_counter()
        for client in clients:
            client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.send(next(endless))
            selector.register(client.sock, selectors.EVENT_READ, client)
        while (now := time.perf_counter()) < start + seconds or len(times) < connections:
            if now > start + seconds + PATIENCE:
                raise SystemExit(f"{connections} requests took over {PATIENCE + seconds:g} s")
            for key, _ in selector.select(1.0):
                client = key.data
                if client.receive():
                    times.append(time.perf_counter() - client.since)
                    if client.status() != "200":
                        errors[client.status()] += 1
                    client.send(next(endless))
        spent, client_s = now - start, time.process_time() - used
    times.sort()
    p50, p99 = (1000 * times[int(share * len(times))] for share in (0.5, 0.99))
    return Asked(len(times), spent, p50, p99, client_s, errors)
