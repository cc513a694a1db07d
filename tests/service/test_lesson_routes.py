"""What a service was taught is listed, shown and taken back over HTTP; earlier models come back."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dxml._core.locking import folder_lock
from dxml._core.versions import keeping
from dxml.service import _lesson_routes as routes
from dxml.service import _reviewing as reviewing
from dxml.service._engine import Engine
from dxml.service._settling import apply_journal
from dxml.tagging import TextTagger

from .conftest import TestClient, client_of, names_of, wait_until
from .test_app import error_of

SOUP = {"texts": ["herring soup\nby hand"], "labels": [["Fish soup"]], "ids": ["a"]}


def numbers(client: TestClient, query: str = "") -> list[int]:
    return [each["number"] for each in client.get(f"/lessons{query}").json()["lessons"]]


def test_lessons_are_listed_newest_first_and_shown_in_full(client: TestClient) -> None:
    assert client.get("/lessons").json() == {"total": 0, "lessons": []}
    client.post("/learn", json=SOUP)
    client.post("/unlabel", json={"id": "a", "label": "Fish soup"})
    client.delete("/points/doc/3")
    page = client.get("/lessons").json()
    assert page["total"] == 3
    assert [each["summary"] for each in page["lessons"]] == [
        "forgot 'doc/3'",
        "took 'Fish soup' off 'a'",
        "learnt 'herring soup': Fish soup",
    ]
    assert all(each["pending"] and each["time"].startswith("20") for each in page["lessons"])
    assert numbers(client, "?limit=2") == [3, 2] and numbers(client, "?before=2") == [1]
    shown = client.get("/lessons/1").json()
    assert (shown["texts"], shown["labels"], shown["ids"]) == tuple(SOUP.values())
    kind, said = error_of(client.get("/lessons/9"), 404)
    assert (kind, said) == ("not_found", "there is no lesson 9.")
    assert error_of(client.get("/lessons/0"), 422)[0] == "invalid"
    assert error_of(client.get("/lessons?limit=0"), 422)[0] == "invalid"


def test_a_pending_lesson_is_as_if_it_had_never_been(client: TestClient) -> None:
    asked = {"text": "herring soup in the net", "top": 4}
    before = client.post("/predict", json=asked).json()
    client.post("/learn", json=SOUP)
    client.post("/learn", json=SOUP | {"labels": [["Other"]], "ids": ["b"]})
    assert client.delete("/lessons/2").json() == {
        "done": "took lesson 2 out of the journal: learnt 'herring soup': Other"
    }
    assert numbers(client) == [1]
    assert "Other" not in names_of(client, "herring soup", top=10)
    assert "Fish soup" in names_of(client, "herring soup", top=10)
    assert error_of(client.delete("/lessons/2"), 404)[0] == "not_found"
    client.delete("/lessons/1")
    assert client.post("/predict", json=asked).json() == before
    client.post("/learn", json=SOUP)
    assert "Fish soup" in names_of(client, "herring soup", top=10)


def test_other_workers_follow(model: Path, client: TestClient) -> None:
    other = Engine(model)
    try:
        client.post("/learn", json=SOUP)
        assert "Fish soup" in other.apply_pending().names
        client.delete("/lessons/1")
        wait_until(lambda: "Fish soup" not in other.apply_pending().names)
    finally:
        other.close()


def test_a_lesson_of_the_saved_model_is_taken_back_by_others(
    client: TestClient, model: Path
) -> None:
    client.post("/learn", json=SOUP)
    client.delete("/points/doc/3")
    apply_journal(model).save(model)
    assert [each["pending"] for each in client.get("/lessons").json()["lessons"]] == [False] * 2
    said = client.delete("/lessons/1").json()["done"]
    assert said == "lesson 1, learnt 'herring soup': Fish soup: took it back"
    assert "Fish soup" not in names_of(client, "herring soup", top=10)
    assert numbers(client) == [3, 2, 1]
    kind, said = error_of(client.delete("/lessons/2"), 409)
    assert kind == "conflict" and "the journal does not have the text 'doc/3'" in said


def test_who_is_writing_the_model_is_not_disturbed(
    client: TestClient, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post("/learn", json=SOUP)
    monkeypatch.setattr(reviewing, "PATIENCE", 0.05)
    monkeypatch.setattr(routes, "PATIENCE", 0.05)
    held, done = threading.Event(), threading.Event()

    def write() -> None:
        with folder_lock(model):
            held.set()
            done.wait()

    writer = threading.Thread(target=write)
    writer.start()
    held.wait()
    try:
        for answer in (client.delete("/lessons/1"), client.post("/versions/1/restore")):
            said = "another program is writing the model; try again later."
            assert error_of(answer, 503) == ("busy", said)
    finally:
        done.set()
        writer.join()
    assert numbers(client) == [1]


def test_an_earlier_model_comes_back_and_keeps_lessons(client: TestClient, model: Path) -> None:
    assert client.get("/versions").json() == {"versions": []}
    assert error_of(client.post("/versions/1/restore"), 404)[0] == "not_found"
    other = TextTagger.load(model).rename_label("Fishery", "Angling")
    with keeping(model, "renamed a label"):
        other.save(model)
    client.post("/reload")
    client.post("/learn", json=SOUP)
    assert names_of(client, "herring in the net") == ["Angling"]
    [version] = client.get("/versions").json()["versions"]
    assert (version["number"], version["note"]) == (1, "renamed a label")
    assert client.post("/versions/1/restore").json() == {"labels": 5, "points": 81}
    assert names_of(client, "herring in the net") == ["Fishery"]
    assert "Fish soup" in names_of(client, "herring soup", top=10)
    assert [each["number"] for each in client.get("/versions").json()["versions"]] == [1, 2]


def test_all_need_the_right_to_teach(model: Path) -> None:
    def answers(client: TestClient, headers: dict[str, str]) -> list[Any]:
        asked = ("/lessons", "/lessons/1", "/versions")
        return [
            *(client.get(path, headers=headers) for path in asked),
            client.delete("/lessons/1", headers=headers),
            client.post("/versions/1/restore", headers=headers),
        ]

    right = {"authorization": "Bearer secret"}
    with client_of(model, host="example.org", token="secret") as client:
        client.post("/learn", json=SOUP, headers=right)
        assert {error_of(each, 401)[0] for each in answers(client, {})} == {"unauthorized"}
        cross = right | {"sec-fetch-site": "cross-site"}
        assert {error_of(each, 403)[0] for each in answers(client, cross)} == {"forbidden"}
        assert [each.status_code for each in answers(client, right)] == [200, 200, 200, 200, 404]
    with client_of(model, peer="10.0.0.7") as client:
        assert {error_of(each, 403)[0] for each in answers(client, {})} == {"forbidden"}


def test_a_model_of_features_has_no_lessons(trained_joint: Path) -> None:
    with client_of(trained_joint) as client:
        assert client.get("/lessons").json() == {"total": 0, "lessons": []}
        frequency = np.asarray(client.app.state.service.engine.served.frequency)  # type: ignore[attr-defined]
        assert frequency.sum() > 0 and error_of(client.delete("/lessons/1"), 404)
