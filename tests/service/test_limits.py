"""Bodies that come too slowly, or not at all, or hold too much."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from dxml.service._errors import ServiceError
from dxml.service._limits import BodyLimit, Limits


async def ask(
    messages: list[dict[str, Any]], pause: float, headers: Sequence[tuple[bytes, bytes]] = ()
) -> tuple[list[Any], list[bytes]]:
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

    scope = {"type": "http", "method": "POST", "headers": list(headers)}
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


def test_a_body_that_is_told_to_end_at_two_places_is_refused() -> None:
    """A proxy that goes by the other one takes the rest for a request of somebody else."""
    both = [(b"content-length", b"4"), (b"transfer-encoding", b"chunked")]
    [start, rest], seen = asyncio.run(ask([part(b"abcd", False)], 0, both))
    assert (start["status"], seen) == (400, [])
    assert (b"connection", b"close") in start["headers"]
    message = "a body has 'Content-Length' or 'Transfer-Encoding', not both."
    assert json.loads(rest["body"])["error"] == {"type": "bad_request", "message": message}


def test_bodies_together_are_bounded() -> None:
    """Who comes while there are many is told to come again; what was answered counts no more."""
    statuses: list[int] = []

    async def ask_all() -> list[int]:
        answered = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await answered.wait()

        limit = BodyLimit(app, Limits(body_bytes=8, held_bytes=15))

        async def one(more: bool = False) -> None:
            async def receive() -> dict[str, Any]:
                return part(b"123456", more)

            async def send(message: Any) -> None:
                statuses.extend([message["status"]] if "status" in message else [])

            await limit({"type": "http", "headers": []}, receive, send)

        waiting = [asyncio.create_task(one()) for _ in range(2)]
        await asyncio.sleep(0.01)
        await one()
        held = [limit.held]
        answered.set()
        await asyncio.gather(*waiting)
        await one()
        await one(more=True)
        return [*held, limit.held]

    assert asyncio.run(ask_all()) == [12, 0]
    assert statuses == [503, 413]


def test_a_client_that_has_gone_gets_nothing() -> None:
    assert asyncio.run(ask([part(b"a", True), {"type": "http.disconnect"}], 0)) == ([], [])


def test_too_many_values_are_refused() -> None:
    limits = Limits(values=4)
    limits.check_values(b'{"text": ["a, b, c, d, e, f", "b"]}')
    message = r"a body may have 4 values, got 5\. Send fewer points at once\."
    with pytest.raises(ServiceError, match=message):
        limits.check_values(b'{"text": ["a", "b", "c"]}')
