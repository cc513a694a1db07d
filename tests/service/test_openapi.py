"""What /openapi.json says of the routes is whole, and true: its examples are sent as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dxml.service import _schemas as schemas
from dxml.service._errors import STATUS

from .conftest import TestClient, client_of

PEOPLES = {"/", "/docs", "/page/{name}", "/openapi.json"}
"""Addresses that programs do not ask."""
READING = {"/predict", "/labels", "/map", "/health", "/metrics", "/thresholds"}
"""Routes that anyone may ask."""
CHANGES = ("rename", "merge", "delete")


@pytest.fixture
def spec(client: TestClient) -> dict[str, Any]:
    return dict(client.get("/openapi.json").json())


def operations(spec: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, item in spec["paths"].items()
        for method, operation in item.items()
    ]


def body_of(operation: dict[str, Any]) -> dict[str, Any]:
    return dict(operation["requestBody"]["content"]["application/json"])


def test_every_route_is_told(client: TestClient, spec: dict[str, Any]) -> None:
    app: Any = client.app
    routes = {
        (method.lower(), route.path.replace(":all}", "}"))
        for route in app.routes
        for method in getattr(route, "methods", set()) - {"HEAD"}  # a router of its own has none
        if not route.path.startswith("/v1/") and route.path != "/v1"  # Annif's; older FastAPIs
    }
    told = {(method, path) for method, path, _ in operations(spec)}
    assert told <= routes
    assert {path for _, path in routes - told} == PEOPLES
    names = [operation["operationId"] for _, _, operation in operations(spec)]
    assert len(names) == len(set(names))


def test_every_route_says_what_it_does_and_answers(spec: dict[str, Any]) -> None:
    groups = {tag["name"] for tag in spec["tags"]}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    types = {str(status): type for type, status in STATUS.items()}
    for method, path, operation in operations(spec):
        assert len(operation["description"]) > 20, path
        assert operation["summary"] not in ("", operation["operationId"].title()), path
        assert set(operation["tags"]) <= groups
        bare = path in ("/reload", "/versions/{number}/restore")
        assert ("requestBody" in operation) == (method == "post" and not bare), path
        for parameter in operation.get("parameters", []):
            assert parameter["description"], (path, parameter["name"])
        changes = path not in READING
        assert ("security" in operation) == changes == ("401" in operation["responses"]), path
        for status, answer in operation["responses"].items():
            assert answer["description"] != "Successful Response", path
            if status == "default" or int(status) >= 400:
                assert answer["content"] == error, (path, status)
            if status in types:
                assert answer["description"].startswith(f"`{types[status]}`: ")


def test_every_field_has_a_description(spec: dict[str, Any]) -> None:
    known = dict(spec["components"]["schemas"])
    for path in ("/predict", "/learn", "/unlabel", *(f"/labels/{how}" for how in CHANGES)):
        known[path] = body_of(spec["paths"][path]["post"])["schema"]
    bare = [
        f"{name}.{field}"
        for name, schema in known.items()
        for field, told in schema["properties"].items()
        if not told.get("description")
    ]
    assert bare == []
    assert "HTTPValidationError" not in known  # FastAPI's own errors, which are never sent


def test_bodies_that_routes_read_themselves_are_told(spec: dict[str, Any]) -> None:
    kinds = (schemas.LearnRequest, schemas.UnlabelRequest, schemas.PredictRequest)
    for path, kind in zip(("/learn", "/unlabel", "/predict"), kinds, strict=True):
        told = body_of(spec["paths"][path]["post"])["schema"]["properties"]
        assert list(told) == list(kind.model_fields)
    assert told["top"]["anyOf"][0]["minimum"] == 1 and "5 by default" in told["top"]["description"]


def test_the_examples_do_what_they_say(
    client: TestClient, trained_joint: Path, spec: dict[str, Any]
) -> None:
    """Taught, a wrong label taken off, forgotten: each with the example of its route."""
    paths = spec["paths"]
    predict = body_of(paths["/predict"]["post"])["examples"]
    assert set(predict) == {"text", "texts", "explain", "features"}
    features = predict.pop("features")["value"]
    for example in predict.values():
        answer = client.post("/predict", json=example["value"])
        assert answer.status_code == 200, answer.text
        [first, *_] = schemas.PredictAnswer.model_validate(answer.json()).results
        assert (first.explanations is not None) == example["value"].get("explain", False)
    with client_of(trained_joint) as other:
        assert other.post("/predict", json=features).status_code == 200

    known = spec["components"]["schemas"]
    [lesson] = body_of(paths["/learn"]["post"])["schema"]["examples"]
    [taught] = known["LearnAnswer"]["examples"]
    done = client.post("/learn", json=lesson).json()
    assert done == taught | {"new_labels": ["fish soup", "ocean"]}
    [wrong] = body_of(paths["/unlabel"]["post"])["schema"]["examples"]
    assert client.post("/unlabel", json=wrong).status_code == 204
    [parameter] = paths["/points/{id}"]["delete"]["parameters"]
    [id] = parameter["schema"]["examples"]
    assert client.delete(f"/points/{id}").status_code == 204
    assert client.delete(f"/points/{id}").status_code == 404
    for how in CHANGES:
        [example] = body_of(paths[f"/labels/{how}"]["post"])["schema"]["examples"]
        assert client.post(f"/labels/{how}", json=example).status_code == 200
    assert [each["name"] for each in client.get("/labels").json()["labels"]] == [
        "Works",
        "Concerts",
    ]
    for name in ("PredictAnswer", "LabelPage", "Error"):
        [example] = known[name]["examples"]
        getattr(schemas, name).model_validate(example)
