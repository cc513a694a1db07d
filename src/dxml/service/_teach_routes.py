"""Routes that change what the model knows."""

from __future__ import annotations

from fastapi import Depends, FastAPI, Request, Response
from starlette.convertors import PathConvertor, register_url_convertor

from dxml.service import _schemas as schemas
from dxml.service._access import check_json
from dxml.service._answers import JSONAnswer
from dxml.service._errors import ServiceError
from dxml.service._limits import Limits
from dxml.service._openapi import LEARN_BODY, ROUTES, UNLABEL_BODY
from dxml.service._runtime import Service, writers

__all__ = ["add_teach_routes", "json_only"]


class _All(PathConvertor):
    """All the rest of a path; Starlette's ends at the end of a line, or just before it."""

    regex = "(?s:.*)"


register_url_convertor("all", _All())


def add_teach_routes(app: FastAPI, service: Service) -> None:
    """Add ``/learn``, ``/points/…`` and ``/unlabel``."""
    engine, limits = service.engine, service.limits
    writing = writers(service)
    writing_json = [*writing, Depends(json_only)]

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
        what = request.texts, request.labels, request.ids, service.taught_by(sent)
        done = await service.call(engine.learn, *what)
        return JSONAnswer({"learnt": len(done.ids), **vars(done)})

    @app.delete("/points/{id:all}", status_code=204, dependencies=writing, **ROUTES["forget"])
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


def json_only(request: Request) -> None:
    """Refuse what is not sent as JSON."""
    check_json(request.headers)


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
