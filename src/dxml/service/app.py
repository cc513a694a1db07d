"""The routes: check, one call of the engine, answer."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import Depends, FastAPI, Query, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from dxml import __version__
from dxml.exceptions import DxmlError
from dxml.service import _schemas as schemas
from dxml.service._access import HostCheck, check_write
from dxml.service._answers import JSONAnswer
from dxml.service._batching import Batcher
from dxml.service._engine import Engine, Labels, Wanted
from dxml.service._errors import STATUS, ServiceError, body
from dxml.service._label_maps import LabelMaps
from dxml.service._limits import LARGE, BodyLimit, Limits
from dxml.service._metrics import Counting, Metrics
from dxml.service._openapi import ABOUT, ANY_ERROR, LEARN_BODY, PREDICT_BODY, ROUTES, UNLABEL_BODY
from dxml.service._pages import add_pages
from dxml.service._served import Served
from dxml.service._shared_journal import SharedJournal

__all__ = ["Limits", "create_app"]

COMPRESSED = 4096  # bytes of an answer from which on it is compressed, where the client takes that
MAX_ERRORS = 100  # with more errors in a body, only their number is reported

Answer = TypeVar("Answer")
Sent = TypeVar("Sent", bound=BaseModel)
_log = logging.getLogger(__name__)


def create_app(
    model: str | Path,
    *,
    token: str | None = None,
    limits: Limits | None = None,
    journal: str | Path | SharedJournal | None = None,
    threads: int | None = None,
    hosts: Sequence[str] | None = None,
) -> FastAPI:
    """The service of one model.

    Parameters
    ----------
    model : str or Path
        The folder of a `TextTagger`, or of a `Joint`.
    token : str, optional
        Bearer token that requests which change the model must send. Without it such requests are
        accepted from this machine only, see `dxml.service._access`.
    limits : Limits, optional
    journal : str, Path or SharedJournal, optional
        Where lessons are kept; in the model's folder by default.
    threads : int, optional
        Threads that compute; all by default.
    hosts : sequence of str, optional
        Names that requests may be addressed to beside loopback names, "*" for any; by default any
        with a token, and none without.
    """
    limits = limits or Limits()
    service = Service(Engine(model, journal, limits), token, limits, threads)
    app = FastAPI(
        version=__version__,
        lifespan=service.lifespan,
        responses=ANY_ERROR,
        docs_url=None,  # FastAPI's own pages load scripts from other hosts; ours is in `pages`
        redoc_url=None,
        **ABOUT,
    )
    app.state.service = service
    app.add_middleware(GZipMiddleware, minimum_size=COMPRESSED, compresslevel=6)
    app.add_middleware(BodyLimit, limits=service.limits)
    names = (["*"] if token else []) if hosts is None else hosts
    app.add_middleware(HostCheck, names=names)
    app.add_middleware(Counting, metrics=service.metrics)
    _add_errors(app)
    _add_routes(app, service)
    add_pages(app, service.maps)
    return app


class Service:
    """What the routes share: the engine, the one thread it works in, counts and limits."""

    def __init__(
        self, engine: Engine, token: str | None, limits: Limits, threads: int | None
    ) -> None:
        self.engine = engine
        self.token = token
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
        """A request's body; a large one is read in another thread, beside the event loop."""
        body = await sent.body()
        if len(body) <= LARGE:
            return _parsed(kind, body)
        return await self.within(asyncio.to_thread(_parsed, kind, body))

    async def reload(self) -> None:
        """Load the model again and swap, in another thread than the engine's."""
        await asyncio.get_running_loop().run_in_executor(None, self.engine.reload)

    async def _reload_quietly(self) -> None:
        try:
            await self.reload()
        except DxmlError:
            _log.exception("the model was not loaded again; the old one stays")

    def may_write(self, request: Request) -> None:
        """Refuse a change to those who may not make it."""
        peer = request.client.host if request.client else ""
        check_write(self.token, peer, request.headers)


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


