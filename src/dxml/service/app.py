"""The service of one model: its routes and what stands before them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware

from dxml import __version__
from dxml.exceptions import ParameterError
from dxml.service._access import Access, AskCheck, HostCheck, check_origins
from dxml.service._admin_routes import add_admin_routes
from dxml.service._annif import annif_routes
from dxml.service._engine import Engine
from dxml.service._error_answers import add_error_answers
from dxml.service._headers import SafeHeaders
from dxml.service._label_routes import add_label_routes
from dxml.service._lesson_routes import add_lesson_routes
from dxml.service._limits import BodyLimit, Limits
from dxml.service._logs import RequestLog
from dxml.service._metrics import Counting
from dxml.service._openapi import ABOUT, ANY_ERROR
from dxml.service._pages import add_pages
from dxml.service._predict_routes import add_predict_routes
from dxml.service._runtime import Service
from dxml.service._shared_journal import SharedJournal
from dxml.service._teach_routes import add_teach_routes
from dxml.service._threshold_routes import add_threshold_routes
from dxml.service._tokens import Tokens

__all__ = ["Limits", "create_app"]

COMPRESSED = 4096  # bytes of an answer from which on it is compressed, where the client takes that
CROSS_ORIGIN: dict[str, Any] = {
    "allow_methods": ["GET", "POST", "DELETE"],
    "allow_headers": ["Authorization", "Content-Type", "X-Request-ID"],
    "expose_headers": ["X-Request-ID"],
    "allow_credentials": False,  # no cookies: who may change what is in the token alone
}
"""What pages of other origins may send, where there are any."""


def create_app(
    model: str | Path,
    *,
    token: str | None = None,
    tokens: str | Path | None = None,
    private: bool = False,
    limits: Limits | None = None,
    journal: str | Path | SharedJournal | None = None,
    threads: int | None = None,
    hosts: Sequence[str] | None = None,
    origins: Sequence[str] = (),
) -> FastAPI:
    """The service of one model.

    Parameters
    ----------
    model : str or Path
        The folder of a `TextTagger`, or of a `Joint`.
    token : str, optional
        Bearer token that may do everything, or its hash. Without any token, changes are accepted
        from this machine only, see `dxml.service._access`.
    tokens : str or Path, optional
        A file of tokens with roles, see `dxml.service._tokens`.
    private : bool
        Whether asking needs a token as well.
    limits : Limits, optional
    journal : str, Path or SharedJournal, optional
        Where lessons are kept; in the model's folder by default.
    threads : int, optional
        Threads that compute; all by default.
    hosts : sequence of str, optional
        Names that requests may be addressed to beside loopback names, "*" for any; by default any
        with a token, and none without.
    origins : sequence of str
        Origins of other sites whose pages may ask, and change the model with a token; "*" for any.
    """
    limits = limits or Limits()
    check_origins(origins)
    access = Access(Tokens(token, tokens), private, [each.lower() for each in origins])
    if private and not access.tokens.needed:
        raise ParameterError("a private service needs a token, or a file of them.")
    service = Service(Engine(model, journal, limits), access, limits, threads)
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
    app.add_middleware(AskCheck, access=access)
    if origins:
        app.add_middleware(CORSMiddleware, allow_origins=list(access.origins), **CROSS_ORIGIN)
    names = (["*"] if access.tokens.needed else []) if hosts is None else hosts
    app.add_middleware(HostCheck, names=names)
    app.add_middleware(Counting, metrics=service.metrics)
    app.add_middleware(RequestLog)
    app.add_middleware(SafeHeaders)
    add_error_answers(app)
    add_predict_routes(app, service)
    add_threshold_routes(app, service)
    add_teach_routes(app, service)
    add_lesson_routes(app, service)
    add_label_routes(app, service)
    add_admin_routes(app, service)
    app.include_router(annif_routes(service))
    add_pages(app, service.maps)
    return app
