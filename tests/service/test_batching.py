"""Requests that come while the model is busy are ranked together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from dxml.service._batching import Batcher
from dxml.service._engine import Ranked, Wanted
from dxml.service._errors import ServiceError


class Slow:
    """Ranks when it is told to, and remembers what came together."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.batches: list[list[str]] = []

    def __call__(self, wanted: Sequence[Wanted]) -> list[Ranked]:
        self.go.wait(10)
        self.batches.append([str(point) for request in wanted for point in request.points])
        if "broken" in self.batches[-1]:
            raise ZeroDivisionError
        return [
            ServiceError("invalid", "bad")
            if request.points == ["bad"]
            else [[(str(point), 1.0)] for point in request.points]
            for request in wanted
        ]


async def run(texts: list[list[str]], **settings: int) -> tuple[Slow, list[object]]:
    slow = Slow()
    with ThreadPoolExecutor(1) as executor:
        batcher = Batcher(slow, executor, **settings)
        tasks = []
        for text in texts:
            tasks.append(asyncio.create_task(batcher.submit(Wanted(text, 1))))
            await asyncio.sleep(0.01)
        slow.go.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        await batcher.close()
    return slow, list(answers)


def test_the_first_goes_at_once_and_the_others_together() -> None:
    slow, answers = asyncio.run(run([["a"], ["b"], ["c", "d"], ["e"]]))
    assert slow.batches == [["a"], ["b", "c", "d", "e"]]
    assert answers[2] == [[("c", 1.0)], [("d", 1.0)]]


def test_a_batch_has_its_size() -> None:
    slow, _ = asyncio.run(run([["a"], ["b"], ["c", "d", "e"], ["f"], ["g"]], rows=2))
    assert slow.batches == [["a"], ["b"], ["c", "d", "e"], ["f", "g"]]


def test_an_error_is_that_of_one_request() -> None:
    _, answers = asyncio.run(run([["a"], ["bad"], ["c"]]))
    assert isinstance(answers[1], ServiceError)
    assert answers[2] == [[("c", 1.0)]]
    _, answers = asyncio.run(run([["broken"], ["b"]]))
    assert isinstance(answers[0], ZeroDivisionError)
    assert answers[1] == [[("b", 1.0)]]


def test_too_many_are_told_to_come_again() -> None:
    _, answers = asyncio.run(run([["a"], ["b"], ["c"], ["d"]], waiting=2))
    assert [isinstance(answer, list) for answer in answers] == [True, True, True, False]
    with pytest.raises(ServiceError, match="2 texts are waiting. Try again later."):
        raise answers[3]  # type: ignore[misc]


def test_what_was_given_up_is_not_ranked() -> None:
    async def impatient() -> Slow:
        slow = Slow()
        with ThreadPoolExecutor(1) as executor:
            batcher = Batcher(slow, executor)
            tasks = [asyncio.create_task(batcher.submit(Wanted([t], 1))) for t in "ab"]
            await asyncio.sleep(0.01)
            tasks.append(asyncio.create_task(batcher.submit(Wanted(["c"], 1))))
            tasks.append(asyncio.create_task(batcher.submit(Wanted(["d"], 1))))
            await asyncio.sleep(0.01)
            tasks[2].cancel()
            slow.go.set()
            await asyncio.gather(*tasks, return_exceptions=True)
        return slow

    assert [text for batch in asyncio.run(impatient()).batches for text in batch] == ["a", "b", "d"]
