"""``dxml predict``: texts that are no table, features without labels, thresholds, CSV."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._cli._rankers import Job
from dxml._cli._write import Row, _csv, _pieces
from dxml.baselines.knn import KNN
from dxml.data import make_planted
from dxml.exceptions import ParameterError
from dxml.tagging import Columns, TextTagger
from dxml.topk import TopK

from .asking import fails, run

TEXTS = ["fish in the sea", "the sea has fish", "soup with salt", "a soup of salt"] * 4
LABELS = [["ocean"], ["ocean", "water"], ["food"], ["food"]] * 4


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tagger = TextTagger(candidates="nearest", width=0, min_df=1)
    tagger.columns = Columns(("title", "abstract"), "labels", "nr")
    return tagger.fit(TEXTS, LABELS).save(tmp_path_factory.mktemp("predict") / "m")


def first_labels(said: str) -> dict[str, str]:
    """The first label of each point, from tsv."""
    lines = [line.split("\t") for line in said.splitlines()[1:]]
    return {point: label for point, rank, label, _ in lines if rank == "1"}


def test_texts_come_from_a_folder_a_file_and_standard_input(model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("fish and the sea", "utf-8")
    (tmp_path / "b.txt").write_text("salt\nin soup", "utf-8")
    done = run("predict", tmp_path, "-m", model, "-q")
    assert first_labels(done.output) == {"a.txt": "ocean", "b.txt": "food"}
    done = run("predict", tmp_path / "b.txt", "-m", model, "-q")
    assert first_labels(done.output) == {"b.txt": "food"}
    done = run("predict", "-", "-m", model, "-q", typed="fish\nof the sea\n")
    assert first_labels(done.output) == {"-": "ocean"}
    done = run("predict", "-", "-m", model, "-q", "--lines", typed="fish\n\nsoup\n")
    assert first_labels(done.output) == {"-:1": "ocean", "-:3": "food"}
    array = json.dumps([{"title": "fish", "abstract": None, "nr": "x"}])
    done = run("predict", "-", "-m", model, "-q", typed=array)
    assert first_labels(done.output) == {"x": "ocean"}
    done = run("predict", "-", "-m", model, "-q", typed='["fish", "soup"]')
    assert first_labels(done.output) == {"0": "ocean", "1": "food"}, "any column will do"


@pytest.mark.parametrize("mark", [",", "\t", ";"])
def test_a_table_may_come_by_standard_input(
    model: Path, mark: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [["nr", "title", "abstract"], ["x", "fish", "the sea"], ["y", "soup", "salt"]]
    table = "".join(f"{mark.join(row)}\n" for row in rows)
    done = run("predict", "-", "-m", model, "-q", typed=table)
    assert first_labels(done.stdout) == {"x": "ocean", "y": "food"}
    done = run("predict", "-", "-m", model, "-q", "--lines", typed=table)
    assert list(first_labels(done.stdout)) == ["-:1", "-:2", "-:3"], "lines were asked for"
    other = table.replace("abstract", "remarks").encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(other)))
    said = fails(capsys, "predict", "-", "-m", model)
    assert "standard input seems to be a table: there is no column 'abstract'; known: nr, " in said
    assert "remarks, title. Name the columns with --text" in said and ".txt" in said


@pytest.mark.parametrize(
    "text",
    [
        "Fish, soup and salt,\nwhich are eaten, often,\nby the sea",
        "Salt, pepper\nfish, soup",
        "fish,soup",
        "fish,soup\nof the sea\nand its salt",
        "\tFish of the sea\n\tand soup",
        "fish,fish\nsoup,salt",
        "fish,soup\n" + "of the sea " * 20_000,
        "fish,soup\nof\rthe,sea",
    ],
)
def test_a_text_with_commas_or_tabs_is_a_text(model: Path, text: str) -> None:
    done = run("predict", "-", "-m", model, "-q", typed=text)
    assert list(first_labels(done.stdout)) == ["-"]


def test_an_error_names_the_options_and_is_no_table(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("title\nfish\n", "utf-8")
    said = fails(capsys, "predict", tmp_path / "t.csv", "-m", model)
    assert "there is no column 'abstract'; known: title. Name the columns with --text" in said
    assert run("predict", tmp_path / "t.csv", "-m", model, "-q").stdout == ""
    done = run("predict", tmp_path / "t.csv", "-m", model, "-q", "--text", "title")
    assert first_labels(done.output) == {"0": "ocean"}
    assert list(_pieces([], "csv", "score")) == ["point,labels,scores\r\n"]
    two = [[Row(0, [("a", 1.0)])], [Row(1, [("b", 1.0)])]]
    assert "".join(_pieces(two, "tsv", "score")).count("point") == 1


def test_a_threshold_keeps_what_is_probable_enough(model: Path) -> None:
    """As deep as it goes, and the same labels that a longer ranking has above it."""
    many = run("predict", "-", "-m", model, "-q", "--top", 3, "--json", typed="fish of the sea")
    ranked = [(tag["label"], tag["probability"]) for tag in json.loads(many.output)["labels"]]
    least = ranked[1][1] - 1e-6  # it was rounded
    some = run(
        "predict", "-", "-m", model, "-q", "--threshold", least, "--json", typed="fish of the sea"
    )
    kept = [(tag["label"], tag["probability"]) for tag in json.loads(some.output)["labels"]]
    assert kept == [each for each in ranked if each[1] >= least] and 0 < len(kept) < 3
    none = run("predict", "-", "-m", model, "-q", "--threshold", 1, "--json", typed="fish of soup")
    assert json.loads(none.output)["labels"] == []


def test_csv_has_a_row_a_text(model: Path, tmp_path: Path) -> None:
    (tmp_path / "a, b.txt").write_text("fish and the sea", "utf-8")
    (tmp_path / "c.txt").write_text("soup", "utf-8")
    done = run("predict", tmp_path, "-m", model, "-q", "--format", "csv", "-o", tmp_path / "o.csv")
    assert done.exit_code == 0, done.output
    with (tmp_path / "o.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["point", "labels", "probabilities"]
    assert [row[0] for row in rows] == ["a, b.txt", "c.txt"]
    assert [row[1].split(";")[0] for row in rows] == ["ocean", "food"]
    assert all(len(row[1].split(";")) == len(row[2].split(";")) for row in rows)


def test_csv_separates_labels_by_a_mark_or_lists_them() -> None:
    said = _csv(Row("x", [("a;b", 0.5), ("c", 0.25)]), "probability")
    assert list(csv.reader(io.StringIO(said))) == [["x", '["a;b", "c"]', "[0.5, 0.25]"]]
    said = _csv(Row("x", [("a|b", 0.5), ("c", 0.25)]), "probability")
    assert list(csv.reader(io.StringIO(said))) == [["x", "a|b;c", "0.5;0.25"]]


def test_features_may_come_without_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = make_planted(60, 30, 5, random_state=0)
    KNN().fit(data.X, data.Y).save(tmp_path / "m")
    sp.save_npz(tmp_path / "X.npz", data.X[:7])
    wanted = run("predict", tmp_path / "X.npz", "-m", tmp_path / "m", "-q", "--top", 1)
    assert wanted.exit_code == 0, wanted.output
    assert len(first_labels(wanted.output)) == 7
    assert run("predict", tmp_path, "-m", tmp_path / "m", "-q", "--top", 1).output == wanted.output
    said = fails(capsys, "evaluate", tmp_path / "X.npz", "-m", tmp_path / "m")
    assert "one .npz holds one matrix, expected two" in said
    bad = data.X[:7].copy()
    bad.data[0] = np.nan
    sp.save_npz(tmp_path / "X.npz", bad)
    assert "expected a finite number" in fails(
        capsys, "predict", tmp_path / "X.npz", "-m", tmp_path / "m"
    )


def test_a_threshold_goes_with_probabilities() -> None:
    ranking = TopK(np.array([[1]], np.int32), np.array([[3]], np.float32))
    with pytest.raises(ParameterError, match="the scores of method 'lpsr' are none: take --top"):
        Job(Path("m"), "tsv", threshold=0.5).wanted(ranking, "lpsr")
