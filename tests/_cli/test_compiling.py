"""What is said while loops are compiled."""

from __future__ import annotations

import threading
import time

import pytest

from dxml._cli import _compiling
from dxml._cli._compiling import CompilingNotice


def test_nothing_is_said_where_nothing_is_compiled() -> None:
    said: list[str] = []
    CompilingNotice(said.append).close()
    assert said == []


def test_a_long_compilation_is_told_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    again = threading.Event()
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "now" in line:
            again.set()

    monkeypatch.setattr(_compiling, "EVERY", 0.01)
    monkeypatch.setattr(_compiling, "LONG", 0.0)
    notice = CompilingNotice(say)
    notice.start("_short")
    notice.end("_short")
    notice.start("_long")
    notice.start("_inner")  # called by it
    notice.end("_inner")
    assert again.wait(30)
    notice.end("_long")
    notice.close()
    assert said[0] == "compiling loops, once on this machine: it may take a minute"
    assert said[1] == "compiling loops: 2 done, now long"
    assert said[-1].startswith("compiled 3 loops in 0 s")
    told = len(said)
    time.sleep(0.05)
    assert len(said) == told, "closed"


def test_a_short_compilation_is_one_line() -> None:
    said: list[str] = []
    notice = CompilingNotice(said.append)
    for name in ("a", "b"):
        notice.start(name)
        notice.end(name)
    notice.close()
    assert said == ["compiling loops, once on this machine: it may take a minute"]


def test_what_is_not_kept_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compiling, "LONG", -1.0)
    for kept, end in (
        (True, "next time they are there"),
        (False, "NUMBA_CACHE_DIR=FOLDER names one"),
    ):
        monkeypatch.setattr(_compiling, "are_kept", lambda kept=kept: kept)
        said: list[str] = []
        CompilingNotice(said.append).close()
        assert said[-1].endswith(end)
