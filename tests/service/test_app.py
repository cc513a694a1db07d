"""The routes, with a model whose right answers are planted."""

from __future__ import annotations

import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from pydantic import ValidationError

from dxml.joint import Joint
from dxml.service import _runtime as runtime
from dxml.service import _schemas as schemas
from dxml.service._engine import Engine
from dxml.service._limits import Limits
from dxml.tagging._tagger import TextTagger

from .conftest import TestClient, client_of, make_texts, names_of


def error_of(answer: Any, status: int) -> tuple[str, str]:
    """An error's type and message; nothing else may be in the body."""
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    assert sorted(answer.json()["error"]) == ["message", "type"]
    return answer.json()["error"]["type"], answer.json()["error"]["message"]


def test_predict_equals_the_tagger(client: TestClient, model: Path) -> None:
    tagger = TextTagger.load(model)
    texts = make_texts(5, seed=1)[0]
    answer = client.post("/predict", json={"text": texts, "top": 3}).json()
    assert [len(row["labels"]) for row in answer["results"]] == [3] * 5
    for row, tags in zip(answer["results"], tagger.tag(texts, top=3), strict=True):
        assert [label["name"] for label in row["labels"]] == [tag.name for tag in tags]
        assert [label["probability"] for label in row["labels"]] == pytest.approx(
            [tag.probability for tag in tags], abs=1e-6
        )
    one = client.post("/predict", json={"text": texts[0], "top": 3}).json()
    assert one["results"] == answer["results"][:1]


def test_threshold_and_explain(client: TestClient, model: Path) -> None:
    asked = {"text": "herring in the net", "top": 4, "threshold": 0.5, "explain": True}
    [result] = client.post("/predict", json=asked).json()["results"]
    assert [label["name"] for label in result["labels"]] == ["Fishery"]
    [why] = result["explanations"]
    assert {word for word, _ in why["words"][:2]} == {"herring", "net"}
    assert why["from_head"] + why["from_neighbours"] == pytest.approx(1)
    assert why["neighbours"][0]["labels"] == ["Fishery"]
    none = client.post("/predict", json=asked | {"threshold": 1, "explain": False}).json()
    assert none == {"results": [{"labels": []}]}


def test_what_is_taught_is_predicted_and_can_be_forgotten(client: TestClient) -> None:
    lesson = {"texts": ["herring soup"] * 2, "labels": [["Fish soup"]] * 2, "ids": ["a", "b/c"]}
    answer = client.post("/learn", json=lesson)
    assert answer.json() == {
        "learnt": 2,
        "ids": ["a", "b/c"],
        "new_labels": ["Fish soup"],
        "without_known_words": [],
        "outside_vocabulary": [],
    }
    assert names_of(client, "soup of herring") == ["Fish soup"]
    assert client.get("/labels?query=SOUP").json()["labels"] == [{"name": "Fish soup", "points": 2}]
    assert client.delete("/points/a").status_code == 204
    assert client.delete("/points/b%2Fc").status_code == 204
    assert "Fish soup" not in names_of(client, "soup of herring", top=10)
    assert client.get("/labels?query=soup").json()["total"] == 0
    kind, message = error_of(client.delete("/points/a"), 404)
    assert (kind, message) == ("not_found", "there is no text with the id 'a'.")


@pytest.mark.parametrize("explain", [False, True])
def test_a_text_of_which_nothing_is_known_is_flagged(client: TestClient, explain: bool) -> None:
    asked = {"text": ["zzyzx", "herring"], "top": 1, "explain": explain}
    first, second = client.post("/predict", json=asked).json()["results"]
    assert first["nothing_known"] is True and len(first["labels"]) == 1
    assert "nothing_known" not in second


def test_texts_without_a_word_are_named(client: TestClient) -> None:
    lesson = {"texts": ["?!", "zzyzx"], "labels": [["Fishery"]] * 2, "ids": ["u", "v"]}
    assert client.post("/learn", json=lesson).json()["without_known_words"] == ["u"]


