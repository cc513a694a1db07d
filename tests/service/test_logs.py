"""The log: one line a request, ids that come back, and nothing that was sent."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dxml.service._engine import Engine
from dxml.service._logs import configure_logs
from dxml.service._tokens import new_token

from .conftest import TestClient, client_of


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Where the log goes; the loggers are as before at the end."""
    loggers = [logging.getLogger(name) for name in ("dxml", "uvicorn")]
    before = [(each.handlers, each.propagate, each.level) for each in loggers]
    yield io.StringIO()
    for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def lines(written: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


SECRET = "zanzibar"


def test_a_line_a_request_without_what_was_sent(
    model: Path, tmp_path: Path, written: io.StringIO
) -> None:
    token, _ = new_token(tmp_path / "t", "teach", "desk")
    bearer = {"authorization": f"Bearer {token}"}
    lesson = {"texts": [SECRET], "labels": [[SECRET]], "ids": [SECRET]}
    with client_of(model, tokens=tmp_path / "t") as client:
        configure_logs("info", True, written)
        client.post("/predict", json={"text": SECRET})
        client.get("/labels", params={"query": SECRET}, headers=bearer)
        client.post("/learn", json=lesson, headers=bearer)
        client.request("DELETE", f"/points/{SECRET}", headers=bearer)
        client.post("/learn", json=lesson, headers={"authorization": f"Bearer {SECRET}"})
        client.post("/learn", json={**lesson, "ids": [SECRET, SECRET]}, headers=bearer)
        client.get(f"/{SECRET}", headers={"referer": SECRET, "user-agent": SECRET})
        client.request(f"PUT{SECRET}-1", "/predict")
    found = lines(written)
    assert [(each["method"], each["route"], each["status"], each["caller"]) for each in found] == [
        ("POST", "/predict", 200, "-"),
        ("GET", "/labels", 200, "desk"),
        ("POST", "/learn", 200, "desk"),
        ("DELETE", "/points/{id:all}", 204, "desk"),
        ("POST", "/learn", 401, "-"),
        ("POST", "/learn", 422, "desk"),
        ("GET", "other", 404, "-"),
        ("other", "/predict", 405, "-"),
    ]
    assert {each["level"] for each in found} == {"info"}
    assert all(each["ms"] >= 0 and each["peer"] == "127.0.0.1" for each in found)
    for hidden in (SECRET, token, token[5:20]):
        assert hidden not in written.getvalue()


def test_ids_go_in_and_out(client: TestClient, written: io.StringIO) -> None:
    configure_logs("info", True, written)
    given = client.get("/health", headers={"x-request-id": "a.b-1"})
    assert given.headers.get_list("x-request-id") == ["a.b-1"]
    made = [client.get("/health").headers["x-request-id"] for _ in range(2)]
    assert made[0] != made[1] and all(re.fullmatch("[0-9a-f]{16}", id) for id in made)
    for bad in (b"a b", b"a\x80", b"x" * 129, b"", b'"}'):
        refused = client.get("/health", headers=[(b"x-request-id", bad)])
        assert re.fullmatch("[0-9a-f]{16}", refused.headers["x-request-id"])
    early = client.get("/health", headers={"host": "evil.org", "x-request-id": "early"})
    assert (early.status_code, early.headers["x-request-id"]) == (403, "early")
    ids = [each["request_id"] for each in lines(written)]
    assert ids[:3] == ["a.b-1", *made] and ids[-1] == "early" and len(set(ids)) == 9


def test_an_unforeseen_error_is_found_by_its_id(
    model: Path, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Engine, query: str) -> None:
        raise KeyError(f"cannot find {SECRET}")

    monkeypatch.setattr(Engine, "labels", fail)
    with client_of(model) as client:
        configure_logs("warning", True, written)
        answer = client.get("/labels", headers={"x-request-id": "lost"})
        assert answer.status_code == 500 and answer.headers["x-request-id"] == "lost"
        assert answer.headers["x-frame-options"] == "DENY"
        message = "something went wrong in the service; its log says what."
        assert answer.json() == {"error": {"type": "internal", "message": message}}
        assert 'status="500"' in client.get("/metrics").text
    trouble, line = lines(written)
    assert trouble["request_id"] == line["request_id"] == "lost"
    assert trouble["level"] == line["level"] == "error" and line["status"] == 500
    assert "an unforeseen KeyError" in trouble["message"] and "in fail" in trouble["message"]
    assert f"cannot find {SECRET}" not in written.getvalue().replace("{SECRET}", "")


def test_levels_and_plain_lines(client: TestClient, written: io.StringIO) -> None:
    configure_logs("warning", False, written)
    client.get("/health")
    assert written.getvalue() == ""
    configure_logs("info", False, written)
    client.get("/health", headers={"x-request-id": "plain"})
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    line = rf"{time} info    \[plain\] GET /health 200 [\d.]+ ms, by - from 127\.0\.0\.1\n"
    assert re.fullmatch(line, written.getvalue())


def test_a_traceback_stays_in_its_object(written: io.StringIO) -> None:
    configure_logs("warning", True, written)
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logging.getLogger("dxml.service.x").exception("failed")
    [line] = lines(written)
    assert line["message"] == "failed" and "two\nlines" in line["traceback"]
