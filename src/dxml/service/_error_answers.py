"""Exceptions → the answers to the requests that raised them."""

from __future__ import annotations

import logging
import sqlite3

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from dxml.exceptions import DxmlError
from dxml.service._answers import JSONAnswer
from dxml.service._errors import STATUS, ServiceError, body

__all__ = ["add_error_answers"]

NAMED = 80  # characters of a field's name that are told
_log = logging.getLogger(__name__)


def add_error_answers(app: FastAPI) -> None:
    """Answer exceptions in the one shape of `_errors`; those that nobody foresaw are in `_logs`."""
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
        where = ".".join(part[:NAMED] for part in named if part.isalnum())  # no terms of pydantic
        return answer("invalid", f"{where}: {first['msg']}" if where else str(first["msg"]))

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        kind = types.get(error.status_code, "bad_request")
        headers = dict(error.headers or {})
        if kind == "method_not_allowed" and (allowed := _methods(app, request)):
            headers["Allow"] = ", ".join(allowed)
        return JSONAnswer(body(kind, str(error.detail)), error.status_code, headers)

    @app.exception_handler(DxmlError)
    async def library_error(request: Request, error: DxmlError) -> Response:
        return answer("bad_request", str(error))

    @app.exception_handler(sqlite3.Error)
    async def journal_error(request: Request, error: sqlite3.Error) -> Response:
        _log.error("the journal: %s", error)
        return answer("internal", f"the journal cannot be used ({error}); nothing was learnt.")


def _methods(app: FastAPI, request: Request) -> list[str]:
    """What may be done with a path, by all routes that have it."""
    found = [route for route in app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in found for method in getattr(route, "methods", None) or ()})