def test_labels_outside_the_vocabulary_are_named_and_learnt(tmp_path: Path) -> None:
    tagger = TextTagger(min_df=1)
    known = {"name": ["Fishery", "Music", "Opera"], "alternatives": ["fishing", "", ""]}
    tagger.fit(["herring", "nets", "songs", "arias"], [["Fishery"]] * 2 + [["Music"]] * 2,
               label_info=known)  # fmt: skip
    lesson = {"texts": ["herring soup"], "labels": [["Soup", "fishing", "Opera"]], "ids": ["a"]}
    with client_of(tagger.save(tmp_path / "m")) as client:
        done = client.post("/learn", json=lesson).json()
        assert done["outside_vocabulary"] == ["Soup"]
        assert done["new_labels"] == ["Opera", "Soup"]
        assert "Soup" in names_of(client, "herring soup", top=4)


def test_an_id_is_all_of_a_path(client: TestClient) -> None:
    ids = ["a", "a\n", "a\r\nb/c", "\0"]
    client.post("/learn", json={"texts": ["zebra"] * 4, "labels": [["Zoo"]] * 4, "ids": ids})
    for id in reversed(ids):
        points = client.get("/health").json()["points"]
        assert client.delete(f"/points/{quote(id, safe='')}").status_code == 204
        assert client.delete(f"/points/{quote(id, safe='')}").status_code == 404
        assert client.get("/health").json()["points"] == points - 1


def test_ids_are_made_up_and_known_ones_replaced(client: TestClient) -> None:
    lesson = {"texts": ["herring soup", "opera bridge"], "labels": [["Fish soup"], ["Odd"]]}
    first, second = client.post("/learn", json=lesson).json()["ids"]
    assert first != second and first.startswith("taught-")
    points = client.get("/health").json()["points"]
    again = {"texts": ["herring soup"], "labels": [["Other"]], "ids": [first]}
    assert client.post("/learn", json=again).json()["new_labels"] == ["Other"]
    assert client.get("/health").json()["points"] == points == 82
    names = names_of(client, "soup of herring", top=10)
    assert "Other" in names and "Fish soup" not in names


def test_a_wrong_label_is_taken_off(client: TestClient) -> None:
    lesson = {"texts": ["herring soup"], "labels": [["Fish/soup", "Opera"]], "ids": ["a/b"]}
    client.post("/learn", json=lesson)
    off = {"id": "a/b", "label": "Fish/soup"}
    assert client.post("/unlabel", json=off).status_code == 204
    names = names_of(client, "soup of herring", top=10)
    assert "Opera" in names and "Fish/soup" not in names
    assert client.get("/labels?query=fish/").json()["total"] == 0
    said = "the text 'a/b' does not carry the label 'Fish/soup'."
    assert error_of(client.post("/unlabel", json=off), 404) == ("not_found", said)
    kind, said = error_of(client.post("/unlabel", json={"id": "no", "label": "Opera"}), 404)
    assert (kind, said) == ("not_found", "there is no text with the id 'no'.")
    assert error_of(client.post("/unlabel", json={"id": "a/b"}), 422)[0] == "invalid"
    assert client.get("/health").json()["lessons"] == 2


def test_labels_are_paged_by_frequency(client: TestClient) -> None:
    everything = client.get("/labels").json()
    assert everything["total"] == 4
    counts = [label["points"] for label in everything["labels"]]
    assert counts == sorted(counts, reverse=True) and sum(counts) == 80
    page = client.get("/labels?offset=1&limit=2").json()
    assert page == {"total": 4, "offset": 1, "labels": everything["labels"][1:3]}
    assert [label["name"] for label in client.get("/labels?query=mUs").json()["labels"]] == [
        "Music"
    ]


