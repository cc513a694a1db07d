"""Annif's interface: asked by Annif's own client, and by hand where that is too polite."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from annif_client import AnnifClient

from dxml.service import _annif
from dxml.service.app import create_app
from dxml.tagging import TextTagger, read_thesaurus

from .conftest import TestClient, at_a_port, client_of, make_texts

URIS = {"Fishery": "http://x.org/v/1", "Kitchen": "http://x.org/v/2"}
TOO_LONG = "a text may have 100,000 characters"


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger of subjects, two of which have a URI."""
    texts, labels = make_texts(80)
    table = {"name": list(URIS), "uri": list(URIS.values()), "notation": ["597", ""]}
    tagger = TextTagger(device="cpu", candidates="nearest", width=0)
    tagger.fit(texts, labels, label_info=table)
    return tagger.save(tmp_path_factory.mktemp("annif") / "subjects")


@pytest.fixture
def annif(subjects: Path) -> Iterator[AnnifClient]:
    """Annif's client, and a service at a port of this machine."""
    app = create_app(subjects, journal=subjects.parent / "journal.sqlite")
    with at_a_port(app) as address:
        yield AnnifClient(f"{address}/v1/")


def test_annifs_client_asks_and_teaches(annif: AnnifClient) -> None:
    assert "dxml" in annif.api_info["title"]
    [project] = annif.projects
    assert (project["project_id"], project["is_trained"]) == ("subjects", True)
    assert annif.get_project("subjects") == project
    best, *others = annif.suggest("subjects", "herring in a net", limit=3)
    assert best["label"] == "Fishery" and best["score"] > 0.5
    assert (best["uri"], best["notation"]) == ("http://x.org/v/1", "597")
    assert len(others) == 2 and all(best["score"] >= each["score"] for each in others)
    roads = annif.suggest("subjects", "asphalt and gravel", limit=1)[0]
    assert roads == {**roads, "uri": "Roads", "label": "Roads", "notation": None}
    assert len(annif.suggest("subjects", "herring", threshold=0.5)) == 1
    documents = [{"text": "opera violin", "document_id": "a"}, {"text": "soup and salt"}]
    first, second = annif.suggest_batch("subjects", documents, limit=1)
    assert (first["document_id"], first["results"][0]["label"]) == ("a", "Music")
    assert (second["document_id"], second["results"][0]["label"]) == (None, "Kitchen")
    lesson = {"text": "zebra", "subjects": [{"uri": "http://x.org/v/2"}, {"label": "Zoo"}]}
    assert annif.learn("subjects", [lesson]).status_code == 204
    found = {each["label"] for each in annif.suggest("subjects", "zebra", limit=2)}
    assert found == {"Kitchen", "Zoo"}, "the URI meant a subject of the vocabulary"
    with pytest.raises(ValueError, match="Project 'other' not found"):
        annif.suggest("other", "text")


@pytest.mark.parametrize(
    ("path", "sent", "status", "detail"),
    [
        ("suggest", {"data": {"limit": "3"}}, 400, "the field 'text' is missing."),
        (
            "suggest",
            {"data": {"text": "a", "limit": "x"}},
            400,
            "limit must be a number from 0 to 1000.",
        ),
        (
            "suggest-batch?threshold=2",
            {"json": {"documents": [{"text": "a"}]}},
            400,
            "threshold must be a number from 0 to 1.",
        ),
        ("suggest-batch", {"content": b"{"}, 400, "the body is no JSON in UTF-8, or has a number"),
        ("suggest-batch", {"json": [1]}, 400, "expected a list of documents, each with a 'text'."),
        ("learn", {"json": [{"text": "a"}]}, 400, "expected a list of 'subjects' with each docum"),
        (
            "learn",
            {"json": [{"text": "a", "subjects": [{}]}]},
            400,
            "expected a 'uri' or a",
        ),
        (
            "learn",
            {"content": b"[]"},
            415,
            "this needs the header 'Content-Type",
        ),
        ("suggest", {"data": {"text": "a" * 100_001}}, 413, f"{TOO_LONG}, text 1 has 100,001."),
        ("suggest", {"content": b"text=" + b"%" * 1_300_000}, 413, f"{TOO_LONG}."),
    ],
)
def test_errors_have_annifs_shape(
    client: TestClient, path: str, sent: dict[str, object], status: int, detail: str
) -> None:
    answer = client.post(f"/v1/projects/tags/{path}", **sent)  # type: ignore[arg-type]
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    said = answer.json()
    assert said["status"] == status and said["detail"].startswith(detail), said


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_no_answer_can_hold_a_number_that_is_not_finite(client: TestClient, number: str) -> None:
    sent = f'{{"documents": [{{"text": "herring", "document_id": {number}}}]}}'
    answer = client.post("/v1/projects/tags/suggest-batch", content=sent)
    assert (answer.status_code, answer.json()["status"]) == (400, 400)


