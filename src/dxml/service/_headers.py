"""Headers of every answer that keep browsers from misusing it."""

from __future__ import annotations

from dxml.service._limits import App, Message, Receive, Send

__all__ = ["SafeHeaders"]

HEADERS = {
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cache-control": b"no-store",
}
"""What an answer does not say itself; the pages and the map say some of it."""


class SafeHeaders:
    """ASGI middleware: adds to each answer the headers that it lacks."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass the request on, and complete the head of its answer."""

        async def completed(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                missing = [item for item in HEADERS.items() if item[0] not in given]
                message["headers"] = [*message["headers"], *missing]
            await send(message)

        await self.app(scope, receive, completed)
