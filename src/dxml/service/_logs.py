"""The service's log: a line a request at level info, with an id that the answer has too.

Lines hold what a route is called, how it was answered and by whose token it was asked. They hold no
text, no label, no id of a text, no query and no token. Of an error that nobody foresaw the log has
the type and the places in the code; its message, which may quote what was sent, at level debug.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
import time
import traceback
from contextvars import ContextVar
from typing import Any, TextIO

from dxml.service._errors import STATUS
from dxml.service._limits import App, Message, Receive, Send, refuse

__all__ = ["LEVELS", "RequestLog", "configure_logs", "route_of"]

LEVELS = ("debug", "info", "warning", "error")
CALLER = "caller"
"""Where a request's scope has whose token it came with."""
HEADER = b"x-request-id"

_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_id: ContextVar[str] = ContextVar("_id", default="-")
_log = logging.getLogger(__name__)


def configure_logs(level: str = "warning", as_json: bool = False, to: TextIO | None = None) -> None:
    """Write the log of dxml and of the server below it to standard error, or `to` a file."""
    handler = logging.StreamHandler(to or sys.stderr)
    handler.setFormatter(JSONLines() if as_json else Lines())
    for name in ("dxml", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper())


class Lines(logging.Formatter):
    """For people: time, level, id of the request, message."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = f"{_when(record)} {record.levelname.lower():<7} [{_id.get()}] {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JSONLines(logging.Formatter):
    """For programs: an object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": _when(record),
            "level": record.levelname.lower(),
            "request_id": _id.get(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class RequestLog:
    """ASGI middleware: gives each request an id, logs it, and answers for errors nobody foresaw.

    The id is that of the header ``X-Request-ID``, where it is one, and goes back in that header.
    """

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass the request on, and log how it was answered."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        id = _given(scope) or secrets.token_hex(8).encode()
        token = _id.set(id.decode())
        status, start = 0, time.perf_counter()

        async def marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (HEADER, id)]
            await send(message)

        try:
            await self.app(scope, receive, marked)
        except Exception as error:
            _log_unforeseen(error)
            if status:
                raise
            problem = "something went wrong in the service; its log says what."
            await refuse(marked, "internal", problem)
        finally:
            _log_request(scope, status, time.perf_counter() - start)
            _id.reset(token)


def route_of(scope: Message) -> str:
    """What the route of a request is called, without what clients put into its path."""
    return getattr(scope.get("route"), "path", "other")


def _given(scope: Message) -> bytes | None:
    for name, value in scope["headers"]:
        if name == HEADER:
            return value if _ID.fullmatch(value) else None
    return None


def _log_request(scope: Message, status: int, seconds: float) -> None:
    level = logging.ERROR if status >= STATUS["internal"] else logging.INFO
    if status in (STATUS["busy"], STATUS["timeout"]):
        level = logging.WARNING
    if not _log.isEnabledFor(level):
        return
    fields = {
        "method": scope["method"][:10] if scope["method"].isalpha() else "other",
        "route": route_of(scope),
        "status": status,  # 0: the client had gone
        "ms": round(1000 * seconds, 1),
        "caller": scope[CALLER].name if CALLER in scope else "-",
        "peer": (scope.get("client") or ["-"])[0],
    }
    line = "{method} {route} {status} {ms} ms, by {caller} from {peer}".format(**fields)
    _log.log(level, "%s", line, extra={"fields": fields})


def _log_unforeseen(error: Exception) -> None:
    places = "".join(traceback.format_tb(error.__traceback__))
    _log.error("an unforeseen %s:\n%s", type(error).__name__, places)
    _log.debug("its message: %s", error)


def _when(record: logging.LogRecord) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{whole}.{int(record.msecs):03d}Z"
