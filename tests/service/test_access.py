"""Who may ask, and who may change the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dxml.service._access import check_write, host_name, is_loopback
from dxml.service._errors import ServiceError

from .conftest import TestClient, client_of, names_of

LOCAL = {"host": "localhost:8000"}
LESSON = {"texts": ["herring soup"], "labels": [["Fish soup"]]}


def changes(client: TestClient, **headers: str) -> Iterator[Any]:
    """Every route that changes something."""
    yield client.post("/learn", json=LESSON, headers=headers)
    yield client.post("/unlabel", json={"id": "doc/1", "label": "none"}, headers=headers)
    yield client.delete("/points/nobody", headers=headers)
    yield client.post("/reload", headers=headers)


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
    check_write(None, peer, LOCAL | headers)


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
        ("127.0.0.1", {"sec-fetch-site": "cross-site"}, "pages of other sites"),
    ],
)
def test_without_a_token_others_may_not_write(peer: str, headers: dict[str, str], why: str) -> None:
    with pytest.raises(ServiceError, match=why) as caught:
        check_write(None, peer, LOCAL | headers)
    assert caught.value.type == "forbidden"


def test_with_a_token_it_decides_alone() -> None:
    right = {"authorization": "Bearer secret", "host": "a.org", "x-forwarded-for": "192.0.2.7"}
    check_write("secret", "192.0.2.8", right)
    with pytest.raises(ServiceError, match="this needs the header"):
        check_write("secret", "127.0.0.1", LOCAL)
    with pytest.raises(ServiceError, match="pages of other sites"):
        check_write("secret", "127.0.0.1", right | {"sec-fetch-site": "cross-site"})


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


def test_two_hosts_are_a_bad_request(model: Path) -> None:
    with client_of(model) as client:
        both = [(b"host", b"localhost"), (b"host", b"evil.org")]
        assert client.get("/health", headers=both).status_code == 400


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
        headers = {"content-type": "Application/JSON; charset=utf-8"}
        assert client.post("/learn", content=b"{}", headers=headers).status_code == 422


def test_names_and_addresses_of_this_machine() -> None:
    assert is_loopback("::ffff:127.0.0.1") and not is_loopback("::ffff:192.0.2.7")
    assert host_name("[2001:db8::1]:80") == "2001:db8::1"
