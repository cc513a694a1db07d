"""``dxml versions`` and ``dxml restore``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dxml.service._engine import Engine
from dxml.tagging import Columns, TextTagger

from .asking import fails, run

TEXTS = ["a fish in the sea", "the sea and its fish", "soup with salt", "a soup of salt"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    tagger = TextTagger(min_df=1).fit(TEXTS, [["ocean"], ["ocean"], ["food"], ["food"]])
    tagger.columns = Columns(("text",), "labels", "id")
    row = {"text": "a shark", "labels": ["danger"], "id": "s"}
    (tmp_path / "new.jsonl").write_text(json.dumps(row))
    return tagger.save(tmp_path / "m")


def test_the_model_before_is_kept_and_brought_back(model: Path) -> None:
    assert run("versions", "--model", model).output == "no earlier versions\n"
    before = TextTagger.load(model).tag("fish", top=2)
    run("learn", model.parent / "new.jsonl", "--model", model)
    run("labels", "rename", "food", "meal", "--model", model)
    lines = run("versions", "--model", model).stdout.splitlines()
    assert "learnt 1 text" in lines[0] and lines[1].endswith("renamed 'food' to 'meal'")
    assert TextTagger.load(model).labels_ == ("meal", "ocean", "danger")
    assert run("restore", "1", "--model", model).output == f"restored version 1 of {model}\n"
    tagger = TextTagger.load(model)
    assert tagger.labels_ == ("food", "ocean") and tagger.tag("fish", top=2) == before
    assert "| labels | 2 |" in (model / "README.md").read_text("utf-8"), "the card of then"
    run("restore", "--model", model)
    assert TextTagger.load(model).labels_ == ("meal", "ocean", "danger"), "the last one"
    lines = run("versions", "--json", "--model", model).stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [each["number"] for each in found] == [1, 2, 3, 4]


def test_lessons_are_pending_again(model: Path) -> None:
    engine = Engine(model)
    engine.learn(["a shark with teeth"], [["danger"]], ids=["s"])
    engine.close()
    run("learn", "--journal", "--model", model)
    said = run("restore", "--model", model).output
    assert "\n1 lesson of a service not part of this version, to be applied to it again" in said
    assert f"take one back with dxml lessons undo N --model {model}\n" in said
    assert "danger" not in TextTagger.load(model).labels_
    assert "1 not part of the saved model yet" in run("lessons", "list", "-m", model).output
    again = Engine(model)
    assert "danger" in again.served.names
    again.close()


def test_lessons_that_both_versions_have_are_not_named(model: Path) -> None:
    engine = Engine(model)
    engine.learn(["a shark with teeth"], [["danger"]], ids=["s"])
    engine.close()
    run("learn", "--journal", "--model", model)
    run("labels", "rename", "food", "meal", "--model", model)
    said = run("restore", "2", "--model", model).output
    assert "1 lesson of a service not part of this version" in said, "the renaming"
    assert "not part" not in run("restore", "3", "--model", model).output, "it has all"


def test_none_is_kept_where_none_is_wanted(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("learn", model.parent / "new.jsonl", "--model", model, "--keep", "0")
    assert not (model / "versions").exists()
    assert "there are no earlier versions" in fails(capsys, "restore", "--model", model)
    assert "there is no version 3. Kept are: none" in fails(capsys, "restore", "3", "-m", model)


def test_training_over_a_model_keeps_it(model: Path) -> None:
    rows = [
        {"text": f"{text} {i}", "labels": "new"} for i in range(3) for text in ("a bird", "wings")
    ]
    (model.parent / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    train = ("train", model.parent / "t.jsonl", "--text", "text", "--labels", "labels")
    done = run(*train, "--model", model)
    assert f"the model before is version 1: dxml restore 1 --model {model}\n" in done.stdout
    assert run("versions", "-m", model).stdout.endswith("trained on 6 texts\n")
    assert TextTagger.load(model).labels_ == ("new",)
    run("restore", "--model", model)
    assert TextTagger.load(model).labels_ == ("food", "ocean")
    run(*train, "--model", model, "--keep", "0")
    assert len(run("versions", "-m", model).stdout.splitlines()) == 2, "none kept, none removed"
    other = model.parent / "other"
    assert "version" not in run(*train, "--model", other).stdout, "there was nothing to keep"
    assert not (other / "versions").exists()


def test_a_damaged_model_can_be_trained_over(model: Path) -> None:
    (model / "config.json").write_text("{}")
    (model.parent / "t.jsonl").write_text('{"text": "a bird", "labels": "new"}\n' * 4)
    train = ("train", model.parent / "t.jsonl", "--text", "text", "--labels", "labels")
    done = run(*train, "--model", model)
    assert done.exit_code == 0, done.output
    assert "warning: the model before is not kept as a version: " in done.stderr
    assert TextTagger.load(model).labels_ == ("new",) and not (model / "versions").exists()
