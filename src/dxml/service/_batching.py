"""Requests that come while the model is busy are ranked together when it is free.

Nobody waits for a batch to fill: a lone request is ranked at once. Under load the batches grow by
themselves, and ranking many points together takes far less time than one by one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Protocol

from dxml.service._engine import Labels, Ranked, Wanted
from dxml.service._errors import ServiceError

__all__ = ["Batcher"]


class Rank(Protocol):
    """`Engine.rank`."""

    def __call__(self, wanted: Sequence[Wanted]) -> list[Ranked]: ...


@dataclass
class Batcher:
    """Collects requests and ranks them in one thread.

    Parameters
    ----------
    rank : Rank
    executor : Executor
        With one thread, which may have other work as well.
    rows : int
        Points in a batch; one request may have more.
    waiting : int
        Points that may wait.
    count_batch : callable
        Called with the number of points of each batch that was ranked.
    """

    rank: Rank
    executor: Executor
    rows: int = 256
    waiting: int = 10_000
    count_batch: Callable[[int], None] = lambda size: None
    _queue: deque[tuple[Wanted, asyncio.Future[list[Labels]]]] = field(
        default_factory=deque, init=False
    )
    _queued: int = field(default=0, init=False)
    _task: asyncio.Task[None] | None = field(default=None, init=False)

    async def submit(self, wanted: Wanted) -> list[Labels]:
        """Queue the points of a request; returns their labels once they are ranked."""
        if self._queued and self._queued + len(wanted.points) > self.waiting:
            raise ServiceError("busy", f"{self._queued:,} texts are waiting. Try again later.")
        future: asyncio.Future[list[Labels]] = asyncio.get_running_loop().create_future()
        self._queue.append((wanted, future))
        self._queued += len(wanted.points)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await future

    async def close(self) -> None:
        """Cancel what is still queued."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while batch := self._next():
            wanted = [request for request, _ in batch]
            try:
                answers = await loop.run_in_executor(self.executor, self.rank, wanted)
            except Exception as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            self.count_batch(sum(len(request.points) for request in wanted))
            for (_, future), answer in zip(batch, answers, strict=True):
                if future.done():  # cancelled or timed out meanwhile
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

    def _next(self) -> list[tuple[Wanted, asyncio.Future[list[Labels]]]]:
        """The requests of the next batch; cancelled ones are dropped."""
        batch: list[tuple[Wanted, asyncio.Future[list[Labels]]]] = []
        size = 0
        while self._queue:
            request, future = self._queue[0]
            if batch and size + len(request.points) > self.rows:
                break
            self._queue.popleft()
            self._queued -= len(request.points)
            if not future.done():
                batch.append((request, future))
                size += len(request.points)
        return batch
