"""``--precision`` and ``--recall``: the threshold that a model promises, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dxml.baselines.knn import KNN
from dxml.data import make_planted, write
from dxml.joint import Joint
from dxml.tagging import Columns, TextTagger

from .asking import fails, run

DATA = make_planted(500, 60, 8, labels_per_point=1.5, features_per_point=8, random_state=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of features and of texts, and new points for both."""
    made = tmp_path_factory.mktemp("promise")
    train, new = DATA.take(np.arange(300)), DATA.take(np.arange(300, 500))
    Joint(candidates="nearest", width=0, C=1.0).fit(train.X, train.Y).save(made / "joint")
    KNN().fit(train.X, train.Y).save(made / "knn")
    write(new, made / "new.txt")
    texts = [" ".join(f"w{i}x" for i in row.indices) for row in DATA.X]
    labels = [[f"l{i}" for i in row.indices] for row in DATA.Y]
    tagger = TextTagger(candidates="nearest", width=0, min_df=1, C=1.0)
    tagger.columns = Columns(("text",), "labels")
    tagger.fit(texts[:300], labels[:300]).save(made / "tagger")
    rows = zip(texts[300:], labels[300:], strict=True)
    lines = (json.dumps({"text": text, "labels": own}) + "\n" for text, own in rows)
    (made / "new.jsonl").write_text("".join(lines), "utf-8")
    return made


@pytest.mark.parametrize(("model", "data"), [("joint", "new.txt"), ("tagger", "new.jsonl")])
@pytest.mark.parametrize("promise", [("--precision", 0.8), ("--recall", 0.6)])
def test_predict_and_evaluate_keep_the_same_threshold(
    folder: Path, model: str, data: str, promise: tuple[str, float]
) -> None:
    """What `evaluate` says of it is what the labels that `predict` writes come to."""
    opened = (TextTagger if model == "tagger" else Joint).load(folder / model)
    threshold = opened.threshold_for(**{promise[0].strip("-"): promise[1]})
    asked = (folder / data, "-m", folder / model)
    rows = run("predict", *asked, "--json", *promise).stdout.splitlines()
    written = [json.loads(row)["labels"] for row in rows]
    expected = run("predict", *asked, "--json", "--threshold", threshold).stdout.splitlines()
    assert rows == expected and any(written)
    scores = json.loads(run("evaluate", *asked, "--json", *promise).stdout)
    assert scores["threshold"] == pytest.approx(threshold, abs=1e-4)
    truth = DATA.Y[300:].toarray()
    right = sum(
        truth[i, int(str(each["label"]).strip("l"))]
        for i, row in enumerate(written)
        for each in row
    )
    given = sum(map(len, written))
    assert scores["precision"] == pytest.approx(100 * right / given, abs=1e-3)
    assert scores["recall"] == pytest.approx(100 * right / truth.sum(), abs=1e-3)
    said = run("evaluate", *asked, *promise).stdout
    assert f"promised threshold {threshold:.3f}: F1" in said


def test_what_contradicts_a_promise(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("predict", folder / "new.txt", "-m", folder / "joint")
    assert "give one of --threshold, --precision" in fails(
        capsys, *asked, "--precision", 0.8, "--threshold", 0.5
    )
    assert "drop --top" in fails(capsys, *asked, "--recall", 0.8, "--top", 3)
    assert "give --precision or --recall, one of both" in fails(
        capsys, *asked, "--recall", 0.8, "--precision", 0.8
    )
    refused = fails(capsys, *asked, "--precision", 0.9999)
    assert "no threshold keeps a precision of 0.9999" in refused and "--threshold" in refused
    other = ("predict", folder / "new.txt", "-m", folder / "knn", "--precision", 0.8)
    assert "a model of method 'knn' can promise no precision" in fails(capsys, *other)
