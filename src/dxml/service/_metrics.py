"""Counts and latencies for Prometheus, added up over all workers.

One process counts in memory. Several count in files of a folder that they share, as
`prometheus_client` does in its multiprocess mode. Each worker has a slot of that folder, held by a
lock that ends with the process. A worker that is started after another has ended takes its slot and
counts on from there: no count is lost, and there are never more files than workers at one time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    values,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from dxml.service._errors import STATUS
from dxml.service._limits import App, Message, Receive, Send
from dxml.service._logs import route_of
from dxml.service._slots import free_slot

__all__ = ["Counting", "Metrics", "folder_of_counts", "share_counts"]

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the latency's buckets, in seconds."""
METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
"""Counted by their names; clients can make up any number of others."""
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable in which `prometheus_client` looks for the folder that processes share."""
PREFIX = "dxml-metrics-"
"""How folders begin that processes count in."""
SERVICE = "service.lock"
"""The file in them that is locked as long as the service runs."""
_TYPES = {status: type for type, status in STATUS.items()}

Gauges = Callable[[], Mapping[str, tuple[str, float]]]


@contextmanager
def folder_of_counts() -> Iterator[Path]:
    """A folder for `share_counts`, removed at the end.

    Those of services that were killed are removed as well: the lock in them ended with the service.
    """
    for other in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), open(other / SERVICE, "r+b") as left:
            fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(other, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        lock = os.open(Path(name) / SERVICE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield Path(name)
        finally:
            os.close(lock)


def share_counts(folder: str | Path) -> IO[bytes]:
    """Let this process count in a folder, together with others; call it before any `Metrics`.

    The returned lock holds this process's slot until it is closed or the process ends.
    """
    os.environ[FOLDER] = str(folder)
    slot, lock = free_slot(folder)
    values.ValueClass = values.MultiProcessValue(lambda: slot)
    return lock


class Metrics:
    """What was counted so far.

    Parameters
    ----------
    gauges : callable returning name → (help, value)
        Values of this moment, asked for at each scrape. They are the same in every worker.
    """

    def __init__(self, gauges: Gauges = dict) -> None:
        disable_created_metrics()  # several processes have none, so one has none either
        own = CollectorRegistry()
        self._requests = Counter(
            "dxml_requests", "Requests answered.", ["method", "path", "status"], registry=own
        )
        self._errors = Counter(
            "dxml_errors", "Requests answered with an error.", ["type"], registry=own
        )
        self._seconds = Histogram(
            "dxml_request_seconds",
            "Time to answer a request.",
            ["path"],
            buckets=BOUNDS,
            registry=own,
        )
        self._batches = Counter("dxml_batches", "Batches ranked.", registry=own)
        self._ranked = Counter("dxml_ranked", "Texts or points ranked in them.", registry=own)
        self._registry = own
        if shared := os.environ.get(FOLDER):
            self._registry = CollectorRegistry()
            MultiProcessCollector(self._registry, shared)
        self._registry.register(_Gauges(gauges))

    def observe(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one request."""
        method = method if method in METHODS else "other"
        self._requests.labels(method, path, str(status)).inc()
        if status >= 400:
            self._errors.labels(_TYPES.get(status, str(status))).inc()
        self._seconds.labels(path).observe(seconds)

    def observe_batch(self, size: int) -> None:
        """Count one batch of texts or points."""
        self._batches.inc()
        self._ranked.inc(size)

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """All counts of all workers and the gauges, with the content type of the format.

        Parameters
        ----------
        accept : str
            The request's ``Accept`` header, which chooses the format's version.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


class _Gauges(Collector):
    """Values that others know, read at each scrape."""

    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        for name, (help, value) in self._gauges().items():
            yield GaugeMetricFamily(name, help, value)

    def describe(self) -> Iterator[Metric]:
        """No names in advance: the model is not there yet when the registry asks for them."""
        return iter(())


class Counting:
    """ASGI middleware: counts every request under the route that answered it."""

    def __init__(self, app: App, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass the request on and take the time."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, start = 500, time.perf_counter()

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            spent = time.perf_counter() - start
            self.metrics.observe(scope["method"], route_of(scope), status, spent)
