"""How much one request may ask for, and the middleware that counts its bytes and values.

A body is read completely before it is used. Reading stops when it is too large or takes too long.
Its values are counted before it is parsed: a value of a few bytes can become an object a hundred
times as large, or an error message.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from dxml._core.json_values import count_values
from dxml.service._errors import STATUS, ServiceError, body
from dxml.tagging._journal import Share

__all__ = ["LARGE", "BodyLimit", "Limits", "refuse"]

LARGE = 1 << 16  # bytes; larger bodies are checked and parsed in another thread

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
    held_bytes : int
        Bytes of all bodies together that have come and are not answered; more are told to come
        again.
    values : int
        Values in a body's JSON: items of lists and fields of objects, at any depth.
    batch : int
        Texts or points in a request.
    text_chars : int
        Characters of a text.
    name_chars : int
        Characters of a label's name, and of an id.
    labels : int
        Labels of a text that is taught.
    new_labels : int
        Labels in a request that the model does not know.
    taught_labels : int
        Labels that were taught since the model in the folder was saved. The model keeps numbers
        for each point and label, so each takes far more room than its name.
    taught_points : int
        Texts that were taught since then, those that took another's place aside.
    journal_bytes : int
        Size of the journal, from which on nothing more is taught.
    share_labels, share_points, share_bytes : int
        New labels, texts and bytes that one token of role "teach" may teach, until the lessons are
        taken into the model.
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
    held_bytes: int = 500 << 20
    values: int = 250_000
    batch: int = 1000
    text_chars: int = 100_000
    name_chars: int = 1000
    labels: int = 1000
    new_labels: int = 1000
    taught_labels: int = 10_000
    taught_points: int = 1_000_000
    journal_bytes: int = 1 << 30
    share_labels: int = 2_000
    share_points: int = 100_000
    share_bytes: int = 100 << 20
    top: int = 1000
    explained: int = 16
    waiting: int = 10_000
    seconds: float = 30.0

    def check_values(self, body: bytes) -> None:
        """Refuse JSON with more values than a request may have, before it is parsed."""
        if (n := count_values(body, self.values)) > self.values:
            raise ServiceError(
                "too_large",
                f"a body may have {self.values:,} values, got {n:,}. Send fewer points at once.",
            )

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
                    f"a text may have {self.text_chars:,} characters, text {i + 1} has "
                    f"{len(text):,}.",
                )

    def check_labels(self, rows: list[list[str]]) -> None:
        """Refuse texts with too many labels, and names that are empty or too long."""
        for i, row in enumerate(rows):
            if len(row) > self.labels:
                message = f"a text may have {self.labels:,} labels, text {i + 1} has {len(row):,}."
                raise ServiceError("too_large", message)
            self.check_names("a label", row)

    def check_room(self, new: int, taught: int, points: int, journal_bytes: int) -> None:
        """Refuse a lesson with too many new labels, or after too many others.

        Parameters
        ----------
        new : int
            Labels of the lesson that the model does not know.
        taught : int
            Labels that were taught before it.
        points : int
            Texts that were taught, those of the lesson included.
        journal_bytes : int
            Size of the journal.
        """
        if points > self.taught_points:
            raise ServiceError(
                "conflict",
                f"{self.taught_points:,} texts may be taught. Take them up into the model with "
                "'dxml learn --journal', then teach more.",
            )
        if new > self.new_labels:
            message = f"a request may have {self.new_labels:,} new labels, got {new:,}."
            raise ServiceError("too_large", message)
        if new and taught + new > self.taught_labels:
            raise ServiceError(
                "conflict",
                f"{taught:,} new labels were taught, and {self.taught_labels:,} may be. Take them "
                "up into the model with 'dxml learn --journal', then teach more.",
            )
        if journal_bytes > self.journal_bytes:
            raise ServiceError(
                "conflict",
                f"the journal may have {self.journal_bytes:,} bytes, and has {journal_bytes:,}. "
                "Train a model on what was taught, and start with an empty journal.",
            )

    def check_share(self, share: Share) -> None:
        """Refuse more than one token may teach; `share` has what is to be taught too."""
        for what, n, most in (
            ("texts", share.points, self.share_points),
            ("new labels", share.labels, self.share_labels),
            ("bytes", share.bytes, self.share_bytes),
        ):
            if n > most:
                raise ServiceError(
                    "conflict",
                    f"the token {share.name!r} may teach {most:,} {what} until the lessons are "
                    "taken up into the model with 'dxml learn --journal'.",
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
        self.held = 0  # bytes of bodies of all requests that are under way

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Read the body, then pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        parts: list[bytes] = []
        try:
            await self._pass(scope, receive, send, parts)
        finally:
            self.held -= sum(map(len, parts))

    async def _pass(self, scope: Message, receive: Receive, send: Send, parts: list[bytes]) -> None:
        try:
            if not await asyncio.wait_for(self._read(scope, receive, parts), self.limits.seconds):
                return
            parts[:] = [b"".join(parts)]
            if len(parts[0]) > LARGE:
                await asyncio.to_thread(self.limits.check_values, parts[0])
            else:
                self.limits.check_values(parts[0])
        except TimeoutError:
            message = f"the body did not come within {self.limits.seconds:g} s."
            await refuse(send, "slow_request", message)
            return
        except ServiceError as error:
            await refuse(send, error.type, error.message)
            return
        await self.app(scope, _once(parts[0], receive), send)

    async def _read(self, scope: Message, receive: Receive, parts: list[bytes]) -> bool:
        """Read the body into `parts`; False where the client has disconnected."""
        headers = dict(scope["headers"])
        if b"content-length" in headers and b"transfer-encoding" in headers:
            # whoever passed it on may have read another end of it than the server
            twice = "a body has 'Content-Length' or 'Transfer-Encoding', not both."
            raise ServiceError("bad_request", twice)
        declared = headers.get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > self.limits.body_bytes:
            raise self._too_large()
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return False
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            self.held += len(parts[-1])
            if size > self.limits.body_bytes:
                raise self._too_large()
            if self.held > self.limits.held_bytes:
                raise ServiceError("busy", "too much is being sent at once; try again later.")
            if not message.get("more_body", False):
                return True

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


async def refuse(send: Send, type: str, message: str) -> None:
    """Answer with an error before the body is read, and hang up."""
    content = json.dumps(body(type, message)).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        (b"connection", b"close"),  # the rest of the body is not read
    ]
    await send({"type": "http.response.start", "status": STATUS[type], "headers": headers})
    await send({"type": "http.response.body", "body": content})
