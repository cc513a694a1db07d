"""Precision and recall by threshold, as the model keeps them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dxml.joint import Joint
from dxml.tagging import TextTagger

from .conftest import TestClient, client_of, make_texts
from .test_app import error_of


def test_the_curve_of_the_held_out_points(client: TestClient, model: Path) -> None:
    held_out = TextTagger.load(model).model.held_out_
    assert held_out is not None and held_out.curve is not None
    told = client.get("/thresholds").json()
    rows = told["thresholds"]
    assert told["points"] == held_out.points and len(rows) == 101
    assert [row["threshold"] for row in rows] == pytest.approx([i / 100 for i in range(101)])
    assert rows[0]["recall"] == 1 and rows[0]["labels"] == 4, "from 0 on, all four labels"
    falling = [row["recall"] for row in rows]
    assert falling == sorted(falling, reverse=True)
    for row in rows:
        parts = row["precision"] + row["recall"]
        assert row["f1"] == pytest.approx(2 * row["precision"] * row["recall"] / (parts or 1))
    assert told["best"] == max(rows, key=lambda row: row["f1"])


def test_new_texts_fare_alike(model: Path, client: TestClient) -> None:
    """What the curve promises holds on texts that the model has not seen."""
    texts, labels = make_texts(200, seed=9)
    best = client.get("/thresholds").json()["best"]
    asked = {"text": texts, "threshold": best["threshold"]}
    results = client.post("/predict", json=asked).json()["results"]
    given = [{label["name"] for label in row["labels"]} for row in results]
    right = sum(len(names & set(true)) for names, true in zip(given, labels, strict=True))
    assert right / sum(map(len, given)) == pytest.approx(best["precision"], abs=0.1)
    assert right / len(texts) == pytest.approx(best["recall"], abs=0.1)


def test_a_model_without_a_curve_says_so(
    trained_joint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client_of(trained_joint) as client:
        assert client.get("/thresholds").status_code == 200
        served: Any = client.app.state.service.engine.served  # type: ignore[attr-defined]
        joint: Joint = served.joint
        held_out = joint.held_out_
        assert held_out is not None
        for old in (replace(held_out, curve=None), None):
            monkeypatch.setattr(joint, "held_out_", old)
            kind, said = error_of(client.get("/thresholds"), 404)
            assert kind == "not_found" and said.endswith("Train it again.")
