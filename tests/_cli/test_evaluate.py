"""``dxml evaluate``: labels that are not known, texts that are, labels one by one."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from dxml.tagging import Columns, TextTagger

from .asking import run

TEXTS = ["fish in the sea", "the sea has fish", "soup with salt", "a soup of salt"] * 4
LABELS = [["ocean"], ["ocean"], ["food"], ["food"]] * 4


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tagger = TextTagger(candidates="nearest", width=0, min_df=1)
    tagger.columns = Columns(("text",), "labels")
    long = "a long title about the fish that live in the sea"
    return tagger.fit([*TEXTS, long], [*LABELS, ["ocean"]]).save(
        tmp_path_factory.mktemp("evaluate") / "m"
    )


def table(path: Path, *rows: tuple[str, list[str]]) -> Path:
    lines = (json.dumps({"text": text, "labels": labels}) + "\n" for text, labels in rows)
    path.write_text("".join(lines), "utf-8")
    return path


def test_unknown_labels_are_misses_and_are_counted(model: Path, tmp_path: Path) -> None:
    """By hand: one of four labels of a text can be found, and is."""
    data = table(tmp_path / "t.jsonl", ("fish of the sea", ["ocean", "x", "y", "z"]))
    done = run("evaluate", data, "-m", model, "--json")
    scores = json.loads(done.stdout)
    assert scores["P@1"] == 100 and scores["R@1"] == 25 and scores["unknown_labels"] == 3
    assert "of 4 labels the model does not know 3 (3 names, such as 'x')" in done.stderr
    one = table(tmp_path / "one.jsonl", ("fish of the sea", ["ocean", "x"]))
    said = run("evaluate", one, "-m", model, "--json").stderr
    assert "of 2 labels the model does not know 1 (1 name, such as 'x'): they count" in said


def test_short_texts_that_were_trained_on_are_noticed_where_most_are(
    model: Path, tmp_path: Path
) -> None:
    known, new = [("fish in the sea", ["ocean"])], [("a new text", ["ocean"])]
    most = table(tmp_path / "most.jsonl", *known * 6, *new * 5)
    few = table(tmp_path / "few.jsonl", *known * 5, *new * 5)
    said = run("evaluate", most, "-m", model).stderr
    assert "warning: 6 of 11 texts were trained on or learnt" in said
    assert "warning" not in run("evaluate", few, "-m", model).stderr


def test_ids_tell_short_texts_that_were_trained_on(tmp_path: Path) -> None:
    tagger = TextTagger(min_df=1).fit(TEXTS, LABELS, ids=[f"t{i}" for i in range(len(TEXTS))])
    tagger.columns = Columns(("text",), "labels", "id")
    tagger.save(tmp_path / "m")
    rows = [f"t0,{TEXTS[0]},ocean", f"n1,{TEXTS[1]},ocean", *(f"n{i},a sea,food" for i in (2, 3))]
    (tmp_path / "t.csv").write_text("\n".join(["id,text,labels", *rows]), "utf-8")
    said = run("evaluate", tmp_path / "t.csv", "-m", tmp_path / "m").stderr
    assert "warning: 1 of 4 texts were trained on or learnt" in said, "n1 may be another text"


def test_texts_that_were_trained_on_are_noticed(model: Path, tmp_path: Path) -> None:
    """By a long title; short ones may be others' too."""
    known = ("a long title about the fish that live in the sea", ["ocean"])
    data = table(tmp_path / "t.jsonl", known, ("fish in the sea", ["ocean"]))
    assert (
        "warning: 1 of 2 texts were trained on or learnt"
        in run("evaluate", data, "-m", model).stderr
    )
    data = table(tmp_path / "t.jsonl", ("fish and the sea", ["ocean"]))
    assert "warning" not in run("evaluate", data, "-m", model).stderr


def test_each_label_and_the_best_threshold(model: Path, tmp_path: Path) -> None:
    rows = [("fish of the sea", ["ocean"]), ("salt and soup", ["food", "spice"])]
    data = table(tmp_path / "t.jsonl", *rows)
    done = run("evaluate", data, "-m", model, "--per-label", tmp_path / "labels.csv", "-q")
    assert done.exit_code == 0, done.output
    assert (
        "best threshold 0." in done.stdout
        and "F1 80.00, precision 100.00, recall 66.67" in done.stdout
    )
    with (tmp_path / "labels.csv").open(newline="", encoding="utf-8") as file:
        found = {row["label"]: row for row in csv.DictReader(file)}
    assert found["spice"]["trained"] == "0" and found["spice"]["recall"] == "0.00"
    assert found["food"]["right"] == "1" and found["ocean"]["trained"] == "9"
    assert [found[name]["F1"] for name in ("food", "ocean", "spice")] == [
        "100.00",
        "100.00",
        "0.00",
    ]
