"""The page for a person at ``/`` with the map it draws, and the one about the routes at ``/docs``.

Their files are in ``page/``.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from dxml.service import schemas
from dxml.service.errors import ServiceError
from dxml.service.label_maps import LabelMaps
from dxml.service.openapi import ROUTES

__all__ = ["add_pages"]

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
HEADERS = {
    # Whatever a label is called, nothing but our own files is run, drawn or asked.
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # kept, but asked for again: "304" is short
}
_JSON = "application/json"


def add_pages(app: FastAPI, maps: LabelMaps) -> None:
    """Add the routes ``/``, ``/docs``, ``/page/…`` and ``/map``."""
    contents = {
        file.name: file.read_bytes() for file in files("dxml.service").joinpath("page").iterdir()
    }
    tags = {name: f'"{hashlib.sha256(body).hexdigest()[:20]}"' for name, body in contents.items()}

    def file(request: Request, name: str) -> Response:
        if name not in contents:
            raise ServiceError("not_found", "there is no such page.")
        type = TYPES[name.rpartition(".")[2]]
        return _tagged(request, contents[name], tags[name], type, HEADERS)

    @app.head("/", include_in_schema=False)
    @app.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return file(request, "index.html")

    @app.head("/docs", include_in_schema=False)
    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        return file(request, "docs.html")

    @app.head("/page/{name}", include_in_schema=False)
    @app.get("/page/{name}", include_in_schema=False)
    async def page_file(request: Request, name: str) -> Response:
        return file(request, name)

    @app.get("/map", response_model=schemas.Map, **ROUTES["map"])
    async def map(request: Request) -> Response:
        """A place for every label, near the labels it shares texts with; ask again after a 202."""
        made = maps.current()
        if made is None:
            message = "the map is being made; ask again in a second."
            return JSONResponse({"message": message}, 202, {"Retry-After": "1"})
        headers = {"Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return _tagged(request, made.plain, made.tag, _JSON, headers)
        headers["Content-Encoding"] = "gzip"
        return _tagged(request, made.compressed, f"W/{made.tag}", _JSON, headers)


def _tagged(
    request: Request, content: bytes, tag: str, type: str, headers: dict[str, str]
) -> Response:
    """The content, or that it is what the browser has already."""
    known = {
        each.strip().removeprefix("W/")
        for each in request.headers.get("if-none-match", "").split(",")
    }
    if tag.removeprefix("W/") in known:
        kept = {name: value for name, value in headers.items() if name != "Content-Encoding"}
        return Response(status_code=304, headers=kept | {"ETag": tag})
    return Response(content, media_type=type, headers=headers | {"ETag": tag})
