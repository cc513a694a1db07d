"""The page for a person at ``/`` with the map it draws, and the one about the routes at ``/docs``.

Their files are in ``page/``. Those of Swagger UI, which shows the routes, are in the package
fastapi-swagger. Starlette serves them with ETags and compresses what is large.
"""

from __future__ import annotations

import os
from importlib.resources import files

import fastapi_swagger.resources
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

from dxml.service import _schemas as schemas
from dxml.service._label_maps import LabelMaps
from dxml.service._openapi import ROUTES

__all__ = ["add_pages"]

HEADERS = {
    # Whatever a label is called, nothing but our own files is run, drawn or asked.
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; base-uri 'none'; object-src 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # kept, but asked for again: "304" is short
}
SWAGGER = frozenset({"swagger-ui.css", "swagger-ui-bundle.js"})
"""Files of Swagger UI's package."""


class PageFiles(StaticFiles):
    """Files of a page, with the headers that keep others out of it."""

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """The file, or that it is what the browser has already."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(HEADERS)
        return response


def add_pages(app: FastAPI, maps: LabelMaps) -> None:
    """Add the routes ``/``, ``/docs``, ``/page/…`` and ``/map``."""
    pages = PageFiles(directory=str(files("dxml.service") / "page"))
    swagger = PageFiles(directory=str(files(fastapi_swagger.resources)))

    @app.head("/", include_in_schema=False)
    @app.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return await pages.get_response("index.html", request.scope)

    @app.head("/docs", include_in_schema=False)
    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        return await pages.get_response("docs.html", request.scope)

    @app.head("/page/{name}", include_in_schema=False)
    @app.get("/page/{name}", include_in_schema=False)
    async def page_file(request: Request, name: str) -> Response:
        if "\0" in name:  # which no file has, and older versions of Starlette look for
            raise HTTPException(404)
        return await (swagger if name in SWAGGER else pages).get_response(name, request.scope)

    @app.get("/map", response_model=schemas.Map, **ROUTES["map"])
    async def map(request: Request) -> Response:
        """A place for every label, near the labels it shares texts with; ask again after a 202."""
        made = maps.current()
        if made is None:
            message = "the map is being made; ask again in a second."
            return JSONResponse({"message": message}, 202, {"Retry-After": "1"})
        headers = {"Cache-Control": "no-cache", "ETag": made.tag}
        response = Response(made.content, media_type="application/json", headers=headers)
        if pages.is_not_modified(response.headers, request.headers):
            return NotModifiedResponse(response.headers)
        return response
