"""make demo where there is no network, and the tutorial's walk through what it leaves."""

from __future__ import annotations

import io
import json
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dxml.data
from dxml._cli import app
from dxml.exceptions import DatasetNotFoundError
from dxml.tagging._tagger import TextTagger

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


def refuse(name: str, **other: object) -> None:
    raise DatasetNotFoundError(f"data set {name!r} could not be fetched. Tried:\n  nothing")


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """What the demo prints, and the folder it fills."""
    folder = tmp_path_factory.mktemp("demo")
    made = dxml.data.make_texts
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        patch.setattr(dxml.data, "is_present", lambda name: False)
        patch.setattr(dxml.data, "fetch", refuse)
        patch.setattr(dxml.data, "make_texts", lambda n: made(n // 10))
        patch.setattr(sys, "argv", ["demo.py", "--folder", str(folder)])
        runpy.run_path(str(DEMO), run_name="__main__")
    yield re.sub(" +\n", "\n", printed.getvalue()), folder


def test_the_demo_without_a_network(said: tuple[str, Path]) -> None:
    text, folder = said
    assert "No PubMed-MeSH here (data set 'pubmed-mesh' could not be fetched. Tried:)" in text
    assert "Generated articles are used instead" in text
    assert "500 to learn from, 100 to tag" in text
    ours, nearest = (
        float(re.search(rf"{name}\s*│\s*([\d.]+)", text)[1])  # type: ignore[index]
        for name in ("this tagger", "k-NN, same features")
    )
    assert ours > 90 and nearest > 50
    assert text.count("Why Topic: ") == 3 and " *\n" in text
    assert text.count("  words  ") == 3 and text.count("  nearest  0.") == 6
    commands = re.findall(r"\.venv/bin/dxml (\w+)", text)
    assert commands == ["serve", "predict", "explain", "plot", "learn"]
    assert "http://127.0.0.1:8000/" in text

    tagger = TextTagger.load(folder / "model")
    assert tagger.columns and tagger.columns.text == ("text",)
    new = [json.loads(line) for line in (folder / "new.jsonl").read_text("utf-8").splitlines()]
    assert len(new) == 100 and set(new[0]) == {"id", "text", "labels"}
    assert f"\n{new[0]['text'].splitlines()[0]}\n" in text


def test_the_commands_of_the_tutorial(
    said: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = (DEMO.parents[1] / "docs" / "tutorial.md").read_text("utf-8").split("## Texts")[1]
    commands = re.findall(r"^    dxml ([^#\n]+)", walk.split("\n## ")[0], re.MULTILINE)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "demo").symlink_to(said[1])
    monkeypatch.chdir(tmp_path)
    done = []
    for command in commands:
        name, *arguments = shlex.split(command)
        if name == "serve":  # it would not end
            arguments.append("--help")
        result = CliRunner().invoke(app, [name, *arguments])
        assert result.exit_code == 0, (command, result.output)
        done.append(name)
    assert done == "train predict evaluate labels explain plot learn learn serve".split()
    assert len(TextTagger.load("build/tags").ids_) == 600
    assert {path.name for path in Path("build/plots").iterdir()} >= {
        "labels.png",
        "reliability.png",
    }
