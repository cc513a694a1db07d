"""What ``/openapi.json``, and so the page ``/docs``, says of the routes beyond their own code."""

from __future__ import annotations

from typing import Any

from dxml.service import schemas
from dxml.service.errors import STATUS

__all__ = ["ABOUT", "ANY_ERROR", "PREDICT_BODY", "described"]

ABOUT: dict[str, Any] = {
    "title": "dxml",
    "description": "Label names for texts, with probabilities and evidence; teachable.",
    "openapi_tags": [
        {"name": "Asking", "description": "Labels of texts, and what labels there are."},
        {"name": "Teaching", "description": "What is taught counts at once and stays."},
        {"name": "Running", "description": "How the service is, and another model for it."},
    ],
    "generate_unique_id_function": lambda route: route.name,  # names for generated clients
}
"""Of the service as a whole."""

ANY_ERROR: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "Any other error.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
}
"""An answer of every route, in JSON also where the route's other answers are not."""

PREDICT_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": schemas.PredictRequest.model_json_schema(),
                "examples": {
                    "text": {
                        "summary": "A text",
                        "value": {"text": "A net full of fish", "top": 3},
                    },
                    "texts": {
                        "summary": "Several",
                        "value": {"text": ["fish", "soup"], "threshold": 0.2},
                    },
                    "explain": {
                        "summary": "And why",
                        "value": {"text": "fish in the soup", "top": 2, "explain": True},
                    },
                    "features": {
                        "summary": "Features",
                        "value": {"features": {"17": 0.5, "42": 1.2}, "top": 3},
                    },
                },
            }
        },
    }
}
"""The body of ``/predict``, which reads it itself."""

_MEANING = {
    "invalid": "something is missing, unknown, or of another type than it should be.",
    "bad_request": "the model's folder cannot be used; the old model stays.",
    "unauthorized": "the token is missing or wrong.",
    "forbidden": "without a token, changes are taken at a loopback address only.",
    "not_found": "there is no such text, or it does not carry the label.",
    "conflict": "a model of features cannot be taught texts; the last text cannot be forgotten.",
    "too_large": "more than one request may have.",
    "internal": "something went wrong in the service; its log says what.",
    "busy": "too many texts are waiting; try again later.",
    "timeout": "no answer in time; send less at once, or later.",
}


def described(
    tag: str,
    summary: str,
    answer: str,
    *errors: str,
    also: dict[int, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Arguments of a route.

    Parameters
    ----------
    tag : str
        The group it is shown in.
    summary, answer : str
        What it does in a few words, and what its answer is.
    errors : str
        Types of `STATUS` that it is likely to answer with.
    also : status → answer, optional
        Other answers that are no errors.
    """
    likely: dict[int, dict[str, Any]] = {
        STATUS[type]: {"model": schemas.Error, "description": f"`{type}`: {_MEANING[type]}"}
        for type in errors
    }
    return {
        "tags": [tag],
        "summary": summary,
        "response_description": answer,
        "responses": (also or {}) | likely,
    }