def test_values_that_cannot_be_counted_are_not_parsed(client: TestClient) -> None:
    """In UTF-16 a quotation mark that is escaped would end a string for who counts the values."""
    sent = json.dumps({"documents": [{"text": '"', "more": [1] * 300_000}]})
    for content, status in ((sent.encode(), 413), (sent.encode("utf-16"), 400)):
        answer = client.post("/v1/projects/tags/suggest-batch", content=content)
        assert answer.status_code == status
    small = '{"documents": []}'.encode("utf-8-sig")
    assert client.post("/v1/projects/tags/suggest-batch", content=small).json() == []


@pytest.mark.parametrize(
    ("parse", "path", "sent"),
    [
        ("_form", "suggest", {"data": {"text": "x" * 70_000}}),
        ("_json", "suggest-batch", {"json": {"documents": [{"text": "x" * 70_000}]}}),
        ("_json", "learn", {"json": [{"text": "x" * 70_000, "subjects": [{"label": "x"}]}]}),
    ],
)
def test_others_are_answered_while_a_large_body_is_read(
    client: TestClient,
    monkeypatch: pytest.MonkeyPatch,
    parse: str,
    path: str,
    sent: dict[str, object],
) -> None:
    reading, answered, real = threading.Event(), threading.Event(), getattr(_annif, parse)

    def slow(body: bytes) -> object:
        reading.set()
        assert answered.wait(20)
        return real(body)

    monkeypatch.setattr(_annif, parse, slow)
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(client.post, f"/v1/projects/tags/{path}", **sent)  # type: ignore[arg-type]
        assert reading.wait(20)
        assert client.get("/health").json()["status"] == "ok"
        answered.set()
        assert asked.result().status_code in (200, 204)


def test_others_may_ask_but_not_teach(model: Path, trained_joint: Path) -> None:
    lesson = [{"text": "zebra", "subjects": [{"label": "Zoo"}]}]
    with client_of(model, host="a.org", peer="10.0.0.1", token="secret") as client:
        assert client.post("/v1/projects/tags/suggest", data={"text": "herring"}).status_code == 200
        refused = client.post("/v1/projects/tags/learn", json=lesson)
        assert refused.status_code == 401
        key = {"Authorization": "Bearer secret"}
        done = client.post("/v1/projects/tags/learn", json=lesson, headers=key)
        assert done.status_code == 204 and done.content == b""
    with client_of(trained_joint) as client:
        answer = client.post("/v1/projects/m/suggest", data={"text": "herring"})
        assert answer.status_code == 409


def test_nothing_is_answered_to_nothing(client: TestClient) -> None:
    asked = client.post("/v1/projects/tags/suggest", data={"text": "herring", "limit": "0"})
    assert asked.json() == {"results": []}
    assert client.post("/v1/projects/tags/suggest-batch", json={"documents": []}).json() == []
    assert client.post("/v1/projects/tags/learn", json=[]).status_code == 204


GERMAN = ["Der Hering im Netz und nicht auf dem Land", "Die Suppe mit Salz und nicht die kalte"]


@pytest.mark.parametrize(
    ("texts", "info", "language", "vocab_language"),
    [
        (GERMAN, None, "de", "de"),
        (GERMAN, {"name_en": ["Fishery", "Kitchen"]}, "de", "en"),
        (["herring net", "soup salt"], {"name_fi": ["Fishery", "Kitchen"]}, "und", "fi"),
        (["herring net", "soup salt"], None, "und", "und"),
    ],
)
def test_the_project_has_its_language(
    texts: list[str],
    info: dict[str, list[str]] | None,
    language: str,
    vocab_language: str,
    tmp_path: Path,
) -> None:
    known = None
    if info is not None:
        known = read_thesaurus(info, language=next(iter(info)).removeprefix("name_"))
    tagger = TextTagger(device="cpu", width=0)
    tagger.fit(texts * 10, [["Fishery"], ["Kitchen"]] * 10, label_info=known)
    with client_of(tagger.save(tmp_path / "m")) as client:
        [project] = client.get("/v1/projects").json()["projects"]
    assert (project["language"], project["vocab_language"]) == (language, vocab_language)
    assert project["vocab"]["languages"] == [vocab_language]


def test_features_have_no_language(trained_joint: Path) -> None:
    with client_of(trained_joint) as client:
        [project] = client.get("/v1/projects").json()["projects"]
    assert {project["language"], project["vocab_language"]} == {"und"}