def _add_routes(app: FastAPI, service: Service) -> None:
    engine, limits = service.engine, service.limits
    bearer = HTTPBearer(description="The service's token, where it has one.", auto_error=False)
    writing = [Security(bearer), Depends(service.may_write)]
    writing_json = [*writing, Depends(_json_only)]

    @app.post(
        "/predict",
        response_model=schemas.PredictAnswer,
        openapi_extra=PREDICT_BODY,
        **ROUTES["predict"],
    )
    async def predict(sent: Request) -> Response:
        """The most probable labels of texts, or of points given by their features.

        Give `text` or `features`, whichever the model takes; with `explain` also why.
        """
        request = await service.parsed(schemas.PredictRequest, sent)
        points = request.points()
        if not points:
            raise ServiceError("invalid", "give 'text' or 'features', one of them, not empty.")
        _check_points(points, request, limits)
        if not request.explain:
            found = await service.within(service.batcher.submit(Wanted(points, request.top)))
            about, least = engine.served.about, request.threshold
            results = [{"labels": _labels(row, least, about)} for row in found]
            return JSONAnswer({"results": _flagged(results, engine.served, points)})
        explained = await service.within(_explained(service, points, request.top))
        about, least = engine.served.about, request.threshold
        results = [_result(why, least, about) for why in explained]
        return JSONAnswer({"results": _flagged(results, engine.served, points)})

    @app.post(
        "/learn",
        response_model=schemas.LearnAnswer,
        dependencies=writing_json,
        openapi_extra=LEARN_BODY,
        **ROUTES["learn"],
    )
    async def learn(sent: Request) -> Response:
        """Teach texts and the names of their labels; they count from now on.

        Labels may be new. A lesson with `ids` can be sent twice without harm.
        """
        request = await service.parsed(schemas.LearnRequest, sent)
        _check_lesson(request, limits)
        done = await service.call(engine.learn, request.texts, request.labels, request.ids)
        return JSONAnswer({"learnt": len(done.ids), **vars(done)})

    @app.delete("/points/{id:path}", status_code=204, dependencies=writing, **ROUTES["forget"])
    async def forget(id: schemas.PointId) -> Response:
        """Forget a text, taught or of the training data."""
        await service.call(engine.forget, id)
        return Response(status_code=204)

    @app.post(
        "/unlabel",
        status_code=204,
        dependencies=writing_json,
        openapi_extra=UNLABEL_BODY,
        **ROUTES["unlabel"],
    )
    async def unlabel(sent: Request) -> Response:
        """Take a wrong label off a text, taught or of the training data."""
        request = await service.parsed(schemas.UnlabelRequest, sent)
        await service.call(engine.unlabel, request.id, request.label)
        return Response(status_code=204)

    @app.get("/labels", response_model=schemas.LabelPage, **ROUTES["labels"])
    async def labels(
        query: Annotated[str, Query(description="Part of a name; all labels without it.")] = "",
        offset: Annotated[int, Query(ge=0, description="How many to pass over.")] = 0,
        limit: Annotated[int, Query(ge=1, le=1000, description="How many to give.")] = 50,
    ) -> Response:
        """Labels whose names hold the query, in upper or lower case."""
        found = await service.call(engine.labels, query)
        about = engine.served.about
        page = [
            {"name": name, "points": n, **about(name)} for name, n in found[offset : offset + limit]
        ]
        return JSONAnswer({"total": len(found), "offset": offset, "labels": page})

    @app.head("/health", include_in_schema=False)
    @app.get("/health", response_model=schemas.Health, **ROUTES["health"])
    async def health() -> Response:
        """That the service answers, and what model it has."""
        served = engine.served
        return JSONAnswer(
            {
                "status": "ok",
                "version": __version__,
                "takes": served.takes,
                "labels": served.n_labels,
                "points": served.n_points,
                "lessons": engine.applied,
            }
        )

    @app.get("/metrics", response_class=PlainTextResponse, **ROUTES["metrics"])
    async def metrics(request: Request) -> Response:
        """Counts and latencies for Prometheus, of all workers together."""
        text, content_type = service.metrics.text(request.headers.get("accept", ""))
        return Response(text, headers={"Content-Type": content_type})

    @app.post(
        "/reload",
        response_model=schemas.ReloadAnswer,
        dependencies=writing,
        **ROUTES["reload"],
    )
    async def reload() -> Response:
        """Load the model's folder again, then swap; requests are answered meanwhile."""
        await service.reload()
        served = engine.served
        return JSONAnswer({"labels": served.n_labels, "points": served.n_points})


