"""Counts and latencies in the text format of Prometheus.

Each process counts for itself; the label ``worker`` tells them apart where there are several.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from dxml.service.errors import STATUS
from dxml.service.limits import App, Message, Receive, Send

__all__ = ["Counting", "Metrics"]

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the latency's buckets, in seconds."""
METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
"""Counted by their names; clients can make up any number of others."""
_TYPES = {status: type for type, status in STATUS.items()}


class Metrics:
    """What was counted so far."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.errors: Counter[str] = Counter()
        self.buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self.seconds: dict[str, float] = defaultdict(float)

    def observe(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one request."""
        method = method if method in METHODS else "other"
        self.requests[method, path, status] += 1
        if status >= 400:
            self.errors[_TYPES.get(status, str(status))] += 1
        self.buckets[path][bisect_left(BOUNDS, seconds)] += 1
        self.seconds[path] += seconds

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """All of it.

        Parameters
        ----------
        gauges : name → (help, value)
            Values that others know; a name that ends in ``_total`` is a counter.
        """
        lines = _head("dxml_requests_total", "counter", "Requests answered.")
        for (method, path, status), n in sorted(self.requests.items()):
            labels = {"method": method, "path": path, "status": str(status)}
            lines.append(_sample("dxml_requests_total", labels, n))
        lines += _head("dxml_errors_total", "counter", "Requests answered with an error.")
        lines += [
            _sample("dxml_errors_total", {"type": t}, n) for t, n in sorted(self.errors.items())
        ]
        lines += _head("dxml_request_seconds", "histogram", "Time to answer a request.")
        for path in sorted(self.buckets):
            lines += self._histogram(path)
        for name, (help, value) in gauges.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [*_head(name, kind, help), _sample(name, {}, value)]
        return "\n".join(lines) + "\n"

    def _histogram(self, path: str) -> Iterable[str]:
        total = 0
        for bound, n in zip([*map(str, BOUNDS), "+Inf"], self.buckets[path], strict=True):
            total += n
            yield _sample("dxml_request_seconds_bucket", {"path": path, "le": bound}, total)
        yield _sample("dxml_request_seconds_sum", {"path": path}, self.seconds[path])
        yield _sample("dxml_request_seconds_count", {"path": path}, total)


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
            path = getattr(scope.get("route"), "path", "other")
            self.metrics.observe(scope["method"], path, status, time.perf_counter() - start)


def _head(name: str, kind: str, help: str) -> list[str]:
    return [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    """One line.

    >>> _sample("n", {"path": 'a"b', "worker": "1"}, 2)
    'n{path="a\\\\"b",worker="1"} 2'
    """
    labels = {**labels, "worker": labels.get("worker", str(os.getpid()))}
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
