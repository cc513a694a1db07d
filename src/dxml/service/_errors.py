"""One shape for every error: ``{"error": {"type": …, "message": …}}``."""

from __future__ import annotations

from typing import Any

__all__ = ["STATUS", "ServiceError", "body"]

STATUS = {
    "invalid": 422,
    "bad_request": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "slow_request": 408,
    "conflict": 409,
    "too_large": 413,
    "unsupported_type": 415,
    "internal": 500,
    "busy": 503,
    "timeout": 504,
}
"""The types of errors, and the HTTP status of each."""


class ServiceError(Exception):
    """A request that cannot be answered: its type, one of `STATUS`, and a sentence for a person."""

    def __init__(self, type: str, message: str) -> None:
        super().__init__(message)
        self.type = type
        self.status = STATUS[type]
        self.message = message


def body(type: str, message: str) -> dict[str, Any]:
    """What is sent.

    >>> body("not_found", "there is no such page.")
    {'error': {'type': 'not_found', 'message': 'there is no such page.'}}
    """
    return {"error": {"type": type, "message": message}}
