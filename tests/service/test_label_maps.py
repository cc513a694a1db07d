"""The process that makes the map: one at most, and none without the service."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dxml.service import label_maps
from dxml.service.engine import Engine
from dxml.service.label_maps import LabelMaps


class Endless(subprocess.Popen[bytes]):
    """A process that makes no map and does not end by itself."""

    all: list[Endless]

    def __init__(self, command: list[str], **settings: Any) -> None:
        super().__init__([sys.executable, "-c", "import time; time.sleep(600)"], **settings)
        self.all.append(self)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Endless]]:
    monkeypatch.setattr(Endless, "all", [], raising=False)
    monkeypatch.setattr(label_maps.subprocess, "Popen", Endless)
    yield Endless.all
    for process in Endless.all:
        process.kill()
        process.wait()


def wait_for(started: list[Endless], n: int) -> None:
    deadline = time.monotonic() + 20
    while len(started) < n:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_reload_ends_the_process_of_the_last_model(model: Path, started: list[Endless]) -> None:
    engine = Engine(model)
    maps = LabelMaps(engine)
    for n in (1, 2, 3):
        assert maps.current() is None
        wait_for(started, n)
        assert [process.poll() is None for process in started] == [False] * (n - 1) + [True]
        engine.reload()
    maps.close()
    assert all(process.poll() is not None for process in started)
    assert maps.current() is None and len(started) == 3
    engine.close()


def test_the_process_ends_with_the_service(tmp_path: Path) -> None:
    """Killed at once, the service closes its end of the pipe and nothing more."""
    alone = "from dxml.service.label_maps import _end_with_the_service as end; end()"
    process = subprocess.Popen([sys.executable, "-c", alone], stdin=subprocess.PIPE)
    assert process.stdin is not None and process.poll() is None
    process.stdin.close()
    assert process.wait(60) == 1