def test_health_and_openapi(client: TestClient) -> None:
    health = client.get("/health").json()
    assert health.pop("version")
    assert health == {"status": "ok", "takes": "text", "labels": 4, "points": 80, "lessons": 0}
    paths = client.get("/openapi.json").json()["paths"]
    reading = {"/health", "/labels", "/map", "/metrics", "/predict", "/thresholds"}
    teaching = {"/learn", "/points/{id}", "/unlabel", "/lessons", "/lessons/{number}"}
    labels = {"/labels/rename", "/labels/merge", "/labels/delete"}
    running = {"/reload", "/versions", "/versions/{number}/restore"}
    assert set(paths) == reading | teaching | labels | running


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({}, "give 'text' or 'features', one of them, not empty"),
        ({"text": []}, "give 'text' or 'features'"),
        ({"text": "a", "features": {"1": 1}}, "give 'text' or 'features'"),
        ({"features": {"1": 1}}, "this model takes texts: give 'text', not 'features'"),
        ({"text": "a", "top": 0}, "top: "),
        ({"text": "a", "top": True}, "top: a number is needed, without quotation marks."),
        ({"text": "a", "top": "5"}, "top: a number is needed, without quotation marks."),
        ({"text": "a", "threshold": "0.5"}, "threshold: a number is needed, without"),
        ({"text": "a", "threshold": False}, "threshold: a number is needed, without"),
        ({"text": "a", "explain": "yes"}, "explain: true or false is needed, without"),
        ({"text": "a", "explain": 1}, "explain: true or false is needed, without"),
        ({"features": {"1": "2"}}, "features.1: a number is needed, without"),
        ({"features": [[True, 2]]}, "features: "),
        ({"text": "a", "tpo": 1}, "tpo: "),
        ({"text": 3}, "text: Input should be a valid string"),
        ({"text": "a", "threshold": 2}, "threshold: Input should be less than or equal to 1"),
        ({"text": "a", "threshold": -0.1}, "threshold: Input should be greater than or equal to 0"),
    ],
)
def test_wrong_requests(client: TestClient, sent: dict[str, Any], message: str) -> None:
    kind, said = error_of(client.post("/predict", json=sent), 422)
    assert kind == "invalid"
    assert said.startswith(message)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({"texts": ["a"], "labels": []}, "there are 1 texts but 0 of labels."),
        ({"texts": ["a"], "labels": [["x"]], "ids": []}, "there are 1 texts but 0 of ids."),
        ({"texts": ["a"], "labels": [[""]]}, "a label must have a character at least."),
        (
            {"texts": ["a", "b"], "labels": [[], []], "ids": ["i", "i"]},
            "an id stands twice. Give every text another id.",
        ),
    ],
)
def test_wrong_lessons_are_not_kept(client: TestClient, sent: dict[str, Any], message: str) -> None:
    assert error_of(client.post("/learn", json=sent), 422) == ("invalid", message)
    assert client.get("/health").json()["lessons"] == 0


def test_other_errors_have_the_same_shape(client: TestClient) -> None:
    assert error_of(client.get("/nothing"), 404)[0] == "not_found"
    assert error_of(client.get("/predict"), 405)[0] == "method_not_allowed"
    kind, _ = error_of(
        client.post("/predict", content=b"{", headers={"content-type": "application/json"}), 422
    )
    assert kind == "invalid"
    lone = client.post(
        "/learn",
        content=b'{"texts": ["a"], "labels": [["\\ud800"]]}',
        headers={"content-type": "application/json"},
    )
    assert error_of(lone, 422)[0] == "invalid"


@pytest.mark.parametrize("path", ["/", "/docs", "/page/index.html", "/health"])
def test_only_the_head_of_an_answer(client: TestClient, path: str) -> None:
    plain = {"Accept-Encoding": "identity"}  # the length of compressed content is not known ahead
    head, whole = client.head(path, headers=plain), client.get(path, headers=plain)
    assert head.status_code == whole.status_code == 200
    assert head.headers["content-length"] == whole.headers["content-length"]


