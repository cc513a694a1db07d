"""Routes that ask the model: its labels for a text, and the labels it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response

from dxml.service import _schemas as schemas
from dxml.service._answers import JSONAnswer
from dxml.service._engine import Labels, Wanted
from dxml.service._errors import ServiceError
from dxml.service._limits import Limits
from dxml.service._openapi import PREDICT_BODY, ROUTES
from dxml.service._runtime import Service
from dxml.service._served import Served

__all__ = ["add_predict_routes"]

About = Callable[[str], dict[str, Any]]


def add_predict_routes(app: FastAPI, service: Service) -> None:
    """Add ``/predict`` and ``/labels``."""
    engine, limits = service.engine, service.limits

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
            found = await service.within(service.batcher.submit(Wanted(points, request.depth)))
            about, least = engine.served.about, request.threshold
            results = [{"labels": _labels(row, least, about)} for row in found]
            return JSONAnswer({"results": _flagged(results, engine.served, points)})
        explained = await service.within(_explained(service, points, request.depth))
        about, least = engine.served.about, request.threshold
        results = [_result(why, least, about) for why in explained]
        return JSONAnswer({"results": _flagged(results, engine.served, points)})

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


async def _explained(service: Service, points: list[Any], top: int) -> list[list[dict[str, Any]]]:
    """Explain points one by one, so that other requests are answered in between."""
    return [await service.run(service.engine.explain, point, top) for point in points]


def _check_points(points: list[Any], request: schemas.PredictRequest, limits: Limits) -> None:
    if request.text is not None:
        limits.check_texts(points)
    limits.check_batch(len(points))
    if request.depth > limits.top:
        raise ServiceError("too_large", f"top may be {limits.top:,}, got {request.depth:,}.")
    if request.explain and len(points) > limits.explained:
        raise ServiceError(
            "too_large", f"{limits.explained} texts can be explained at once, got {len(points)}."
        )


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
