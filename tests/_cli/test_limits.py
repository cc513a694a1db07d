"""The option --memory: the same files as without it, and what cannot be is said before the work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dxml._core import memory as limits
from dxml.data import make_planted, write

from .asking import fails, run

SETTINGS = ["--set", "candidates=nearest", "--set", "width=0", "--set", "device=cpu"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write(make_planted(400, 300, 60, 2, 12, random_state=3), folder / "t.dxml")
    return folder / "t.dxml"


def content(model: Path) -> tuple[Any, Any]:
    config = json.loads((model / "config.json").read_text())
    config.pop("seconds")
    return config["state"], config["arrays"]["sha256"]


@pytest.mark.thorough
def test_the_same_model_and_predictions(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[limits.Memory] = []
    handler_of = limits._handler_of
    monkeypatch.setattr(
        limits, "_handler_of", lambda memory: made.append(memory) or handler_of(memory)
    )
    monkeypatch.setattr(limits, "LARGE", 65536)
    monkeypatch.setattr(limits, "RESERVE", 0)
    monkeypatch.setattr(limits, "LEAST", 0)
    monkeypatch.setattr(limits, "_used", lambda: 0)
    found = []
    for name, limit in (("free", []), ("limited", ["--memory", "100KB"])):
        model, output = tmp_path / name, tmp_path / f"{name}.tsv"
        done = run("train", data, "-m", model, "-q", *SETTINGS, *limit)
        assert done.exit_code == 0, done.output
        done = run("predict", data, "-m", model, "-o", output, "-q", *limit)
        assert done.exit_code == 0, done.output
        found.append((content(model), output.read_bytes()))
    assert found[0] == found[1]
    assert len(made) == 2 and all(memory.most_in_files > memory.promised for memory in made)


def test_what_cannot_be_is_said(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ["-m", tmp_path / "m"]
    assert "got 'much'" in fails(capsys, "train", data, *model, "--memory", "much")
    said = fails(capsys, "train", data, *model, "--memory", "10MB")
    assert "10 MB of memory are too few: Python and its libraries have" in said
    table = tmp_path / "t.csv"
    table.write_text("text,labels\n" + "fish,sea\n" * 1000)
    monkeypatch.setattr("dxml._cli.train.TEXT_BYTES", 10**9)
    columns = ["--text", "text", "--labels", "labels"]
    said = fails(capsys, "train", table, *columns, *model, "--memory", "30GB")
    assert "too few for the texts of a table, which stay in memory" in said
    assert not (tmp_path / "m").exists()