def _json_only(request: Request) -> None:
    """Refuse content types that a form on any web page could send."""
    given = request.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != "application/json":
        raise ServiceError(
            "unsupported_type",
            "this needs the header 'Content-Type: application/json', "
            f"got {given[:80] or 'none'!r}. With curl, use --json for -d.",
        )


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


async def _explained(service: Service, points: list[Any], top: int) -> list[list[dict[str, Any]]]:
    """Explain points one by one, so that other requests are answered in between."""
    return [await service.run(service.engine.explain, point, top) for point in points]


def _check_points(points: list[Any], request: schemas.PredictRequest, limits: Limits) -> None:
    if request.text is not None:
        limits.check_texts(points)
    limits.check_batch(len(points))
    if request.top > limits.top:
        raise ServiceError("too_large", f"top may be {limits.top:,}, got {request.top:,}.")
    if request.explain and len(points) > limits.explained:
        raise ServiceError(
            "too_large", f"{limits.explained} texts can be explained at once, got {len(points)}."
        )


def _check_lesson(request: schemas.LearnRequest, limits: Limits) -> None:
    limits.check_texts(request.texts)
    for what, found in (("labels", request.labels), ("ids", request.ids)):
        if found is not None and len(found) != len(request.texts):
            message = f"there are {len(request.texts)} texts but {len(found)} of {what}."
            raise ServiceError("invalid", message)
    limits.check_labels(request.labels)
    if request.ids is not None:
        limits.check_names("an id", request.ids)
        if len(set(request.ids)) < len(request.ids):
            raise ServiceError("invalid", "an id stands twice. Give every text another id.")


About = Callable[[str], dict[str, Any]]


def _flagged(
    results: list[dict[str, Any]], served: Served, points: Sequence[Any]
) -> list[dict[str, Any]]:
    """With a word about the points of which the model knows nothing."""
    for place in served.nothing_known(points):
        results[place]["nothing_known"] = True
    return results


def _labels(row: Labels, threshold: float | None, about: About) -> list[dict[str, Any]]:
    least = -1.0 if threshold is None else threshold
    return [{"name": name, "probability": p, **about(name)} for name, p in row if p >= least]


def _result(why: list[dict[str, Any]], threshold: float | None, about: About) -> dict[str, Any]:
    labels = _labels([(each["name"], each["probability"]) for each in why], threshold, about)
    return {"labels": labels, "explanations": why[: len(labels)]}  # both best first


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


def _add_errors(app: FastAPI) -> None:
    types = {status: type for type, status in STATUS.items()}

    def answer(type: str, message: str) -> Response:
        headers = {"WWW-Authenticate": "Bearer"} if type == "unauthorized" else None
        return JSONAnswer(body(type, message), STATUS[type], headers)

    @app.exception_handler(ServiceError)
    async def service_error(request: Request, error: ServiceError) -> Response:
        return answer(error.type, error.message)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        named = [str(part) for part in first["loc"][1:]]
        where = ".".join(part for part in named if part.isalnum())  # not pydantic's own terms
        return answer("invalid", f"{where}: {first['msg']}" if where else str(first["msg"]))

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        kind = types.get(error.status_code, "bad_request")
        return JSONAnswer(body(kind, str(error.detail)), error.status_code, error.headers)

    @app.exception_handler(DxmlError)
    async def library_error(request: Request, error: DxmlError) -> Response:
        return answer("bad_request", str(error))

    @app.exception_handler(sqlite3.Error)
    async def journal_error(request: Request, error: sqlite3.Error) -> Response:
        _log.error("the journal: %s", error)
        return answer("internal", f"the journal cannot be used ({error}); nothing was learnt.")

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        return answer("internal", "something went wrong in the service; its log says what.")
