"""Routes for those who run the service: is it well, what did it do, load the model again."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse

from dxml import __version__
from dxml.service import _schemas as schemas
from dxml.service._answers import JSONAnswer
from dxml.service._openapi import ROUTES
from dxml.service._runtime import Service, runners

__all__ = ["add_admin_routes"]


def add_admin_routes(app: FastAPI, service: Service) -> None:
    """Add ``/health``, ``/metrics`` and ``/reload``."""
    engine = service.engine

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
        dependencies=runners(service),
        **ROUTES["reload"],
    )
    async def reload() -> Response:
        """Load the model's folder again, then swap; requests are answered meanwhile."""
        await service.reload()
        served = engine.served
        return JSONAnswer({"labels": served.n_labels, "points": served.n_points})
