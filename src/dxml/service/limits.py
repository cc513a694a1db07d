"""How much one request may ask for, and the middleware that counts its bytes.

A body is read whole before anything is done with it: one that is too large is refused without being
kept, one that dawdles is given up.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from dxml.service.errors import STATUS, ServiceError, body

__all__ = ["BodyLimit", "Limits"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class Limits:
    """Bounds of a request.

    Attributes
    ----------
    body_bytes : int
    batch : int
        Texts or points in a request.
    text_chars : int
        Characters of a text.
    name_chars : int
        Characters of a label's name, and of an id.
    top : int
        Labels a text.
    explained : int
        Texts in a request that is to be explained.
    waiting : int
        Texts that wait for their turn in all requests together; more are told to come again.
    seconds : float
        For reading the body, and again for the answer.
    """

    body_bytes: int = 10 << 20
    batch: int = 1000
    text_chars: int = 100_000
    name_chars: int = 1000
    top: int = 1000
    explained: int = 16
    waiting: int = 10_000
    seconds: float = 30.0

    def check_batch(self, n: int) -> None:
        """Refuse more texts than a request may have."""
        if n > self.batch:
            raise ServiceError("too_large", f"at most {self.batch:,} in a request, got {n:,}.")

    def check_texts(self, texts: list[str]) -> None:
        """Refuse texts that are too many or too long."""
        self.check_batch(len(texts))
        for i, text in enumerate(texts):
            if len(text) > self.text_chars:
                raise ServiceError(
                    "too_large",
                    f"a text may have {self.text_chars:,} characters, text {i} has {len(text):,}.",
                )

    def check_names(self, what: str, names: list[str]) -> None:
        """Refuse names and ids that are empty or too long."""
        for name in names:
            if not name:
                raise ServiceError("invalid", f"{what} must have a character at least.")
            if len(name) > self.name_chars:
                raise ServiceError(
                    "too_large", f"{what} may have {self.name_chars:,} characters: {name[:40]}…"
                )


class BodyLimit:
    """ASGI middleware: the body in one piece, or an error."""

    def __init__(self, app: App, limits: Limits) -> None:
        self.app = app
        self.limits = limits

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Read the body, then let the routes have it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            whole = await asyncio.wait_for(self._read(scope, receive), self.limits.seconds)
        except TimeoutError:
            message = f"the body did not come within {self.limits.seconds:g} s."
            await _refuse(send, "slow_request", message)
            return
        except ServiceError as error:
            await _refuse(send, error.type, error.message)
            return
        if whole is not None:
            await self.app(scope, _once(whole, receive), send)

    async def _read(self, scope: Message, receive: Receive) -> bytes | None:
        """The body; None where the client has gone."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > self.limits.body_bytes:
            raise self._too_large()
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.limits.body_bytes:
                raise self._too_large()
            if not message.get("more_body", False):
                return b"".join(parts)

    def _too_large(self) -> ServiceError:
        return ServiceError("too_large", f"a body may have {self.limits.body_bytes:,} bytes.")


def _once(whole: bytes, receive: Receive) -> Receive:
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": whole, "more_body": False}

    return again


async def _refuse(send: Send, type: str, message: str) -> None:
    content = json.dumps(body(type, message)).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        (b"connection", b"close"),  # what is left of the body is not read
    ]
    await send({"type": "http.response.start", "status": STATUS[type], "headers": headers})
    await send({"type": "http.response.body", "body": content})
