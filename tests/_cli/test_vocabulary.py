"""``dxml vocabulary``, and training with a vocabulary on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .asking import fails, run

SKOS = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<v:1> a skos:Concept ; skos:prefLabel "animals"@en, "Tiere"@de .
<v:2> a skos:Concept ; skos:prefLabel "fish"@en, "Fisch"@de ; skos:altLabel "fishes"@en ;
  skos:broader <v:1> .
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "v.ttl").write_text(SKOS, "utf-8")
    rows = ["herring net,fishes", "herring,fish", "hot soup,soup", "soup pot,soup"] * 10
    (tmp_path / "docs.csv").write_text("\n".join(["text,labels", *rows]), "utf-8")
    return tmp_path


def test_counts_are_shown(folder: Path) -> None:
    shown = run("vocabulary", folder / "v.ttl").stdout
    assert "labels: 2\nother names: 1\n" in shown and "levels: 2\n" in shown
    assert "names by language: de 2, en 2" in shown
    found = json.loads(run("vocabulary", folder / "v.ttl", "--json", "--language", "de,en").stdout)
    assert found["other_names"] == 3 and found["at_the_top"] == 1 and found["remarks"] == []


def test_train_names_labels_outside(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = ["train", folder / "docs.csv", "--text", "text", "--labels", "labels"]
    train += ["--model", folder / "m", "--label-info", folder / "v.ttl", "--set", "device=cpu"]
    assert "the label 'soup' of 20 texts is not in the vocabulary" in fails(
        capsys, *train, "--strict"
    )
    assert not (folder / "m").exists()
    done = run(*train, "--language", "de,en")
    assert done.exit_code == 0, done.output
    assert f"1 label is not in {folder / 'v.ttl'}: 'soup' (20)\n" in done.output
    found = [
        json.loads(line)
        for line in run("labels", "-m", folder / "m", "--json").stdout.split("\n")[:-1]
    ]
    assert [(each["name"], each["points"]) for each in found] == [
        ("Fisch", 20),
        ("soup", 20),
        ("Tiere", 0),
    ]


def test_quiet_training_and_learning_warn_all_the_same(folder: Path) -> None:
    with (folder / "docs.csv").open("a", encoding="utf-8") as table:
        table.write("\na text,\n")
    train = ["train", folder / "docs.csv", "--text", "text", "--labels", "labels", "-q"]
    train += ["--model", folder / "m", "--label-info", folder / "v.ttl", "--set", "device=cpu"]
    done = run(*train)
    assert done.stdout == ""
    assert done.stderr == (
        "warning: 1 row has no labels\n"
        f"warning: 1 label is not in {folder / 'v.ttl'}: 'soup' (20)\n"
    )
    (folder / "new.csv").write_text("text,labels\na spoon,cutlery\n.,fishes\n", "utf-8")
    done = run("learn", folder / "new.csv", "-m", folder / "m", "-q")
    assert done.stdout == ""
    assert done.stderr == (
        "warning: 1 label is not in the vocabulary: 'cutlery' (1)\n"
        "warning: 1 text without a word changed nothing\n"
    )


def test_language_needs_a_vocabulary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = ["train", folder / "docs.csv", "--model", folder / "m"]
    texts = ["--text", "text", "--labels", "labels"]
    assert "--language needs --label-info FILE" in fails(capsys, *train, *texts, "--language", "de")
    assert "--strict needs --label-info FILE" in fails(capsys, *train, *texts, "--strict")