def test_half_a_character_in_a_request(client: TestClient) -> None:
    for path, sent in (
        ("/predict", b'{"text": "\\ud800"}'),
        ("/unlabel", b'{"id": "\\udfff", "label": "a"}'),
        ("/learn", b'{"texts": ["\\ud800"], "labels": [["a"]]}'),
    ):
        headers = {"content-type": "application/json"}
        assert error_of(client.post(path, content=sent, headers=headers), 422)[0] == "invalid"
    assert client.get("/labels?query=%ED%A0%80").status_code == 200
    assert error_of(client.delete("/points/%ED%A0%80"), 404)[0] == "not_found"


def test_another_method_is_told_all_that_may_be_used(client: TestClient) -> None:
    for path, methods in (("/lessons/1", "DELETE, GET"), ("/health", "GET, HEAD")):
        answer = client.put(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods)


@pytest.mark.parametrize("path", ["/predict", "/learn", "/unlabel", "/v1/projects/tags/learn"])
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\x00",
        b"\xff\xfe",
        b"NaN",
        b"[" * 100_000,
        b'{"text":' * 50_000,
        b'{"texts": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"text": "a", "threshold": NaN}',
        b'{"features": {"1": Infinity}}',
        b'{"features": [[1, -Infinity]]}',
        b'{"features": {"1": 1e999}}',
        b'{"text": "a", "top": ' + b"9" * 5000 + b"}",
        b'{"features": {"' + b"9" * 5000 + b'": 1}}',
        b'{"text": "a\x00b"}',
        b'{"text": "a", "text": 1}',
        b'[{"text": "\\ud800", "subjects": []}]',
        b'[{"text": "a", "subjects": [{"label": "\\udfff"}]}]',
    ],
)
def test_what_no_program_should_send(client: TestClient, path: str, sent: bytes) -> None:
    answer = client.post(path, content=sent, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 413, 422), answer.text
    assert len(answer.content) < 10_000
    assert client.get("/health").json()["lessons"] == 0


def test_a_nul_is_a_character_like_others(client: TestClient) -> None:
    lesson = {"texts": ["herring\0soup"] * 2, "labels": [["Fish\0soup"]] * 2, "ids": ["a\0", "b"]}
    assert client.post("/learn", json=lesson).json()["ids"] == ["a\0", "b"]
    assert names_of(client, "soup\0herring") == ["Fish\0soup"]
    found = client.get("/labels", params={"query": "h\0s"}).json()["labels"]
    assert [label["name"] for label in found] == ["Fish\0soup"]
    assert client.delete("/points/a%00").status_code == 204


def test_half_a_character_in_a_model(tmp_path: Path) -> None:
    """Tables with such names are refused, but a tagger can be trained without a table."""
    texts, labels = make_texts(40)
    odd = [["Half \ud800" if name == "Fishery" else name for name in row] for row in labels]
    tagger = TextTagger(device="cpu", candidates="nearest", width=0).fit(texts, odd)
    with client_of(tagger.save(tmp_path / "m")) as client:
        assert names_of(client, "herring net") == ["Half \ud800"]
        [label] = client.get("/labels?query=half").json()["labels"]
        assert label["name"] == "Half \ud800"


def test_an_unexpected_error_is_told_without_details(model: Path) -> None:
    app = client_of(model).app
    client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
    with client, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "labels", lambda self, query: 1 / 0)
        kind, message = error_of(client.get("/labels"), 500)
    assert kind == "internal"
    assert "zero" not in message


