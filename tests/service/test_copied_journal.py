"""A model in a folder that cannot be written to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dxml.service._engine import Engine

from .conftest import client_of, names_of


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir()}


@pytest.mark.parametrize("closed", [True, False])
def test_it_is_asked_with_its_lessons_and_not_taught(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    """Lessons of a service that was killed lie in the write-ahead log."""
    engine = Engine(model)
    engine.learn(["herring soup"] * 2, [["Fish soup"]] * 2, ["a", "b"])
    if closed:
        engine.close()
    before = contents(model)
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    real = os.access
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != model and real(path, mode))
    with client_of(model) as client:
        assert names_of(client, "soup of herring") == ["Fish soup"]
        for answer in (
            client.post("/learn", json={"texts": ["a"], "labels": [["Music"]]}),
            client.delete("/points/a"),
        ):
            assert answer.status_code == 409
            assert "the model's folder cannot be written to" in answer.json()["error"]["message"]
        assert client.post("/reload").status_code == 200
        assert client.get("/health").json()["points"] == 82
    assert contents(model) == before
    assert list(temporary.iterdir()) == []
    if not closed:
        engine.close()
