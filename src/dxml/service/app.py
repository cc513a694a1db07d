"""The service of one model: its routes and what stands before them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware

from dxml import __version__
from dxml.service._access import HostCheck
from dxml.service._admin_routes import add_admin_routes
from dxml.service._annif import annif_routes
from dxml.service._engine import Engine
from dxml.service._error_answers import add_error_answers
from dxml.service._limits import BodyLimit, Limits
from dxml.service._metrics import Counting
from dxml.service._openapi import ABOUT, ANY_ERROR
from dxml.service._pages import add_pages
from dxml.service._predict_routes import add_predict_routes
from dxml.service._runtime import Service
from dxml.service._shared_journal import SharedJournal
from dxml.service._teach_routes import add_teach_routes

__all__ = ["Limits", "create_app"]

COMPRESSED = 4096  # bytes of an answer from which on it is compressed, where the client takes that


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
    add_error_answers(app)
    add_predict_routes(app, service)
    add_teach_routes(app, service)
    add_admin_routes(app, service)
    app.include_router(annif_routes(service))
    add_pages(app, service.maps)
    return app
