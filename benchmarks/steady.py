"""10,000 requests a minute for minutes on end: no error, no growth, and how long an answer takes.

    python benchmarks/steady.py                # ten minutes with one worker, ten with four
    python benchmarks/steady.py --minutes 5 --workers 4 --store
    python benchmarks/steady.py --short        # some seconds with two workers: statuses only

Requests are sent by the clock, whether or not earlier ones are answered, over 32 connections that
stay open. The time of an answer counts from the moment it was due. A status other than 200, a
broken connection, and memory or handles that grow are failures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from load import answer_of, make_requests
from soak import GROWTH, STORED, store
from soaked_service import LABELS, SoakedService, levels, small_tagger, text_of

PER_MINUTE = 10_000
CONNECTIONS = 32


@dataclass
class Answers:
    """Statuses, and seconds from due to answered."""

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)


async def connection(port: int, due: asyncio.Queue[tuple[float, bytes]], found: Answers) -> None:
    """Send what is due, one after the other."""
    writer = None
    while True:
        at, request = await due.get()
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            status = await answer_of(reader)
        except (OSError, asyncio.IncompleteReadError, ValueError, IndexError) as error:
            status, writer = type(error).__name__, None
        found.statuses[status] += 1
        found.seconds.append(time.perf_counter() - at)
        due.task_done()


async def send(service: SoakedService, requests: list[bytes], minutes: float) -> Answers:
    """Put requests into the queue by the clock, and weigh the service meanwhile."""
    found, due = Answers(), asyncio.Queue[tuple[float, bytes]]()
    tasks = [asyncio.create_task(connection(service.port, due, found)) for _ in range(CONNECTIONS)]
    start, sent, weighed = time.perf_counter(), 0, 0.0
    while (spent := time.perf_counter() - start) < 60 * minutes:
        while sent < spent * PER_MINUTE / 60:
            due.put_nowait((start + sent * 60 / PER_MINUTE, requests[sent % len(requests)]))
            sent += 1
        if spent > weighed:
            service.weigh()
            weighed = spent + 5
        await asyncio.sleep(0.005)
    await asyncio.wait_for(due.join(), 120)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found


def steady(workers: int, minutes: float) -> dict[str, object]:
    """Run it; returns what happened."""
    rng = random.Random(0)
    texts = [text_of(rng.randrange(LABELS), rng) for _ in range(2000)]
    with tempfile.TemporaryDirectory(prefix="dxml-steady-") as scratch:
        model = small_tagger().save(Path(scratch) / "m")
        service = SoakedService(model, workers, Path(scratch))
        service.start()
        requests = make_requests(texts, "text", f"127.0.0.1:{service.port}", 5)
        found = asyncio.run(send(service, requests, minutes))
        service.stop()
    times = sorted(found.seconds)
    p50, p99 = (round(1000 * times[int(share * len(times))], 1) for share in (0.5, 0.99))
    return {
        "what": "steady",
        "minutes": minutes,
        "workers": workers,
        "requests": len(times),
        "statuses": dict(found.statuses),
        "p50_ms": p50,
        "p99_ms": p99,
        "megabytes": levels(service.samples, "megabytes", workers),
        "handles": levels(service.samples, "handles", workers),
    }


def main() -> None:
    """Run, print, and store where asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--store", action="store_true", help=f"write {STORED}")
    parser.add_argument("--short", action="store_true", help="some seconds; growth is not judged")
    asked = parser.parse_args()
    if asked.short:
        asked.minutes, asked.workers = 0.2, [2]
    bad = []
    for workers in asked.workers:
        found = steady(workers, asked.minutes)
        print(json.dumps(found, indent=1), flush=True)
        if asked.store:
            store(found)
        if set(found["statuses"]) != {"200"}:  # type: ignore[call-overload]
            bad.append(f"{workers} workers: {found['statuses']}")
        for what in ("megabytes", "handles"):
            level = found[what]
            assert isinstance(level, dict)
            if level.get("ratio", 0) > GROWTH and not asked.short:
                bad.append(f"{workers} workers: {what} grew: {level}")
    if bad:
        raise SystemExit("; ".join(bad))


if __name__ == "__main__":
    main()
