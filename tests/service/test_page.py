"""The page's files and headers, and the map of a tagger whose groups of labels are planted."""

from __future__ import annotations

import json
import logging
import random
import re
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dxml.label_map import make_label_map
from dxml.service.engine import Engine
from dxml.service.errors import ServiceError
from dxml.service.label_maps import LabelMaps, map_content
from dxml.service.pages import SWAGGER
from dxml.tagging.tagger import TextTagger

from .conftest import TestClient, client_of

FILES = sorted(file.name for file in files("dxml.service").joinpath("page").iterdir())
GROUPS = [["Fish", "Sea", "Boat", "Harbour", "Net"], ["Soup", "Salt", "Pan", "Oven", "Menu"]]
ODD = '<b>"Tide" & </script> 海 \u202e'


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger whose texts have three labels of one group; one odd name goes with "Fish"."""
    rng = random.Random(0)
    chosen = [rng.sample(rng.choice(GROUPS), 3) for _ in range(90)]
    texts = [" ".join(name.lower() for name in names) for names in chosen]
    labels = [[*names, ODD] if "Fish" in names else names for names in chosen]
    tagger = TextTagger(device="cpu", candidates="nearest", width=0).fit(texts, labels)
    return tagger.save(tmp_path_factory.mktemp("grouped") / "tags")


@pytest.fixture(scope="module")
def group_client(grouped: Path) -> Iterator[TestClient]:
    with client_of(grouped) as client:
        yield client


def ask_for_map(client: TestClient, **headers: str) -> Any:
    deadline = time.monotonic() + 60
    while (answer := client.get("/map", headers=headers)).status_code == 202:
        assert answer.headers["retry-after"] == "1"
        message = "the map is being made; ask again in a second."
        assert answer.json() == {"message": message}
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return answer


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


def test_the_map_of_planted_groups(group_client: TestClient, grouped: Path) -> None:
    content = ask_for_map(group_client).json()
    names = content["names"]
    assert content["total"] == len(names) == 11
    assert content["points"] == sorted(content["points"], reverse=True)
    known = group_client.get("/labels").json()["labels"]
    assert dict(zip(names, content["points"], strict=True)) == {
        label["name"]: label["points"] for label in known
    }
    group = {name: i for i, row in enumerate(GROUPS) for name in row} | {ODD: 0}
    for name, related in zip(names, content["related"], strict=True):
        assert related and {group[names[i]] for i in related} == {group[name]}
    fish, odd = names.index("Fish"), names.index(ODD)
    assert content["related"][fish][0] == odd and content["related"][odd][0] == fish
    n = content["points"][fish]
    assert content["strength"][fish][0] == pytest.approx(n / (n + 2), abs=1e-3)
    places = np.array([content["x"], content["y"]]).T
    assert abs(places).max() <= 10_000
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    same = np.array([[group[a] == group[b] for b in names] for a in names])
    assert apart[same].mean() < 0.6 * apart[~same].mean()
    tagger = TextTagger.load(grouped)  # the same by another route
    order = [tagger.labels_.index(name) for name in names]
    expected = map_content(make_label_map(tagger.model.train_labels_[:, order]), names, 11)
    assert content == expected


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


def test_the_map_is_sent_once(group_client: TestClient) -> None:
    tag = ask_for_map(group_client).headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        again = group_client.get("/map", headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
    assert group_client.get("/map", headers={"If-None-Match": '"other"'}).status_code == 200


def test_predictions_are_answered_while_the_map_is_made(client: TestClient) -> None:
    assert client.get("/map").status_code == 202
    assert client.post("/predict", json={"text": "herring"}).status_code == 200
    assert client.get("/map").status_code == 202


def finished(maps: LabelMaps) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while (made := maps.current()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return dict(json.loads(made.content))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: starting another takes seconds."""
    monkeypatch.setattr(LabelMaps, "_run", lambda self, Y: make_label_map(Y))


@pytest.mark.usefixtures("at_once")
def test_only_the_most_frequent_labels_are_shown(grouped: Path, tmp_path: Path) -> None:
    engine = Engine(grouped, tmp_path / "journal.sqlite")
    content = finished(LabelMaps(engine, shown=4))
    assert content["total"] == 11
    known = engine.labels("")
    assert content["points"] == [n for _, n in known[:4]]
    assert all(0 <= i < 4 for row in content["related"] for i in row)
    engine.close()


@pytest.mark.usefixtures("at_once")
def test_a_model_loaded_again_gets_another_map(model: Path) -> None:
    engine = Engine(model)
    maps = LabelMaps(engine)
    before = finished(maps)
    engine.learn(["herring soup"], [["Fish soup"]])
    assert finished(maps) == before
    engine.reload()
    assert set(finished(maps)["names"]) - set(before["names"]) == {"Fish soup"}
    engine.forget(next(id for id in engine.served.ids if id.startswith("taught")))  # type: ignore[attr-defined]
    engine.reload()
    assert "Fish soup" not in finished(maps)["names"]  # a label without texts
    engine.close()


def test_a_map_that_fails_is_an_error(
    model: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("dxml.service.label_maps.sys.executable", "/bin/false")
    engine = Engine(model)
    maps = LabelMaps(engine)
    with pytest.raises(ServiceError, match="the map could not be made"):
        finished(maps)
    [record] = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert "ended with status 1" in str(record.exc_info)
    engine.close()
