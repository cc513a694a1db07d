"""``dxml data check``, and what ``dxml train`` says of its table; other commands: test_commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dxml import Joint, TextTagger, make_planted

from .asking import fails, run

WORDS = {"sea": "fish wave boat tide", "food": "soup bread oven cook", "sky": "rain fog wind star"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """32 rows; labels have commas between them, one row has no text and one no labels."""
    rows = ["nr,text,labels"]
    for i in range(30):
        first, second = [name for j, name in enumerate(WORDS) if j != i % 3]
        text = f"{WORDS[first]} {WORDS[second]} {i} word{i} other{i} third{i}"
        rows.append(f'd{i},{text},"{first}, {second}"' if i % 2 else f"d{i},{WORDS[first]},{first}")
    rows += ["d30,,sea", "d31,rain and fog,"]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    return tmp_path / "t.csv"


def test_a_table_is_checked(table: Path, tmp_path: Path) -> None:
    arguments = ("data", "check", table, "--id", "nr", "--test", table)
    done = run(*arguments, "--plot", tmp_path / "p" / "t.png")
    assert done.exit_code == 0, done.output
    assert "32 rows, 5 labels, 1 a text" in done.output
    assert "1 row has no text: d30" in done.output and "1 row has no labels: d31" in done.output
    assert "--label-separator ',' would make 3 labels of 5" in done.output
    assert "of t.csv are a training text too" in done.output
    assert (tmp_path / "p" / "t.png").exists()
    told = json.loads(run(*arguments, "--json").stdout)
    assert told["no_text"] == ["d30"] and told["overlap"]["same"] == 31
    split = run("data", "check", table, "--label-separator", ",")
    assert "32 rows, 3 labels, 1.5 a text" in split.output and "would make" not in split.output


def test_mistakes_of_a_check(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no column 'title'" in fails(capsys, "data", "check", table, "--text", "title")
    said = fails(capsys, "data", "check", table, "--plot", "t.bmp")
    assert "a figure is written as .png, .svg or .pdf" in said


def test_training_tells_of_its_table_and_of_held_out_texts(table: Path, tmp_path: Path) -> None:
    columns = ("--text", "text", "--labels", "labels", "--set", "min_df=1")
    done = run("train", table, *columns, "--model", tmp_path / "m")
    assert "32 rows, 5 labels, 1 a text\n1 row has no text\n1 row has no labels" in done.output
    assert "--label-separator ',' would make 3 labels of 5" in done.output
    held_out = TextTagger.load(tmp_path / "m").model.held_out_
    assert held_out is not None and f"accuracy: {held_out}" in done.output
    assert "on 30 held-out points" in str(held_out), "of 32, in five folds"


def test_a_held_out_score_is_near_that_of_new_points(tmp_path: Path) -> None:
    data = make_planted(1500, 300, 20, labels_per_point=2, noise=0.8, random_state=1)
    model = Joint(candidates="nearest", C=1.0, device="cpu").fit(data.X[:500], data.Y[:500])
    assert model.held_out_ is not None and set(model.held_out_.precision) == {1, 3, 5}
    assert model.held_out_.points == 100
    new = 100 * model.score(data.X[500:], data.Y[500:])
    assert abs(model.held_out_.precision[1] - new) < 8
    model.save(tmp_path / "m")
    assert Joint.load(tmp_path / "m").held_out_ == model.held_out_
    few = Joint(candidates="nearest").fit(data.X[:15], data.Y[:15])
    few.save(tmp_path / "few")
    assert few.held_out_ is None and Joint.load(tmp_path / "few").held_out_ is None
