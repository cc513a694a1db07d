"""Every route that changes something, as OpenAPI lists them, against every way to misuse it.

A route that is new fails here until it is named with the role that it needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from dxml.service._tokens import ROLES, Role, new_token
from dxml.service.app import create_app

from .conftest import TestClient, client_of

ASKING = {("POST", "/predict")}
NEEDED: dict[tuple[str, str], Role] = {
    ("POST", "/learn"): "teach",
    ("DELETE", "/points/{id}"): "teach",
    ("POST", "/unlabel"): "teach",
    ("DELETE", "/lessons/{number}"): "teach",
    ("POST", "/labels/rename"): "teach",
    ("POST", "/labels/merge"): "teach",
    ("POST", "/labels/delete"): "teach",
    ("POST", "/reload"): "admin",
    ("POST", "/versions/{number}/restore"): "admin",
    ("POST", "/v1/projects/tags/learn"): "teach",  # Annif's, which OpenAPI does not list
}
LESSON = {"texts": ["herring soup"], "labels": [["Fish soup"]], "ids": ["a"]}
BODIES: dict[str, Any] = {
    "/learn": LESSON,
    "/unlabel": {"id": "doc/1", "label": "Music"},
    "/labels/rename": {"old": "Music", "new": "Concerts"},
    "/labels/merge": {"labels": ["Roads", "Kitchen"], "into": "Works"},
    "/labels/delete": {"labels": ["Fishery"]},
    "/v1/projects/tags/learn": [{"text": "a net", "subjects": [{"label": "Fishery"}]}],
}
Headers = dict[str, str]


class Misuse(NamedTuple):
    """How a request is wrong, and its answer."""

    status: int
    headers: Mapping[str, str] = MappingProxyType({})
    peer: str = "127.0.0.1"
    type: str | None = "application/json"


WITHOUT_TOKENS = {
    "another name": Misuse(403, {"host": "evil.org"}),
    "a name that looks like this machine's": Misuse(403, {"host": "localhost.evil.org"}),
    "another machine": Misuse(403, peer="192.0.2.7"),
    "a proxy": Misuse(403, {"x-forwarded-for": "127.0.0.1"}),
    "a page elsewhere": Misuse(403, {"origin": "http://evil.org"}),
    "a page of another port": Misuse(403, {"origin": "http://127.0.0.1:9000"}),
    "a page of no origin": Misuse(403, {"origin": "null"}),
    "a page that names no origin": Misuse(403, {"sec-fetch-site": "cross-site"}),
    "a page of a sister site": Misuse(403, {"sec-fetch-site": "same-site"}),
}
OF_A_FORM = {
    "text": Misuse(415, type="text/plain"),
    "a form": Misuse(415, type="application/x-www-form-urlencoded"),
    "a form with files": Misuse(415, type="multipart/form-data; boundary=a"),
    "JSON in name only": Misuse(415, type="text/plain; application/json"),
}
WITH_A_TOKEN = {
    "a page elsewhere": Misuse(403, {"origin": "https://evil.org"}),
    "a page of no origin": Misuse(403, {"origin": "null"}),
    "a page that names no origin": Misuse(403, {"sec-fetch-site": "cross-site"}),
    "no token": Misuse(401, {"authorization": ""}),
    "a wrong token": Misuse(401, {"authorization": "Bearer dxml_wrong"}),
    "another scheme": Misuse(401, {"authorization": "Basic dXNlcjpwYXNz"}),
}


def ask(client: TestClient, route: tuple[str, str], headers: Headers, type: str | None) -> Any:
    """Ask a route what it takes, with these headers."""
    method, path = route
    content = json.dumps(BODIES[path]).encode() if path in BODIES else None
    path = path.replace("{id}", "doc/2").replace("{number}", "1")
    sent = {} if type is None else {"content-type": type}
    return client.request(method, path, content=content, headers=sent | headers)


def state(client: TestClient) -> tuple[Any, ...]:
    """What no refused request may change."""
    engine = client.app.state.service.engine  # type: ignore[attr-defined]
    return engine.served, engine.applied, engine.journal.last(), engine.loads


def test_every_route_that_changes_something_is_here(model: Path) -> None:
    listed = {
        (method.upper(), path)
        for path, methods in create_app(model).openapi()["paths"].items()
        for method in methods
        if method not in ("get", "head")
    }
    assert listed - ASKING == {route for route in NEEDED if "/v1/" not in route[1]}


def misused(client: TestClient, route: tuple[str, str], how: Misuse, headers: Headers) -> None:
    before = state(client)
    answer = ask(client, route, {**headers, **how.headers}, how.type)
    assert answer.status_code == how.status, f"{route}: {answer.text}"
    assert state(client) == before


@pytest.mark.parametrize("how", WITHOUT_TOKENS)
def test_without_tokens(model: Path, how: str) -> None:
    misuse = WITHOUT_TOKENS[how]
    with client_of(model, peer=misuse.peer) as client:
        for route in NEEDED:
            misused(client, route, misuse, {})


@pytest.mark.parametrize("how", OF_A_FORM)
def test_what_a_form_can_send(model: Path, how: str) -> None:
    with client_of(model) as open_to_this_machine, client_of(model, token="secret") as guarded:
        for route in NEEDED:
            if route[0] == "POST":  # no form sends DELETE
                misused(open_to_this_machine, route, OF_A_FORM[how], {})
                misused(guarded, route, OF_A_FORM[how], {"authorization": "Bearer secret"})
                if route[1] in BODIES:
                    misused(open_to_this_machine, route, Misuse(415, type=None), {})


@pytest.mark.parametrize("how", WITH_A_TOKEN)
def test_with_a_token(model: Path, how: str) -> None:
    with client_of(model, token="secret", host="a.org") as client:
        for route in NEEDED:
            misused(client, route, WITH_A_TOKEN[how], {"authorization": "Bearer secret"})


@pytest.mark.parametrize("route", NEEDED)
def test_each_role_and_nobody_below_it(model: Path, tmp_path: Path, route: Any) -> None:
    """The same request is taken where nothing is wrong with it."""
    file = tmp_path / "tokens.json"
    tokens = {role: new_token(file, role)[0] for role in ROLES}
    with client_of(model, tokens=file, host="a.org") as client:
        for role in ROLES:
            headers = {"authorization": f"Bearer {tokens[role]}"}
            if ROLES.index(role) < ROLES.index(NEEDED[route]):
                misused(client, route, Misuse(403), headers)
            else:
                assert ask(client, route, headers, "application/json").status_code in (
                    200,
                    204,
                    404,
                )
    with client_of(model) as client:  # where there are no tokens
        assert ask(client, route, {}, "application/json").status_code in (200, 204, 404)


def test_what_was_taught_is_shown_to_teachers_alone(model: Path, tmp_path: Path) -> None:
    """Lessons have texts that people sent."""
    file = tmp_path / "tokens.json"
    tokens = {role: new_token(file, role)[0] for role in ROLES}
    with client_of(model, tokens=file) as client:
        for path in ("/lessons", "/lessons/1", "/versions"):
            assert client.get(path).status_code == 401
            for role in ROLES:
                answer = client.get(path, headers={"authorization": f"Bearer {tokens[role]}"})
                assert (answer.status_code in (200, 404)) == (role != "read")
