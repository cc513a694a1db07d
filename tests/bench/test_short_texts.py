"""benchmarks/short_texts.py on tables that are made up."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from dxml import __version__

from .scripts import load_script

short_texts = load_script("short_texts")


QUICK = "joint:C=1,candidates=nearest,n_trees=0,vectors=none,width=0"


def write(path: Path, n: int, seed: int) -> None:
    """Texts of filler and one word that is their label."""
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        for _ in range(n):
            label = f"word{rng.integers(5)}"
            words = [label, *(f"filler{i}" for i in rng.integers(0, 9, size=4))]
            file.write(json.dumps({"text": " ".join(words), "labels": [label]}) + "\n")


@pytest.mark.slow
def test_rows_are_added_with_where_they_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a-train.jsonl", 400, 0)
    write(tmp_path / "a-test.jsonl", 50, 1)
    monkeypatch.setattr(short_texts, "HELD", 100)
    out, table = tmp_path / "out.json", str(tmp_path / "a-train.jsonl")
    for more in ([], ["--test"]):
        told = ["x", table, QUICK, f"{QUICK},char_ngrams=3", "--results", str(out), *more]
        monkeypatch.setattr(sys, "argv", told)
        short_texts.main()
    rows = json.loads(out.read_text())["runs"]
    assert [(row["run"], row["part"], row["learnt"], row["ranked"]) for row in rows] == [
        (QUICK, "held out", 300, 100),
        (f"{QUICK},char_ngrams=3", "held out", 300, 100),
        (QUICK, "test", 400, 50),
        (f"{QUICK},char_ngrams=3", "test", 400, 50),
    ]
    assert all(row["P@1"] == 100 and row["seconds"]["train"] > 0 for row in rows)
    assert all({"machine", "threads", "commit", "command"} <= row.keys() for row in rows)
    log = (out.parent / "test-log.jsonl").read_text("utf-8").splitlines()
    told = [(line["run"], line["version"]) for line in map(json.loads, log)]
    runs = (QUICK, f"{QUICK},char_ngrams=3")
    assert told == [(f"a-train {run}", __version__) for run in runs], "only of test points"


def test_labels_that_were_not_learnt_are_left_out() -> None:
    found = short_texts.indicator([["b", "z"], []], {"a": 0, "b": 1})
    assert found.toarray().tolist() == [[False, True], [False, False]]
