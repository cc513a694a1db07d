"""Bodies that come too slowly, or not at all."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from dxml.service.limits import BodyLimit, Limits


async def ask(messages: list[dict[str, Any]], pause: float) -> tuple[list[Any], list[bytes]]:
    """What is answered, and the bodies that got through."""
    sent: list[Any] = []
    seen: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((await receive())["body"])

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(pause)
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "headers": []}
    await BodyLimit(app, Limits(seconds=0.1, body_bytes=8))(scope, receive, send)
    return sent, seen


def part(content: bytes, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": content, "more_body": more}


def test_a_body_in_parts_arrives_whole() -> None:
    sent, seen = asyncio.run(ask([part(b"abc", True), part(b"def", False)], 0))
    assert (sent, seen) == ([], [b"abcdef"])


def test_a_slow_body_is_given_up() -> None:
    [start, rest], seen = asyncio.run(ask([part(b"a", True)] * 9, 0.06))
    assert (start["status"], seen) == (408, [])
    assert json.loads(rest["body"]) == {
        "error": {"type": "slow_request", "message": "the body did not come within 0.1 s."}
    }


def test_a_client_that_has_gone_gets_nothing() -> None:
    assert asyncio.run(ask([part(b"a", True), {"type": "http.disconnect"}], 0)) == ([], [])