def test_limits(model: Path) -> None:
    limits = Limits(
        body_bytes=2000, batch=3, text_chars=50, name_chars=9, top=7, explained=1, labels=2
    )
    with client_of(model, limits=limits) as client:
        for sent, message in (
            ({"text": "x" * 3000}, "a body may have 2,000 bytes."),
            ({"text": ["x"] * 4}, "at most 3 in a request, got 4."),
            ({"text": ["x", "y" * 51]}, "a text may have 50 characters, text 2 has 51."),
            ({"text": "x", "top": 8}, "top may be 7, got 8."),
            ({"text": ["x", "y"], "explain": True}, "1 texts can be explained at once, got 2."),
        ):
            answer = client.post("/predict", json=sent)
            assert error_of(answer, 413) == ("too_large", message)
        stream = client.post("/predict", content=iter([b"x" * 1500] * 2))  # no length declared
        assert error_of(stream, 413)[0] == "too_large"
        lesson = {"texts": ["x"], "labels": [["n" * 10]]}
        message = "a label may have 9 characters: nnnnnnnnnn…"
        assert error_of(client.post("/learn", json=lesson), 413) == ("too_large", message)
        lesson = {"texts": ["x", "y"], "labels": [[], ["a", "b", "c"]]}
        message = "a text may have 2 labels, text 2 has 3."
        assert error_of(client.post("/learn", json=lesson), 413) == ("too_large", message)
        assert names_of(client, "herring net") == ["Fishery"]


def test_a_lesson_of_new_labels_alone_is_refused(client: TestClient) -> None:
    lesson = {"texts": ["x"] * 80, "labels": [[f"{i}-{j}" for j in range(1000)] for i in range(80)]}
    message = "a request may have 1,000 new labels, got 80,000."
    assert error_of(client.post("/learn", json=lesson), 413) == ("too_large", message)
    assert client.get("/health").json()["lessons"] == 0


def test_values_are_counted_before_anything_is_parsed(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "_parsed", lambda kind, body: pytest.fail("parsed"))
    for sent in (
        b'{"text": [' + b"1," * 250_000 + b"1]}",
        b'{"features": [' + b"{}," * 125_000 + b"{}]}",
        b'{"texts": [' + b'"",' * 250_000 + b'""], "labels": []}',
    ):
        for path in ("/predict", "/learn", "/unlabel"):
            headers = {"content-type": "application/json"}
            kind, message = error_of(client.post(path, content=sent, headers=headers), 413)
            assert kind == "too_large" and "a body may have 250,000 values, got 25" in message


