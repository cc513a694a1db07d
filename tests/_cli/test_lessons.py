"""``dxml lessons``: what a service was taught is listed, shown and taken back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dxml.service._engine import Engine
from dxml.tagging import TextTagger

from ..service.conftest import wait_until
from .asking import fails, run

TEXTS = ["a fish in the sea", "the sea and its fish", "soup with salt", "a soup of salt"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    tagger = TextTagger(min_df=1).fit(TEXTS, [["ocean"], ["ocean"], ["food"], ["food"]])
    return tagger.save(tmp_path / "m")


def test_lessons_are_listed_and_shown(model: Path) -> None:
    engine = Engine(model)
    engine.learn(["a shark\nwith teeth"], [["danger"]], ids=["s"])
    run("learn", "--journal", "--model", model)
    last = run("lessons", "list", "--model", model).stdout.splitlines()[-1]
    assert last == "1 lesson, 0 not part of the saved model yet"
    engine.forget("0")
    engine.close()
    shown = run("lessons", "list", "--model", model).stdout.splitlines()
    assert shown[0].startswith("    1  20") and shown[0].endswith("learnt 'a shark': danger")
    assert "* " in shown[1] and shown[1].endswith("forgot '0'")
    assert shown[-1] == "2 lessons, 1 not part of the saved model yet"
    found = json.loads(run("lessons", "list", "--json", "--top", "1", "-m", model).stdout)
    assert (found["action"], found["id"], found["pending"]) == ("forget", "0", True)
    whole = run("lessons", "show", "1", "--model", model).stdout
    assert whole.endswith("\ns: danger\na shark\nwith teeth\n") and "part of the saved" in whole
    assert json.loads(run("lessons", "show", "1", "--json", "-m", model).stdout)["ids"] == ["s"]


def test_a_pending_lesson_is_as_if_it_had_never_been(model: Path) -> None:
    engine = Engine(model)
    before = engine.served.joint.label_frequency_.tolist()
    engine.learn(["a shark with teeth"], [["danger"]], ids=["s"])
    done = run("lessons", "undo", "1", "--model", model)
    assert done.output == "took lesson 1 out of the journal: learnt 'a shark with teeth': danger\n"
    wait_until(lambda: "danger" not in engine.apply_pending().names)
    assert engine.apply_pending().joint.label_frequency_.tolist() == before
    engine.close()


def test_a_lesson_of_the_saved_model_is_taken_back(model: Path) -> None:
    engine = Engine(model)
    engine.learn(["a shark with teeth"], [["danger"]], ids=["s"])
    run("learn", "--journal", "--model", model)
    assert "took it back" in run("lessons", "undo", "1", "--model", model).output
    assert "s" not in TextTagger.load(model).ids_ or engine.apply_pending()
    wait_until(lambda: engine.apply_pending().n_labels == 2)
    engine.close()
    run("learn", "--journal", "--model", model)
    assert TextTagger.load(model).ids_ == ("0", "1", "2", "3")


def test_mistakes_are_one_sentence(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no service was taught anything" in fails(capsys, "lessons", "list", "-m", model)
    engine = Engine(model)
    engine.forget("0")
    engine.close()
    run("learn", "--journal", "--model", model)
    said = fails(capsys, "lessons", "undo", "1", "--model", model)
    assert "cannot be taken back: the journal does not have the text '0'" in said
    assert "there is no lesson 9" in fails(capsys, "lessons", "show", "9", "--model", model)
