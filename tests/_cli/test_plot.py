"""``dxml plot``: numbers equal to other commands', files, and what cannot be drawn."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from dxml._core.storage import read_config, sealed
from dxml.data import make_planted, write
from dxml.label_map import make_label_map
from dxml.tagging._tagger import TextTagger

from .asking import fails, run

TOPICS = {"Fischerei": "hering netz kutter", "Küche": "suppe salz löffel", "Bau": "asphalt ziegel"}
UNASSIGNED = "\u0378"  # a character that Unicode has not given away


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.txt and test.txt with models joint and one-vs-all; docs.jsonl with a tagger."""
    folder = tmp_path_factory.mktemp("plot")
    data = make_planted(260, 90, 12, labels_per_point=2, random_state=3)
    write(data.take(np.arange(200)), folder / "train.txt")
    write(data.take(np.arange(200, 260)), folder / "test.txt")
    for method in ("joint", "one-vs-all"):
        done = run("train", folder / "train.txt", "--method", method, "-m", folder / method, "-q")
        assert done.exit_code == 0, done.output
    rows = []
    for i in range(60):
        name, words = list(TOPICS.items())[i % 3]
        labels = [name, "Handwerk"] if i % 2 else [name]
        rows.append({"text": f"{words} {'alt neu'.split()[i % 2]}", "labels": labels})
    (folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    columns = ["--text", "text", "--labels", "labels"]
    done = run("train", folder / "docs.jsonl", *columns, "-m", folder / "tagger", "-q")
    assert done.exit_code == 0, done.output
    return folder


def test_the_calibration_error_is_that_of_evaluate(files: Path, tmp_path: Path) -> None:
    ask = [files / "test.txt", "--model", files / "joint", "--json"]
    evaluated = json.loads(run("evaluate", *ask).stdout)
    done = run("plot", "reliability", *ask, "--output", tmp_path / "r.svg")
    numbers = json.loads(done.stdout)
    assert numbers["ECE@5"] == evaluated["ECE@5"] > 0
    assert numbers["predictions"] == sum(numbers["histogram"]) == 60 * 5
    assert "Reliability of joint on test.txt" in (tmp_path / "r.svg").read_text("utf-8")
    plain = run("evaluate", files / "test.txt", "--model", files / "one-vs-all", "--json")
    assert "ECE@5" not in json.loads(plain.stdout)  # margins are no probabilities


def test_bands_make_up_the_precision_of_evaluate(files: Path) -> None:
    for method in ("joint", "one-vs-all"):
        ask = [files / "test.txt", "--model", files / method, "--json"]
        evaluated = json.loads(run("evaluate", *ask).stdout)
        numbers = json.loads(run("plot", "frequency", *ask).stdout)
        for groups in (numbers["bands"], numbers["training_points"]):
            right = sum(each["R@5"] / 100 * each["occurrences"] for each in groups.values())
            assert 100 * right / (60 * 5) == pytest.approx(evaluated["P@5"], abs=1e-3)
            assert sum(each["labels"] for each in groups.values()) == 12


def test_a_plot_is_drawn_right_here_by_default(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("plot", "training", "--model", files / "joint")
    assert done.output == "drew training.png\n"
    assert (tmp_path / "training.png").read_bytes().startswith(b"\x89PNG")
    numbers = json.loads(run("plot", "training", "-m", files / "one-vs-all", "--json").stdout)
    assert numbers["curve"] is None and set(numbers["seconds"]) == {"labels", "other"}
    assert [path.name for path in tmp_path.iterdir()] == ["training.png"], "--json draws nothing"


def test_a_tagger_is_drawn_with_the_names_of_its_labels(files: Path, tmp_path: Path) -> None:
    docs, tagger = files / "docs.jsonl", files / "tagger"
    done = run(
        "plot", "labels", "-m", tagger, "--find", "küche", "--json", "-o", tmp_path / "l.svg"
    )
    numbers = json.loads(done.stdout)
    assert numbers["found"] == ["Küche"]
    kitchen = next(each for each in numbers["labels"] if each["name"] == "Küche")
    assert kitchen["frequency"] == 20 and list(kitchen["related"]) == ["Handwerk"]
    known = TextTagger.load(tagger)
    own = make_label_map(known.model.train_labels_)
    strength = own.strength[known.labels_.index("Küche"), 0]
    assert kitchen["related"]["Handwerk"] == pytest.approx(strength, abs=1e-4)
    assert "Label map: 4 labels on 60 points" in (tmp_path / "l.svg").read_text("utf-8")
    done = run("plot", "all", docs, "--model", tagger, "-o", tmp_path / "all", "--format", "pdf")
    assert done.exit_code == 0, done.output
    names = ["training", "reliability", "frequency", "labels"]
    assert [line for line in done.output.splitlines() if line.startswith("drew")] == [
        f"drew {tmp_path / 'all' / name}.pdf" for name in names
    ]
    for name in names:
        assert (tmp_path / "all" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    seconds = json.loads(run("plot", "training", "-m", tagger, "--json").stdout)["seconds"]
    assert next(iter(seconds)) == "count words"  # the texts' own stage comes before the model's
    assert seconds == known.model.seconds_


def test_names_that_no_font_can_write_are_counted(tmp_path: Path) -> None:
    names = [f"{UNASSIGNED} soup", "sea", "plain"]
    rows = [{"text": TOPICS["Bau"], "labels": names[: i % 3 + 1]} for i in range(30)]
    docs = tmp_path / f"docs {UNASSIGNED} $x$.jsonl"
    docs.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    columns = ["--text", "text", "--labels", "labels"]
    assert run("train", docs, *columns, "-m", tmp_path / "m", "-q").exit_code == 0
    done = run("plot", "all", docs, "-m", tmp_path / "m", "-o", tmp_path, "--format", "svg", "-q")
    assert done.exit_code == 0, done.output
    assert done.stderr == (
        "no installed font can write the names of 1 of 3 labels: they stand on the map by their "
        "numbers, which count those of --json from 0\n"
    )
    assert r"on docs \u0378 $x$.jsonl" in (tmp_path / "frequency.svg").read_text("utf-8")


def test_all_leaves_out_what_a_method_has_not(files: Path, tmp_path: Path) -> None:
    model = files / "one-vs-all"
    done = run("plot", "all", files / "test.txt", "-m", model, "-o", tmp_path / "p", "--json")
    assert done.exit_code == 0, done.output
    assert list(json.loads(done.stdout)) == ["training", "frequency"]
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == [
        "frequency.png",
        "training.png",
    ]
    assert "reliability left out: the scores of one-vs-all are no probabilities" in done.stderr
    assert "labels left out: a model of method 'one-vs-all' keeps no training" in done.stderr


def test_mistakes_are_one_sentence(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    joint, margins, test = files / "joint", files / "one-vs-all", files / "test.txt"
    old = shutil.copytree(margins, tmp_path / "old")
    config = {name: value for name, value in read_config(old).items() if name != "sha256"}
    (old / "config.json").write_bytes(sealed(config | {"seconds": {}}))
    nowhere = tmp_path / "x.gif"
    cases: dict[tuple[object, ...], str] = {
        ("training", "-m", joint, "-o", nowhere): ".png, .svg or .pdf, got 'x.gif'",
        ("training", "-m", old): "neither the losses nor the seconds of its training",
        ("training", "-m", tmp_path): "no model here",
        ("reliability", test, "-m", margins): "Those of joint are.",
        ("reliability", test, "-m", joint, "--text", "a"): "which takes features, not texts",
        ("labels", "-m", margins): "Those of joint, dxml, knn and sleec do.",
        ("labels", "-m", joint, "--find", "12"): "there is no label '12'; did you mean '2",
        ("frequency", files / "docs.jsonl", "-m", files / "tagger", "--split", 1): "no splits",
    }
    for arguments, sentence in cases.items():
        said = fails(capsys, "plot", *arguments)
        assert sentence in said and "Traceback" not in said, said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old"]


def test_without_matplotlib_nothing_is_ranked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is not even opened: there is none."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.chdir(tmp_path)
    for kind in ("training", "labels", "reliability", "frequency", "all"):
        data = [] if kind in ("training", "labels") else ["test.txt"]
        said = fails(capsys, "plot", kind, *data, "-m", "nowhere")
        assert "figures need matplotlib: install with: pip install 'dxml[plot]'" in said
    assert "no model here" in fails(capsys, "plot", "training", "-m", "nowhere", "--json")
