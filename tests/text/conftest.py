"""Fixtures of the tests on text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class Heard:
    """A progress that remembers the stages and adds up what is done."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, float | None, str]] = []
        self.done = 0.0

    @contextmanager
    def stage(self, name: str, total: float | None = None, unit: str = "") -> Iterator[Heard]:
        self.stages.append((name, total, unit))
        yield self

    def advance(self, amount: float = 1) -> None:
        self.done += amount

    def note(self, text: str) -> None:
        raise AssertionError(text)


@pytest.fixture
def heard() -> Heard:
    return Heard()
