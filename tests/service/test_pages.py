"""The page's files and the headers that they are served with."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from dxml.service._pages import SWAGGER

from .conftest import TestClient

FILES = sorted(file.name for file in files("dxml.service").joinpath("page").iterdir())


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_are_served_with_strict_headers(client: TestClient, path: str) -> None:
    page = client.get(path)
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.text.startswith("<!doctype html>")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'self';") and "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("name", FILES)
def test_every_file_has_its_type_and_tag(client: TestClient, name: str) -> None:
    types = {
        "html": "text/html",
        "css": "text/css",
        "js": "text/javascript",
        "svg": "image/svg+xml",
    }
    answer = client.get(f"/page/{name}")
    assert answer.headers["content-type"].partition(";")[0] == types[name.rpartition(".")[2]]
    assert answer.content == files("dxml.service").joinpath("page", name).read_bytes()
    again = client.get(f"/page/{name}", headers={"If-None-Match": f"W/{answer.headers['etag']}"})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == answer.headers["etag"]
    assert client.get(f"/page/{name}", headers={"If-None-Match": '"old"'}).status_code == 200


@pytest.mark.parametrize("name", sorted(SWAGGER))
def test_the_files_of_swagger_ui_are_served(client: TestClient, name: str) -> None:
    answer = client.get(f"/page/{name}")
    assert answer.content == files("fastapi_swagger.resources").joinpath(name).read_bytes()
    assert answer.headers["content-security-policy"].startswith("default-src 'self';")


@pytest.mark.parametrize("name", FILES)
def test_no_file_names_another_host_or_takes_markup(name: str) -> None:
    text = files("dxml.service").joinpath("page", name).read_text("utf-8")
    outside = re.findall(
        r"(?:https?:)?//[a-z0-9-]+\.[a-z]+\S*", text.replace("http://www.w3.org/2000/svg", "")
    )
    assert outside == []
    for dangerous in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert dangerous not in text
    if name.endswith(".html"):
        assert not re.search(
            r"\sstyle=|\son[a-z]+=|<style|<script(?! (?:defer|type=\"module\") src=)", text
        )


def test_every_file_that_is_named_exists_and_every_id_that_is_used() -> None:
    sources = {
        name: files("dxml.service").joinpath("page", name).read_text("utf-8") for name in FILES
    }
    reached: set[str] = set()
    for page in ("index.html", "docs.html"):
        waiting = [page]
        named: set[str] = set()
        while waiting:
            name = waiting.pop()
            named.add(name)
            found = re.findall(r'(?:="page/|from "\./)([\w.]+)"', sources[name])
            waiting += set(found) - named - SWAGGER
        for name in named:
            ids = set(re.findall(r'\bat\("([\w-]+)"\)', sources[name]))
            ids -= {"add-field"}  # made in lesson.js
            assert [id for id in ids if f'id="{id}"' not in sources[page]] == [], name
        reached |= named
    assert reached == set(FILES)


def test_what_is_not_there(client: TestClient) -> None:
    fastapis = ("/redoc", "/docs/oauth2-redirect")
    names = ("none.js", "..%2Fapp.py", "%2e%2e", "", "a%00", "__init__.py")
    for path in (*(f"/page/{name}" for name in names), *fastapis):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.json()["error"]["type"] == "not_found"


@pytest.mark.parametrize("path", ["/", "/page/map.js", "/openapi.json"])
def test_large_answers_are_compressed_where_asked(client: TestClient, path: str) -> None:
    plain = client.get(path, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    packed = client.get(path, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "Accept-Encoding"
    assert packed.content == plain.content
    small = client.get("/health", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers


def test_head_has_the_headers_of_get_and_no_content(client: TestClient) -> None:
    plain = {"Accept-Encoding": "identity"}
    for path in ("/", "/docs", "/page/map.js"):
        got, head = client.get(path, headers=plain), client.head(path, headers=plain)
        assert (head.status_code, head.content) == (200, b"")
        told = ("content-length", "content-type", "content-security-policy", "etag")
        assert [head.headers[name] for name in told] == [got.headers[name] for name in told]
