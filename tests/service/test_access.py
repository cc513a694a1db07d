"""Who may ask, and who may change the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dxml.exceptions import ParameterError
from dxml.service._access import Access, check_origins, host_name, is_loopback
from dxml.service._annif import annif_routes
from dxml.service._errors import ServiceError
from dxml.service._limits import Limits
from dxml.service._tokens import ROLES, Role, Tokens, new_token, revoke_token

from .conftest import TestClient, client_of, names_of

LOCAL = {"host": "localhost:8000"}
LESSON = {"texts": ["herring soup"], "labels": [["Fish soup"]]}


def changes(client: TestClient, **headers: str) -> Iterator[Any]:
    """Every route that changes something."""
    yield client.post("/learn", json=LESSON, headers=headers)
    yield client.post("/unlabel", json={"id": "doc/1", "label": "none"}, headers=headers)
    yield client.delete("/points/nobody", headers=headers)
    yield client.delete("/lessons/7", headers=headers)
    yield client.post("/labels/delete", json={"labels": ["none"]}, headers=headers)
    yield client.post("/reload", headers=headers)
    yield client.post("/versions/7/restore", headers=headers)


@pytest.mark.parametrize(
    ("peer", "headers"),
    [
        ("127.0.0.1", {}),
        ("::1", {"host": "[::1]:8000"}),
        ("::ffff:127.0.0.1", {"host": "127.0.0.1"}),
        ("127.0.0.1", {"origin": "http://localhost:8000", "sec-fetch-site": "same-origin"}),
        ("127.0.0.1", {"sec-fetch-site": "none"}),
    ],
)
def test_without_a_token_this_machine_may_write(peer: str, headers: dict[str, str]) -> None:
    assert Access().check_change("admin", peer, LOCAL | headers).name == "local"


@pytest.mark.parametrize(
    ("peer", "headers", "why"),
    [
        ("127.0.0.1", {"host": "example.org"}, "addressed to another name"),
        ("127.0.0.1", {"host": ""}, "addressed to another name"),
        ("192.0.2.7", {}, "comes from elsewhere"),
        ("", {}, "comes from elsewhere"),
        ("127.0.0.1", {"x-forwarded-for": "192.0.2.7"}, "'x-forwarded-for' tells of a proxy"),
        ("127.0.0.1", {"x-forwarded-host": "a.org"}, "'x-forwarded-host' tells of a proxy"),
        ("127.0.0.1", {"forwarded": "for=192.0.2.7"}, "'forwarded' tells of a proxy"),
        ("127.0.0.1", {"via": "1.1 a"}, "'via' tells of a proxy"),
        ("127.0.0.1", {"origin": "http://evil.org"}, "a page of another origin"),
        ("127.0.0.1", {"origin": "http://localhost:9000"}, "a page of another origin"),
        ("127.0.0.1", {"origin": "null"}, "a page of another origin"),
        ("127.0.0.1", {"sec-fetch-site": "same-site"}, "a page of another origin"),
        ("127.0.0.1", {"sec-fetch-site": "cross-site"}, "a page of another origin"),
    ],
)
def test_without_a_token_others_may_not_write(peer: str, headers: dict[str, str], why: str) -> None:
    with pytest.raises(ServiceError, match=why) as caught:
        Access().check_change("teach", peer, LOCAL | headers)
    assert caught.value.type == "forbidden"


def test_with_a_token_it_decides_alone() -> None:
    right = {"authorization": "Bearer secret", "host": "a.org", "x-forwarded-for": "192.0.2.7"}
    access = Access(Tokens("secret"))
    assert access.check_change("admin", "192.0.2.8", right).role == "admin"
    missing, unknown = "this needs the header", "this token is not known"
    wrong = dict.fromkeys(("", "Bearer", "Basic secret"), missing)
    wrong |= dict.fromkeys(("Bearer secre", "Bearer secret2", "Bearer Secret"), unknown)
    for given, told in wrong.items():
        with pytest.raises(ServiceError, match=told) as caught:
            access.check_change("teach", "127.0.0.1", LOCAL | {"authorization": given})
        assert caught.value.type == "unauthorized"


@pytest.mark.parametrize(
    ("headers", "taken"),
    [
        ({}, True),  # a program
        ({"origin": "https://a.org"}, True),  # its own page, behind a proxy with TLS
        ({"origin": "https://A.org"}, True),
        ({"origin": "https://a.org:444"}, False),
        ({"origin": "https://b.org"}, False),
        ({"origin": "null"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site", "origin": "https://b.a.org"}, False),
        ({"sec-fetch-site": "same-origin", "origin": "https://proxy.org"}, True),
        ({"sec-fetch-site": "cross-site", "origin": "https://friend.org"}, True),
        ({"sec-fetch-site": "cross-site", "origin": "https://friend.org.evil.org"}, False),
    ],
)
def test_a_token_from_a_page_of_another_origin(headers: dict[str, str], taken: bool) -> None:
    access = Access(Tokens("secret"), origins=["https://friend.org"])
    sent = {"authorization": "Bearer secret", "host": "a.org"} | headers
    if taken:
        access.check_change("teach", "192.0.2.8", sent)
        return
    with pytest.raises(ServiceError, match="pages of other sites.*--allow-origin") as caught:
        access.check_change("teach", "192.0.2.8", sent)
    assert caught.value.type == "forbidden"


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_each_role_may_do_its_own_and_what_those_before_it_may(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    token = {role: new_token(file, role, f"of-{role}")[0] for role in ROLES}
    may: dict[Role, list[int]] = {"read": [], "teach": [*range(5)], "admin": [*range(7)]}
    with client_of(model, tokens=file, host="a.org") as client:
        for role in ROLES:
            for i, answer in enumerate(changes(client, **bearer(token[role]))):
                assert (answer.status_code in (200, 404)) == (i in may[role]), answer.text
                if i not in may[role]:
                    error = answer.json()["error"]
                    assert (answer.status_code, error["type"]) == (403, "forbidden")
                    needed = "admin" if i > 4 else "teach"
                    assert f"role '{needed}', yours is of '{role}'" in error["message"]
        assert {answer.status_code for answer in changes(client)} == {401}
        assert names_of(client, "herring net") == ["Fishery"]  # asking needs none
        revoke_token(file, "of-teach")
        assert {answer.status_code for answer in changes(client, **bearer(token["teach"]))} == {401}
        file.write_text("{")
        assert {answer.status_code for answer in changes(client, **bearer(token["admin"]))} == {401}


def test_a_token_has_its_share_and_who_runs_the_service_has_all(
    model: Path, tmp_path: Path
) -> None:
    file = tmp_path / "tokens.json"
    desk, admin = (bearer(new_token(file, role, role)[0]) for role in ("teach", "admin"))
    annif = [{"text": "herring", "subjects": [{"label": "Music"}]}]
    with client_of(model, tokens=file, limits=Limits(share_points=2)) as client:
        assert client.post("/learn", json=LESSON, headers=desk).status_code == 200
        learn = "/v1/projects/tags/learn"
        assert client.post(learn, json=annif, headers=desk).status_code == 204
        for answer in (
            client.post("/learn", json=LESSON, headers=desk),
            client.post(learn, json=annif, headers=desk),
        ):
            assert answer.status_code == 409 and "the token 'teach' may teach 2" in answer.text
        for _ in range(3):
            assert client.post("/learn", json=LESSON, headers=admin).status_code == 200
        assert client.get("/health").json()["lessons"] == 5


def routes_of(client: TestClient) -> list[Any]:
    """All routes, those under /v1 too, which lie in a router of their own."""
    app: Any = client.app
    return [*app.routes, *annif_routes(app.state.service).routes]


ASKING = {"/predict", "/v1/projects/{project}/suggest", "/v1/projects/{project}/suggest-batch"}


def test_whatever_is_not_asking_needs_a_token(model: Path) -> None:
    """Also routes that are added later."""
    with client_of(model, token="secret") as client:
        refused = 0
        for route in routes_of(client):
            for method in (getattr(route, "methods", None) or set()) - {"GET", "HEAD"}:
                path = route.path.replace("{number}", "1").replace("{project}", "tags")
                answer = client.request(method, path.replace("{id:all}", "1"), json={})
                assert (answer.status_code == 401) == (route.path not in ASKING), route.path
                refused += answer.status_code == 401
        assert refused >= 10


OPEN = {"/", "/docs", "/page/{name}", "/health", "/openapi.json"}


def test_a_private_service_answers_to_tokens_alone(model: Path, tmp_path: Path) -> None:
    """Every route that there is or will be, but for a few."""
    file = tmp_path / "tokens.json"
    token, _ = new_token(file, "read")
    with client_of(model, tokens=file, private=True) as client:
        asked = 0
        for route in routes_of(client):
            for method in getattr(route, "methods", ()) or ():
                path = route.path.replace("{name}", "app.js").replace("{id:all}", "1")
                path = path.replace("{project}", "tags")
                answer = client.request(method, path)
                assert (answer.status_code == 401) == (route.path not in OPEN), route.path
                asked += 1
        assert asked > 15
        assert (
            client.post("/predict", json={"text": "a"}, headers=bearer("none")).status_code == 401
        )
        with_it = bearer(token)
        assert client.post("/predict", json={"text": "a"}, headers=with_it).status_code == 200
        assert client.get("/labels", headers=with_it).status_code == 200
        assert client.post("/learn", json=LESSON, headers=with_it).status_code == 403
    with pytest.raises(ParameterError, match="a private service needs a token"):
        client_of(model, private=True)


def test_pages_of_other_origins_read_nothing_unless_allowed(model: Path) -> None:
    page = {"origin": "https://friend.org"}
    asking = page | {
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type,authorization",
    }
    allowed = "access-control-allow-origin"
    with client_of(model) as client:
        assert allowed not in client.get("/labels", headers=page).headers
        assert client.options("/predict", headers=asking).status_code == 405
    with client_of(model, origins=["https://friend.org"], token="secret") as client:
        assert client.get("/labels", headers=page).headers[allowed] == "https://friend.org"
        assert client.options("/predict", headers=asking).status_code == 200
        evil = {"origin": "https://evil.org"}
        assert allowed not in client.get("/labels", headers=evil).headers
        assert client.options("/predict", headers=asking | evil).status_code == 400
        answer = client.post("/learn", json=LESSON, headers=page | bearer("secret"))
        assert (answer.status_code, answer.headers[allowed]) == (200, "https://friend.org")
        assert "access-control-allow-credentials" not in answer.headers
    with client_of(model, origins=["https://friend.org"]) as client:  # no token: no changes
        assert client.post("/learn", json=LESSON, headers=page).status_code == 403


@pytest.mark.parametrize("origin", ["friend.org", "https://friend.org/", "null", "ftp://a", ""])
def test_what_is_no_origin(origin: str) -> None:
    check_origins(["*", "http://[::1]:3000", "https://friend.org"])
    with pytest.raises(ParameterError, match="an origin is a scheme, a name and maybe a port"):
        check_origins([origin])


@pytest.mark.parametrize(
    ("peer", "headers"),
    [
        ("192.0.2.7", {}),
        ("127.0.0.1", {"x-forwarded-for": "127.0.0.1"}),
        ("127.0.0.1", {"origin": "http://evil.org"}),
        ("127.0.0.1", {"sec-fetch-site": "cross-site"}),
    ],
)
def test_every_change_is_refused(model: Path, peer: str, headers: dict[str, str]) -> None:
    with client_of(model, peer=peer) as client:
        for answer in changes(client, **headers):
            assert answer.status_code == 403, answer.text
            assert answer.json()["error"]["type"] == "forbidden"
        assert names_of(client, "herring net") == ["Fishery"]
        assert client.get("/health").json()["lessons"] == 0


@pytest.mark.parametrize("host", ["evil.org", "127.0.0.1.evil.org", "localhost.evil.org:80"])
def test_a_name_that_is_not_the_services_is_refused(model: Path, host: str) -> None:
    """A page whose name points to 127.0.0.1 cannot read either."""
    asked = {"host": host}
    with client_of(model, token="secret", hosts=["tags.org"]) as client:
        for path in ("/", "/labels", "/health", "/map", "/openapi.json", "/metrics"):
            answer = client.get(path, headers=asked)
            assert answer.status_code == 403, path
            assert "--allow-host" in answer.json()["error"]["message"]
        assert client.post("/predict", json={"text": "a"}, headers=asked).status_code == 403
        for name in ("TAGS.org", "tags.org.:8000", "localhost", "127.0.0.1:1", "[::1]"):
            assert client.get("/health", headers={"host": name}).status_code == 200, name


def test_which_names_are_taken_by_default(model: Path) -> None:
    asked = {"host": "a.org"}
    with client_of(model) as client:
        assert client.get("/health", headers=asked).status_code == 403
    with client_of(model, token="secret") as client:
        assert client.get("/health", headers=asked).status_code == 200


@pytest.mark.parametrize(
    "host", ["local host", "a.org:b", "[::1", "a.org:1:2", "a/b", "ü.org", "@"]
)
def test_a_host_that_is_no_name_is_a_bad_request(model: Path, host: str) -> None:
    with client_of(model, hosts=["*"]) as client:
        headers = [(b"host", host.encode())]
        for answer in (
            client.get("/health", headers=headers),
            client.post("/reload", headers=headers),
        ):
            assert answer.status_code == 400, answer.text
            assert answer.json()["error"]["type"] == "bad_request"


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("Host", "localhost", "evil.org"),
        ("Origin", "http://localhost", "http://evil.org"),
        ("Sec-Fetch-Site", "same-origin", "cross-site"),
        ("Authorization", "Bearer one", "Bearer two"),
        ("Content-Type", "application/json", "text/plain"),
    ],
)
def test_what_decides_may_not_stand_twice(model: Path, name: str, first: str, second: str) -> None:
    """A proxy before the service may have read the other one."""
    with client_of(model) as client:
        both = [(name.lower().encode(), value.encode()) for value in (first, second)]
        if name != "Host":
            both.append((b"host", b"localhost"))
        for answer in (client.get("/health", headers=both), client.post("/reload", headers=both)):
            assert answer.status_code == 400
            assert (
                answer.json()["error"]["message"] == f"the header {name!r} stands more than once."
            )


def test_changes_are_sent_as_json(model: Path) -> None:
    with client_of(model) as client:
        for type in ("application/x-www-form-urlencoded", "text/plain", ""):
            for path in ("/learn", "/unlabel"):
                headers = {"content-type": type} if type else {}
                answer = client.post(path, content=b"{}", headers=headers)
                assert answer.status_code == 415
                error = answer.json()["error"]
                assert error["type"] == "unsupported_type"
                assert "'Content-Type: application/json'" in error["message"]
        for type in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data"):
            for path in ("/reload", "/versions/7/restore"):
                assert client.post(path, headers={"content-type": type}).status_code == 415
        assert client.post("/reload").status_code == 200
        headers = {"content-type": "Application/JSON; charset=utf-8"}
        assert client.post("/learn", content=b"{}", headers=headers).status_code == 422


def test_names_and_addresses_of_this_machine() -> None:
    assert is_loopback("::ffff:127.0.0.1") and not is_loopback("::ffff:192.0.2.7")
    assert host_name("[2001:db8::1]:80") == "2001:db8::1"
