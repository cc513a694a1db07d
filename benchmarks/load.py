"""Load on a running service: how many predictions a second, how fast, how many errors.

    dxml serve --model m                                              # in another terminal
    python benchmarks/load.py --data eurlex-4k --clients 32 --seconds 20
    python benchmarks/load.py --texts texts.txt --url http://127.0.0.1:8000

Each client has one connection and sends its next request when the last is answered. What is sent
are the test points of a data set that dxml knows (texts or features, as the model takes), or the
lines of a file. The service is asked for a second first, unmeasured. Only the standard library is
used for the requests; both programs share the machine, unless --url says otherwise.
`make load` starts a service and asks it so: benchmarks/load_tier.py.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


def load_points(name: str | None, texts: Path | None, takes: str) -> list[Any]:
    """What is sent, 2,000 at most."""
    if texts is not None:
        return texts.read_text("utf-8").splitlines()[:2000]
    if name is None:
        raise SystemExit("give --data NAME or --texts FILE")
    from dxml.data import load_dataset, load_texts

    if takes == "text":
        return list(load_texts(name, "test").texts[:2000])
    return feature_points(load_dataset(name, "test").X[:2000])


def feature_points(X: Any) -> list[dict[int, float]]:
    """Sparse rows as the service takes them."""
    return [
        {int(column): float(value) for column, value in zip(row.indices, row.data, strict=True)}
        for row in X
    ]


def make_requests(points: list[Any], takes: str, host: str, top: int) -> list[bytes]:
    """Each point as a whole HTTP request."""
    requests = []
    for point in points:
        content = json.dumps({takes: point, "top": top}).encode()
        head = (
            f"POST /predict HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        requests.append(head.encode() + content)
    return requests


async def answer_of(reader: asyncio.StreamReader) -> str:
    """The status of an answer, whose body is read and dropped."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.split("content-length:")[1].split("\r\n")[0])
    await reader.readexactly(length)
    return head.split(" ", 2)[1]


async def client(
    host: str, port: int, requests: Iterator[bytes], until: float, found: list[tuple[str, float]]
) -> None:
    """Send and wait, again and again; what went wrong counts as an error and a new connection."""
    writer = None
    while time.perf_counter() < until:
        start = time.perf_counter()
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection(host, port)
            writer.write(next(requests))
            status = await answer_of(reader)
        except (OSError, asyncio.IncompleteReadError, ValueError, IndexError) as error:
            status, writer = type(error).__name__, None
            await asyncio.sleep(0.05)
        found.append((status, time.perf_counter() - start))
    if writer is not None:
        writer.close()


async def load(
    host: str, port: int, requests: list[bytes], clients: int, seconds: float
) -> list[tuple[str, float]]:
    """(status, seconds) of every request."""
    found: list[tuple[str, float]] = []
    endless = itertools.cycle(requests)
    until = time.perf_counter() + seconds
    await asyncio.gather(*(client(host, port, endless, until, found) for _ in range(clients)))
    return found


@dataclass(frozen=True)
class Measured:
    """What a service did under load; p50 and p99 in milliseconds."""

    requests: int
    seconds: float
    per_second: float
    p50: float
    p99: float
    errors: Counter[str]

    def __str__(self) -> str:
        return (
            f"{self.requests:,} requests in {self.seconds:.1f} s\n"
            f"requests a second  {self.per_second:8.1f}\n"
            f"p50 in ms          {self.p50:8.1f}\n"
            f"p99 in ms          {self.p99:8.1f}\n"
            f"errors             {self.errors.total():8d}  {dict(self.errors) or ''}"
        )


def measure(url: str, points: list[Any], takes: str, top: int, clients: int, s: float) -> Measured:
    """Ask for a second, then for `s` seconds and measure."""
    where = urlsplit(url)
    host, port = where.hostname or "127.0.0.1", where.port or 80
    requests = make_requests(points, takes, where.netloc, top)
    asyncio.run(load(host, port, requests, clients, 1))
    start = time.perf_counter()
    found = asyncio.run(load(host, port, requests, clients, s))
    taken = time.perf_counter() - start
    times = sorted(seconds for _, seconds in found)
    errors = Counter(status for status, _ in found if status != "200")
    p50, p99 = (1000 * times[int(share * len(times))] for share in (0.5, 0.99))
    answered = len(found) - errors.total()
    return Measured(len(found), taken, answered / taken, p50, p99, errors)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--top", type=int, default=5)
    parser.add_argument("--data", help="a data set that dxml knows; its test points are sent")
    parser.add_argument("--texts", type=Path, help="a file with a text on each line")
    asked = parser.parse_args()
    with urllib.request.urlopen(f"{asked.url}/health") as answer:
        health = json.load(answer)
    takes = health["takes"]
    print(f"{health['points']:,} points, {health['labels']:,} labels, takes {takes}")
    points = load_points(asked.data, asked.texts, takes)
    print(f"{asked.clients} clients", flush=True)
    print(measure(asked.url, points, takes, asked.top, asked.clients, asked.seconds))


if __name__ == "__main__":
    main()
