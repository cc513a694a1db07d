"""Labels are renamed, merged and deleted over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dxml.service._engine import Engine
from dxml.service._limits import Limits
from dxml.service._tokens import new_token

from .conftest import TestClient, client_of, names_of
from .test_app import error_of


def counts(client: TestClient) -> dict[str, int]:
    return {each["name"]: each["points"] for each in client.get("/labels").json()["labels"]}


def test_a_label_is_renamed_and_stays_so(client: TestClient, model: Path) -> None:
    before = counts(client)
    answer = client.post("/labels/rename", json={"old": "Fishery", "new": "Angling/sea"})
    assert answer.json() == {"labels": 4}
    assert names_of(client, "herring in the net") == ["Angling/sea"]
    assert counts(client) == {
        "Angling/sea" if name == "Fishery" else name: n for name, n in before.items()
    }
    later = Engine(model)
    assert "Angling/sea" in later.served.names and "Fishery" not in later.served.names
    later.close()


def test_labels_become_one(client: TestClient) -> None:
    before = counts(client)
    asked = {"labels": ["Roads", "Kitchen"], "into": "Works"}
    assert client.post("/labels/merge", json=asked).json() == {"labels": 3}
    assert counts(client)["Works"] == before["Roads"] + before["Kitchen"]
    assert names_of(client, "gravel on the bridge") == names_of(client, "soup with salt")


def test_a_label_goes_and_its_texts_stay(client: TestClient) -> None:
    assert client.post("/labels/delete", json={"labels": ["Fishery", "Music"]}).json() == {
        "labels": 2
    }
    assert set(counts(client)) == {"Kitchen", "Roads"}
    assert client.get("/health").json()["points"] == 80


def test_a_change_of_labels_can_be_taken_back(client: TestClient) -> None:
    before = counts(client)
    client.post("/labels/merge", json={"labels": ["Roads", "Kitchen"], "into": "Roads"})
    [line] = client.get("/lessons").json()["lessons"]
    assert line["summary"] == "merged 'Roads', 'Kitchen' into 'Roads'"
    client.delete(f"/lessons/{line['number']}")
    assert counts(client) == before


@pytest.mark.parametrize(
    ("how", "sent", "status", "message"),
    [
        ("rename", {"old": "No", "new": "x"}, 404, "there is no label 'No'."),
        (
            "rename",
            {"old": "Musik", "new": "x"},
            404,
            "there is no label 'Musik' (did you mean",
        ),
        ("rename", {"old": "Music", "new": "Music"}, 409, "the label is called 'Music' already."),
        ("merge", {"labels": ["Roads", "No"], "into": "x"}, 404, "there is no label 'No'."),
        ("delete", {"labels": ["No"]}, 404, "there is no label 'No'."),
        ("rename", {"old": "Roads", "new": "Music"}, 409, "there is a label 'Music' already. "),
        (
            "merge",
            {"labels": ["Roads"], "into": "Roads"},
            409,
            "'Roads' is one label. Name several, or use /labels/rename.",
        ),
        ("rename", {"old": "Roads", "new": ""}, 422, "a label must have a character at least."),
        ("delete", {"labels": []}, 422, "labels: "),
        ("delete", {"labels": ["Roads"], "into": "x"}, 422, "into: "),
        ("rename", {"old": "Roads", "new": "x" * 1001}, 413, "a label may have 1,000 characters"),
    ],
)
def test_mistakes(
    client: TestClient, how: str, sent: dict[str, Any], status: int, message: str
) -> None:
    before = counts(client)
    assert error_of(client.post(f"/labels/{how}", json=sent), status)[1].startswith(message)
    assert counts(client) == before and client.get("/health").json()["lessons"] == 0


def test_the_last_label_stays(client: TestClient) -> None:
    everything = {"labels": list(counts(client))}
    assert error_of(client.post("/labels/delete", json=everything), 409)[0] == "conflict"


def test_who_may(model: Path) -> None:
    asked = {"old": "Fishery", "new": "Angling"}
    right = {"authorization": "Bearer secret"}
    with client_of(model, host="example.org", token="secret") as client:
        assert error_of(client.post("/labels/rename", json=asked), 401)[0] == "unauthorized"
        form = {**right, "content-type": "text/plain"}
        answer = client.post("/labels/rename", content=b'{"old": "a"}', headers=form)
        assert error_of(answer, 415)[0] == "unsupported_type"
        assert client.post("/labels/rename", json=asked, headers=right).status_code == 200
    with client_of(model, peer="10.0.0.7") as client:
        assert error_of(client.post("/labels/delete", json={"labels": ["a"]}), 403)


def test_a_full_journal_takes_no_change(model: Path) -> None:
    with client_of(model, limits=Limits(journal_bytes=1)) as client:
        answer = client.post("/labels/delete", json={"labels": ["Roads"]})
        assert "the journal may have 1 bytes" in error_of(answer, 409)[1]


def test_a_model_of_features_keeps_its_labels(trained_joint: Path) -> None:
    with client_of(trained_joint) as client:
        said = error_of(client.post("/labels/delete", json={"labels": ["1"]}), 409)[1]
        assert said == "this model takes features, so it cannot be taught texts."


def test_what_a_token_changes_counts_as_taught(model: Path, tmp_path: Path) -> None:
    """Or one could fill the journal for all, a name there and back."""
    file = tmp_path / "tokens.json"
    desk, admin = (
        {"authorization": f"Bearer {new_token(file, role, role)[0]}"} for role in ("teach", "admin")
    )
    there = {"old": "Music", "new": "M" * 300}
    back = {"old": "M" * 300, "new": "Music"}
    with client_of(model, tokens=file, limits=Limits(share_bytes=700)) as client:
        for sent in (there, back):
            assert client.post("/labels/rename", json=sent, headers=desk).status_code == 200
        for path, sent in (
            ("/labels/rename", there),
            ("/labels/merge", {"labels": ["Roads", "Kitchen"], "into": "Roads"}),
            ("/labels/delete", {"labels": ["Roads"]}),
        ):
            answer = client.post(path, json=sent, headers=desk)
            assert answer.status_code == 409
            assert "the token 'teach' may teach 700 bytes" in answer.text
        assert client.get("/health").json()["lessons"] == 2
        assert client.post("/labels/rename", json=there, headers=admin).status_code == 200
