"""A table of labels through the commands: train, labels, explain, predict --with-parents."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dxml.service._engine import Engine
from dxml.tagging import TextTagger

from ..service.conftest import wait_until
from .asking import fails, run

TABLE = """name,description,parents
water,All that flows,
fish,Swims,water
soup,,water
eel,Long,fish
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    rows = ["herring net,fish", "net for herring,fish", "hot broth,soup", "broth pot hot,soup"] * 10
    rows += ["herring,fish"]
    (folder / "docs.csv").write_text("\n".join(["text,labels", *rows]), "utf-8")
    (folder / "labels.csv").write_text(TABLE, "utf-8")
    asked = ["--text", "text", "--labels", "labels", "--label-info", folder / "labels.csv"]
    done = run("train", folder / "docs.csv", *asked, "--model", folder / "m")
    assert done.exit_code == 0, done.output
    return folder


def test_labels_are_listed(files: Path) -> None:
    done = run("labels", "--model", files / "m", "--json")
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["name"], each["points"]) for each in found] == [
        ("fish", 21),
        ("soup", 20),
        ("eel", 0),
        ("water", 0),
    ]
    assert found[2]["path"] == ["water", "fish", "eel"] and found[0]["children"] == ["eel"]
    shown = run("labels", "SWIMS", "--model", files / "m").stdout
    assert "water › fish" in shown and "Swims" in shown and "1 of 1 labels" in shown
    assert "3 of 4 labels" in run("labels", "--model", files / "m", "--top", "3").stdout


def test_no_label_is_found(files: Path) -> None:
    done = run("labels", "zzzz", "--model", files / "m")
    assert done.exit_code == 0
    assert done.output == "no label has 'zzzz' in its name or description\n"


def test_descriptions_stand_in_explanations(files: Path) -> None:
    shown = run("explain", "herring", "--model", files / "m", "--top", "1").stdout
    assert shown.splitlines()[0].startswith("fish") and shown.splitlines()[1].strip() == "Swims"


def test_parents_are_added(files: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("text\nherring\nbroth\n", "utf-8")
    asked = [tmp_path / "new.csv", "--model", files / "m", "--top", "1", "--with-parents", "-q"]
    rows = [json.loads(line) for line in run("predict", *asked, "--json").stdout.splitlines()]
    assert [[tag["label"] for tag in row["labels"]] for row in rows] == [
        ["fish", "water"],
        ["soup", "water"],
    ]
    assert len({tag["probability"] for tag in rows[0]["labels"]}) == 1
    lines = run("predict", *asked).stdout.splitlines()
    assert lines[0] == "point\trank\tlabel\tprobability" and lines[2].startswith("0\t2\twater\t")


def test_descriptions_are_learnt(files: Path, tmp_path: Path) -> None:
    asked = ["--text", "text", "--labels", "labels", "--label-info", files / "labels.csv"]
    more = ["--learn-descriptions", "--set", "min_df=1", "--model", tmp_path / "m"]
    assert run("train", files / "docs.csv", *asked, *more).exit_code == 0
    found = run("explain", "long", "--model", tmp_path / "m", "--top", "1", "--json").stdout
    assert json.loads(found)["name"] == "eel"


def test_mistakes_are_one_sentence(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = ["train", files / "docs.csv", "--model", tmp_path / "m"]
    texts = ["--text", "text", "--labels", "labels"]
    assert "--label-info goes with a table of texts" in fails(
        capsys, *train, "--label-info", files / "labels.csv"
    )
    assert "--learn-descriptions needs --label-info FILE" in fails(
        capsys, *train, *texts, "--learn-descriptions"
    )
    (tmp_path / "bad.csv").write_text("name,parents\na,b\n", "utf-8")
    assert "bad.csv line 2: the parent 'b' of 'a' has no row" in fails(
        capsys, *train, *texts, "--label-info", tmp_path / "bad.csv"
    )
    predict = ["predict", files / "docs.csv", "--model", files / "m", "--with-parents"]
    assert "npz has no columns for parents" in fails(
        capsys, *predict, "--format", "npz", "--output", tmp_path / "x.npz"
    )
    assert not (tmp_path / "m").exists()


@pytest.fixture
def model(files: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(files / "m", tmp_path / "m"))


def names(model: Path) -> list[str]:
    lines = run("labels", "--model", model, "--json").stdout.splitlines()
    return [each["name"] for each in map(json.loads, lines) if each["points"]]


def test_labels_are_renamed_merged_and_deleted(model: Path) -> None:
    done = run("labels", "rename", "soup", "broth", "--model", model)
    assert done.exit_code == 0, done.output
    assert done.output == "renamed 'soup' to 'broth': 2 labels\n"
    assert names(model) == ["fish", "broth"]
    assert "merged 'fish', 'broth' into 'meal': 1 label" in (
        run("labels", "merge", "fish", "broth", "--into", "meal", "--model", model).output
    )
    assert names(model) == ["meal"]
    found = json.loads(run("explain", "herring", "-m", model, "--top", "1", "--json").stdout)
    assert found["name"] == "meal"


def test_lessons_that_are_pending_are_applied_first(model: Path) -> None:
    engine = Engine(model)
    engine.learn(["hot tea"], [["soup"]], ids=["tea"])
    engine.learn(["cold tea"], [["drink"]], ids=["cold"])
    done = run("labels", "merge", "soup", "drink", "--into", "liquid", "--model", model)
    assert done.exit_code == 0, done.output
    tagger = TextTagger.load(model)
    assert tagger.labels_of("tea") == tagger.labels_of("cold") == ["liquid"]
    wait_until(lambda: "liquid" in engine.apply_pending().names)
    engine.close()
    again = Engine(model)
    assert sorted(again.served.names) == ["fish", "liquid"], "nothing is applied twice"
    again.close()


def test_a_wrong_name_is_said(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (model / "config.json").read_bytes()
    said = fails(capsys, "labels", "rename", "sup", "x", "--model", model)
    assert "there is no label 'sup' (did you mean 'soup'?)." in said
    said = fails(capsys, "labels", "rename", "soup", "fish", "--model", model)
    assert "there is a label 'fish' already. Use dxml labels merge to make one of both." in said
    said = fails(capsys, "labels", "rename", "soup", "", "--model", model)
    assert said == "error: expected a label's name, got ''. Give some letters.\n"
    assert "a model cannot lose all" in fails(
        capsys, "labels", "delete", "fish", "soup", "--model", model
    )
    assert (model / "config.json").read_bytes() == before


def test_a_query_need_not_be_called_list(files: Path) -> None:
    assert "1 of 1 labels" in run("labels", "list", "swims", "-m", files / "m").stdout
    assert "1 of 1 labels" in run("labels", "-m", files / "m", "swims").stdout
    assert "merge" in run("labels", "--help").stdout
