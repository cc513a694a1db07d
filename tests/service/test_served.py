"""What is known of labels goes with the answers of the service."""

from __future__ import annotations

from pathlib import Path

from dxml.tagging._tagger import TextTagger
from dxml.tagging._vocabulary import read_thesaurus

from .conftest import TestClient, client_of


def test_descriptions_and_parents_come_along(model: Path) -> None:
    tagger = TextTagger.load(model)
    tagger.thesaurus = read_thesaurus(
        {
            "name": ["Work", "Fishery", "Kitchen"],
            "description": ["", "Of the sea", ""],
            "parents": [[], ["Work"], []],
        }
    )
    tagger.save(model)
    count = int(tagger.model.label_frequency_[tagger.labels_.index("Fishery")])
    with client_of(model) as client:
        for explain in (False, True):
            asked = {"text": "herring in a net", "top": 2, "explain": explain}
            first, second = client.post("/predict", json=asked).json()["results"][0]["labels"]
            assert first.pop("probability") > second.pop("probability")
            assert first == {"name": "Fishery", "description": "Of the sea", "parents": ["Work"]}
            assert set(second) == {"name"}, "nothing is known of it"
        assert _label(client, "fish") == first | {"points": count}
        assert set(_label(client, "kitchen")) == {"name", "points"}


def _label(client: TestClient, query: str) -> dict[str, object]:
    [found] = client.get("/labels", params={"query": query}).json()["labels"]
    return dict(found)
