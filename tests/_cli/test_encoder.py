"""A model with a text encoder through the commands."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dxml._deep.training import Trainer
from dxml.joint import _model as joint_model
from dxml.joint.parts import _deep as deep
from dxml.service._engine import Engine, Wanted
from dxml.tagging._tagger import TextTagger

from .._deep.planting import FILLER, TINY, WORDS
from .asking import fails, run

COLUMNS = ["--text", "text", "--labels", "tags", "--device", "cpu", "--set", "width=0"]
STEPS = replace(TINY, epochs=6, name_every=2)


def rows(n: int, start: int = 0) -> list[dict[str, Any]]:
    """One label's word among filler, in its turn."""
    found = []
    for i in range(start, start + n):
        word, fill = WORDS[i % len(WORDS)], [FILLER[(i + j * j) % len(FILLER)] for j in range(4)]
        found.append({"text": " ".join([*fill[: i % 4], word, *fill[i % 4 :]]), "tags": [word]})
    return found


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


@pytest.fixture(autouse=True)
def tiny_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny encoder without pretraining needs larger steps."""
    monkeypatch.setattr(deep, "SETTINGS", STEPS)


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("docs") / "docs.jsonl", rows(160))


@pytest.fixture(scope="module")
def trained(docs: Path, encoder_folder: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deep, "SETTINGS", STEPS)
        model = docs.with_name("m")
        done = run("train", docs, *COLUMNS, "--encoder", encoder_folder, "--model", model)
    assert done.exit_code == 0, done.output
    assert "text encoder" in done.output
    return model


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    """A copy that a test may teach."""
    return TextTagger.load(trained).save(tmp_path / "m")


def test_every_command_takes_a_model_with_an_encoder(model: Path, tmp_path: Path) -> None:
    assert "deep" in TextTagger.load(model).model.parts_
    new = write(tmp_path / "new.jsonl", rows(32, start=160))
    done = run("predict", new, "--model", model, "--top", "1", "--format", "jsonl")
    best = [json.loads(line)["labels"][0]["label"] for line in done.stdout.splitlines()]
    assert best == [row["tags"][0] for row in rows(32, start=160)]
    done = run("evaluate", new, "--model", model, "--json")
    assert json.loads(done.stdout)["P@1"] == 100
    done = run("explain", "a new case of the anchor", "--model", model, "--top", "1")
    assert done.exit_code == 0 and "anchor" in done.stdout
    taught = write(tmp_path / "more.jsonl", [{"text": "kiln and clay", "tags": ["pottery"]}] * 2)
    done = run("learn", taught, "--model", model)
    assert done.exit_code == 0, done.output
    part = TextTagger.load(model).model.parts_["deep"]
    assert isinstance(part, deep.DeepPart)
    assert len(part.texts) == 162 and part.head.n_labels == len(WORDS) + 1
    done = run("learn", "--model", model, "--catch-up")
    assert done.exit_code == 0, done.output


def test_it_is_served_and_taught(model: Path) -> None:
    engine = Engine(model)
    asked = [Wanted(["a storm of old notes"], 1)]
    [[[(best, _)]]] = engine.rank(asked)  # type: ignore[misc]
    assert best == "storm"
    assert engine.explain("a storm of old notes", 1)[0]["name"] == "storm"
    engine.learn(["kiln and clay"] * 2, [["pottery"]] * 2, ["x", "y"])
    engine.close()
    assert "applied what" in run("learn", "--journal", "-m", model).output
    assert "pottery" in TextTagger.load(model).labels_


def test_none_is_no_encoder(docs: Path, tmp_path: Path) -> None:
    done = run("train", docs, *COLUMNS, "--encoder", "none", "--model", tmp_path / "m")
    assert done.exit_code == 0, done.output
    assert "deep" not in TextTagger.load(tmp_path / "m").model.parts_


@pytest.mark.parametrize("kind", ["static", "frozen"])
def test_vectors_that_need_no_training_go_through_the_commands(
    docs: Path, static_folder: Path, encoder_folder: Path, tmp_path: Path, kind: str
) -> None:
    folder, model = static_folder if kind == "static" else encoder_folder, tmp_path / "m"
    done = run("train", docs, *COLUMNS, "--vectors", folder, "--model", model)
    assert done.exit_code == 0, done.output
    parts = TextTagger.load(model).model.parts_
    assert "vectors" in parts and "deep" not in parts
    more = write(tmp_path / "more.jsonl", rows(16, 160))
    for command in ("evaluate", "learn"):
        done = run(command, more, "--model", model)
        assert done.exit_code == 0, done.output
    done = run("explain", f"the {WORDS[3]} of old", "--model", model, "--top", "1")
    assert done.exit_code == 0 and WORDS[3] in done.output


def test_what_it_says_of_mistakes(
    docs: Path, encoder_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ["--model", tmp_path / "m"]
    said = fails(capsys, "train", docs, *COLUMNS, "--encoder", tmp_path, *model)
    assert "expected the folder of an encoder, with config.json" in said
    both = ["--encoder", encoder_folder, "--set", f"encoder={encoder_folder}"]
    assert "given twice" in fails(capsys, "train", docs, *COLUMNS, *both, *model)
    said = fails(capsys, "train", "eurlex-4k", "--encoder", encoder_folder, *model)
    assert "--encoder goes with a table of texts" in said
    dear = ["--encoder", encoder_folder, "--set", "encoder_minutes=0"]
    said = fails(capsys, "train", docs, *COLUMNS, *dear, *model)
    assert "--encoder none" in said and "--vectors" in said
    assert not (tmp_path / "m").exists()


class Breaking:
    """Fails when so many steps of training were made."""

    def __init__(self, patch: pytest.MonkeyPatch, after: int) -> None:
        self.made, step = 0, Trainer.step

        def counted(trainer: Trainer, *arguments: Any) -> None:
            self.made += 1
            if self.made > after:
                raise KeyboardInterrupt
            step(trainer, *arguments)

        patch.setattr(Trainer, "step", counted)


@pytest.mark.parametrize("where", ["partial", "elsewhere"])
def test_a_training_that_broke_off_is_resumed(
    docs: Path,
    trained: Path,
    encoder_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
) -> None:
    monkeypatch.setattr(joint_model, "KEPT_EVERY", 0.0)
    model, state = tmp_path / "m", tmp_path / "m.partial"
    command = ["train", docs, *COLUMNS, "--encoder", encoder_folder, "--model", model]
    if where == "elsewhere":
        state = tmp_path / "state"
        state.mkdir()
        (state / "notes.txt").write_text("not ours")
        command += ["--checkpoint", state]
    with monkeypatch.context() as patch:
        Breaking(patch, 30)
        done = run(*command)
    assert done.exit_code == 130 and not model.exists()
    assert f"the state is in {state}: go on with --resume" in done.output
    with monkeypatch.context() as patch:
        steps = Breaking(patch, 1 << 30)
        done = run(*command, "--resume")
    assert done.exit_code == 0, done.output
    assert steps.made < 48 + 10 + 4 - 20  # 48 without held-out points, 10 with, 4 for the estimate
    if where == "partial":
        assert not state.exists()
    else:
        assert [path.name for path in state.iterdir()] == ["notes.txt"]
    (_, ours), (_, theirs) = (TextTagger.load(each).model._packed() for each in (model, trained))
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_resume_says_where_there_is_nothing_to_go_on_from(docs: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    done = run("train", docs, *COLUMNS, "--encoder", "none", "--model", model, "--resume")
    assert done.exit_code == 0 and "m.partial: no state to go on from" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