@pytest.mark.parametrize(
    "sent",
    [
        {"text": [1] * 1000},
        {"features": [[0, 1]] * 500 + [["x", 1]] * 500},
        {"features": [3] * 1000},
    ],
)
def test_one_wrong_item_of_a_list_is_enough(sent: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        schemas.PredictRequest.model_validate(sent)
    assert caught.value.error_count() < 10


def test_few_errors_are_worded(client: TestClient) -> None:
    kind, message = error_of(client.post("/predict", json=dict.fromkeys(map(str, range(999)))), 422)
    assert message == "999 fields or values are wrong. /docs says what is taken."
    kind, message = error_of(client.post("/learn", json={"texts": [1] * 999, "labels": []}), 422)
    assert (kind, message) == ("invalid", "texts.0: Input should be a valid string")


def test_a_long_name_of_a_field_is_not_sent_back(client: TestClient) -> None:
    _, message = error_of(client.post("/predict", json={"k" * 70_000: 1}), 422)
    assert message == "k" * 80 + ": Extra inputs are not permitted"


def test_others_are_answered_while_a_large_body_is_read(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, answered = threading.Event(), threading.Event()

    def slow(kind: type[Any], body: bytes) -> Any:
        reading.set()
        assert answered.wait(20)
        return kind.model_validate_json(body)

    monkeypatch.setattr(runtime, "_parsed", slow)
    with ThreadPoolExecutor(1) as beside:
        large = {"text": ["herring net", "x" * 70_000]}
        asked = beside.submit(client.post, "/predict", json=large)
        assert reading.wait(20)
        assert client.get("/health").json()["status"] == "ok"
        answered.set()
        assert asked.result().status_code == 200


def test_time_limit(model: Path) -> None:
    with client_of(model, limits=Limits(seconds=0.05)) as client:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Engine, "labels", lambda self, query: time.sleep(0.3))
            kind, message = error_of(client.get("/labels"), 504)
        assert kind == "timeout"
        assert message.startswith("no answer within 0.05 s.")


def test_writes_need_the_token(model: Path) -> None:
    lesson = {"texts": ["herring soup"], "labels": [["Fish soup"]]}
    with client_of(model, host="example.org", token="secret") as client:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic secret"}):
            for answer in (
                client.post("/learn", json=lesson, headers=headers),
                client.delete("/points/doc/1", headers=headers),
                client.post("/reload", headers=headers),
            ):
                kind, message = error_of(answer, 401)
                assert kind == "unauthorized"
                wrong = headers.get("authorization", "").startswith("Bearer")
                assert message == (
                    "this token is not known: it is wrong, or was revoked."
                    if wrong
                    else "this needs the header 'Authorization: Bearer …'."
                )
        assert names_of(client, "herring net") == ["Fishery"]
        right = {"authorization": "Bearer secret"}
        assert client.post("/learn", json=lesson, headers=right).status_code == 200


def test_a_model_of_features(trained_joint: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(trained_joint, tmp_path / "m"))
    joint = Joint.load(folder)
    rows = joint.train_features_[:2]
    points = [dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in rows]
    expected = joint.predict_topk(rows, 2)
    with client_of(folder) as client:
        one, pairs = {"features": points[0]}, {"features": list(points[0].items())}
        many = {"features": [points[0], list(points[1].items())]}
        found = [client.post("/predict", json={**p, "top": 2}).json() for p in (one, pairs, many)]
        assert found[0] == found[1]
        assert found[2]["results"][:1] == found[0]["results"]
        names = [[label["name"] for label in row["labels"]] for row in found[2]["results"]]
        assert names == expected.indices.astype(str).tolist()
        chances = [[label["probability"] for label in row["labels"]] for row in found[2]["results"]]
        np.testing.assert_allclose(chances, expected.scores, atol=1e-6)
        [result] = client.post("/predict", json=one | {"explain": True}).json()["results"]
        assert {column for column, _ in result["explanations"][0]["features"]} <= points[0].keys()
        assert client.get("/health").json()["takes"] == "features"
        kind, message = error_of(client.post("/predict", json={"features": {"60": 1}}), 422)
        assert (kind, message) == ("invalid", "features go from 0 to 59, got 60.")
        _, message = error_of(client.post("/predict", json={"text": "a"}), 422)
        assert message == "this model takes features: give 'features', not 'text'."
        lesson = {"texts": ["a"], "labels": [["x"]]}
        kind, message = error_of(client.post("/learn", json=lesson), 409)
        assert message == "this model takes features, so it cannot be taught texts."


def test_another_model_is_put_in_place_and_lessons_stay(client: TestClient, model: Path) -> None:
    lesson = {"texts": ["herring soup"] * 2, "labels": [["Fish soup"]] * 2, "ids": ["a", "b"]}
    client.post("/learn", json=lesson)
    texts, labels = make_texts(60, seed=2)
    renamed = [[f"New {name}" for name in row] for row in labels]
    TextTagger(device="cpu", candidates="nearest", width=0).fit(texts, renamed).save(model)
    assert names_of(client, "herring net") == ["Fishery"]
    assert client.post("/reload").json() == {"labels": 5, "points": 62}
    assert names_of(client, "herring net trawler") == ["New Fishery"]
    assert names_of(client, "soup of herring") == ["Fish soup"]
    (model / "config.json").write_text("{")
    kind, message = error_of(client.post("/reload"), 400)
    assert (kind, "damaged" in message) == ("bad_request", True)
    assert names_of(client, "herring net trawler") == ["New Fishery"]
