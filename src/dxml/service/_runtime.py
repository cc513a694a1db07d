"""What the routes share: the engine, the one thread that it works in, counts, limits, and who may.

A route is a function in `_predict_routes`, `_teach_routes` or `_admin_routes`. It parses what was
sent (`Service.parsed`), calls the engine (`Service.call`), and answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from fastapi import Depends, FastAPI, Request, Security, params
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ValidationError

from dxml.exceptions import DxmlError
from dxml.service._access import Access, check_json
from dxml.service._batching import Batcher
from dxml.service._engine import Engine
from dxml.service._errors import ServiceError
from dxml.service._label_maps import LabelMaps
from dxml.service._limits import LARGE, Limits
from dxml.service._logs import CALLER
from dxml.service._metrics import Metrics
from dxml.service._tokens import Caller, Role

__all__ = ["Service", "runners", "writers"]

MAX_ERRORS = 100  # with more errors in a body, only their number is reported

Answer = TypeVar("Answer")
Sent = TypeVar("Sent", bound=BaseModel)
_log = logging.getLogger(__name__)
_BEARER: params.Depends = Security(
    HTTPBearer(description="A token, where the service has any.", auto_error=False)
)


class Service:
    """What the routes share: the engine, the one thread it works in, counts and limits."""

    def __init__(self, engine: Engine, access: Access, limits: Limits, threads: int | None) -> None:
        self.engine = engine
        self.access = access
        self.limits = limits
        self.metrics = Metrics(lambda: _gauges(self))
        self.maps = LabelMaps(engine)
        self.executor = ThreadPoolExecutor(
            1, "dxml-model", initializer=_use_threads, initargs=(threads,)
        )
        self.batcher = Batcher(
            engine.rank,
            self.executor,
            waiting=limits.waiting,
            count_batch=self.metrics.observe_batch,
        )

    @contextlib.asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        """Run from the start of the service to its end; SIGHUP reloads the model."""
        loop = asyncio.get_running_loop()
        reloading: set[asyncio.Task[None]] = set()

        def reload() -> None:
            task = loop.create_task(self._reload_quietly())
            reloading.add(task)
            task.add_done_callback(reloading.discard)

        with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
            loop.add_signal_handler(signal.SIGHUP, reload)  # works in the main thread only
        gc.collect()
        gc.freeze()  # the garbage collector need not scan the loaded model
        yield
        gc.unfreeze()
        await self.batcher.close()
        self.executor.shutdown(cancel_futures=True)
        self.maps.close()
        self.engine.close()

    async def call(self, function: Callable[..., Answer], *arguments: Any) -> Answer:
        """Run a method of the engine in its thread, in the time that a request has."""
        return await self.within(self.run(function, *arguments))

    async def run(self, function: Callable[..., Answer], *arguments: Any) -> Answer:
        """Run a method of the engine in its thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.executor, function, *arguments)

    async def within(self, answer: Awaitable[Answer]) -> Answer:
        """Wait for an answer as long as a request may take."""
        try:
            return await asyncio.wait_for(answer, self.limits.seconds)
        except TimeoutError:
            raise ServiceError(
                "timeout",
                f"no answer within {self.limits.seconds:g} s. Send less at once, or later; what "
                "was taught may still be learnt, and with ids it can be sent again.",
            ) from None

    async def parsed(self, kind: type[Sent], sent: Request) -> Sent:
        """A request's body, of a kind of `_schemas`."""
        return await self.read(partial(_parsed, kind), await sent.body())

    async def read(self, parse: Callable[[bytes], Answer], body: bytes) -> Answer:
        """What a body holds; a large one is parsed in another thread."""
        if len(body) <= LARGE:
            return parse(body)
        return await self.within(asyncio.to_thread(parse, body))

    async def reload(self) -> None:
        """Load the model again and swap, in another thread than the engine's."""
        await asyncio.get_running_loop().run_in_executor(None, self.engine.reload)

    async def _reload_quietly(self) -> None:
        try:
            await self.reload()
        except DxmlError:
            _log.exception("the model was not loaded again; the old one stays")

    def may_write(self, request: Request) -> Caller:
        """Refuse a change to those who may not teach."""
        return self._may("teach", request)

    def may_run(self, request: Request) -> Caller:
        """Refuse a change to those who may not run the service."""
        return self._may("admin", request)

    @staticmethod
    def taught_by(request: Request) -> str | None:
        """Who teaches, where there is a limit to what one may: who runs the service has none."""
        caller: Caller = request.scope[CALLER]
        return caller.name if caller.role == "teach" else None

    def _may(self, role: Role, request: Request) -> Caller:
        peer = request.client.host if request.client else ""
        caller = self.access.check_change(role, peer, request.headers)
        request.scope[CALLER] = caller
        return caller


def writers(service: Service) -> list[params.Depends]:
    """What a route depends on that only those may ask who may teach."""
    return [_BEARER, Depends(service.may_write)]


def runners(service: Service) -> list[params.Depends]:
    """What a route without a body depends on that only those may ask who may run the service."""
    return [_BEARER, Depends(service.may_run), Depends(_no_form)]


def _no_form(request: Request) -> None:
    """Nothing need be sent; what is sent must be JSON, which no form on a web page can send."""
    if "content-type" in request.headers:
        check_json(request.headers)


def _use_threads(count: int | None) -> None:
    """Set the number of threads: numba's is of the calling thread, torch's of the process.

    Where they are not imported yet, they read it from the environment.
    """
    if count is None:
        return
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)
    else:
        os.environ.setdefault("OMP_NUM_THREADS", str(count))
    if "numba" in sys.modules:
        numba = sys.modules["numba"]
        numba.set_num_threads(min(count, numba.get_num_threads()))
    else:
        os.environ.setdefault("NUMBA_NUM_THREADS", str(count))


def _parsed(kind: type[Sent], body: bytes) -> Sent:
    """Parse and validate a body in one step, which is most of the work of a request."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        if (n := error.error_count()) > MAX_ERRORS:
            message = f"{n:,} fields or values are wrong. /docs says what is taken."
            raise ServiceError("invalid", message) from None
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError(
            [{**each, "loc": ("body", *each["loc"])} for each in found]
        ) from None


def _gauges(service: Service) -> dict[str, tuple[str, float]]:
    served = service.engine.served
    return {
        "dxml_model_labels": ("Labels of the model.", served.n_labels),
        "dxml_model_points": ("Points of the model.", served.n_points),
        "dxml_model_bytes": ("Size of its folder.", _folder_bytes(service.engine.folder)),
        "dxml_lessons": ("Last entry of the journal applied.", service.engine.applied),
    }


def _folder_bytes(folder: Path) -> int:
    """Size of the model's files in a folder; files that disappear meanwhile are left out."""
    size = 0
    for path in (folder / "config.json", *folder.glob("*.safetensors")):
        with contextlib.suppress(FileNotFoundError):
            size += path.stat().st_size
    return size
