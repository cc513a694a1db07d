"""What ``/openapi.json``, and so the page ``/docs``, says of the routes beyond their own code."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from dxml.service import _schemas as schemas
from dxml.service._errors import STATUS

__all__ = [
    "ABOUT",
    "ANY_ERROR",
    "LEARN_BODY",
    "PREDICT_BODY",
    "REFUSED",
    "ROUTES",
    "UNLABEL_BODY",
    "body_of",
    "described",
]

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


def body_of(kind: type[BaseModel], **examples: tuple[str, Any]) -> dict[str, Any]:
    """Describes a JSON body that the route parses itself; examples are (summary, value)."""
    content: dict[str, Any] = {"schema": kind.model_json_schema()}
    if examples:
        content["examples"] = {
            name: {"summary": summary, "value": value}
            for name, (summary, value) in examples.items()
        }
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


PREDICT_BODY = body_of(
    schemas.PredictRequest,
    text=("A text", {"text": "A net full of fish", "top": 3}),
    texts=("Several", {"text": ["fish", "soup"], "threshold": 0.2}),
    explain=("And why", {"text": "fish in the soup", "top": 2, "explain": True}),
    features=("Features", {"features": {"17": 0.5, "42": 1.2}, "top": 3}),
)
LEARN_BODY = body_of(schemas.LearnRequest)
UNLABEL_BODY = body_of(schemas.UnlabelRequest)

_MEANING = {
    "invalid": "something is missing, unknown, or of another type than it should be.",
    "bad_request": "the model's folder cannot be used; the old model stays.",
    "unauthorized": "the token is missing or wrong.",
    "forbidden": "without a token, changes are taken from this machine only.",
    "not_found": "there is no such text, label, lesson or version, or a text does not carry it.",
    "conflict": "a model of features cannot be taught texts; the last text cannot be forgotten; "
    "too many new labels, or too much in all, was taught; a name is taken, or what was before a "
    "lesson is not known.",
    "unsupported_type": "a change must be sent as `application/json`.",
    "too_large": "more than one request may have.",
    "internal": "something went wrong in the service; its log says what.",
    "busy": "too many texts are waiting; try again later.",
    "timeout": "no answer in time; send less at once, or later.",
}


def described(tag: str, summary: str, answer: str, *errors: str) -> dict[str, Any]:
    """Arguments of a route: its group, what it does, what its answer is, its likely errors."""
    likely: dict[int, dict[str, Any]] = {
        STATUS[type]: {"model": schemas.Error, "description": f"`{type}`: {_MEANING[type]}"}
        for type in errors
    }
    return {
        "tags": [tag],
        "summary": summary,
        "response_description": answer,
        "responses": likely,
    }


REFUSED = ("unauthorized", "forbidden")

ROUTES = {
    "predict": described(
        "Asking",
        "Find the labels of texts",
        "A result for each text, in their order.",
        *("too_large", "invalid", "busy", "timeout"),
    ),
    "labels": described("Asking", "Search the labels", "A page of those found.", "invalid"),
    "map": described("Asking", "Get the map of the labels", "The map.", "internal"),
    "learn": described(
        "Teaching",
        "Teach texts",
        "What was learnt; it is on the disk.",
        *(*REFUSED, "conflict", "too_large", "unsupported_type", "invalid", "timeout"),
    ),
    "unlabel": described(
        "Teaching",
        "Take a label off a text",
        "The text no longer carries it.",
        *(*REFUSED, "not_found", "conflict", "unsupported_type", "invalid", "timeout"),
    ),
    "forget": described(
        "Teaching",
        "Forget a text",
        "It is forgotten.",
        *(*REFUSED, "not_found", "conflict", "timeout"),
    ),
    "health": described("Running", "See that it is there", "It is there."),
    "metrics": described("Running", "Read its counters", "Text in the format of Prometheus."),
    "reload": described(
        "Running",
        "Load the model again",
        "The model that is in place now.",
        *("bad_request", *REFUSED),
    ),
}
"""Arguments of each route, by the name of its function."""
ROUTES["map"]["responses"][202] = {
    "model": schemas.MapUnderWay,
    "description": "It is being made; ask again in a second.",
}
