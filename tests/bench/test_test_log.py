"""Scripts write down that they scored test points, as runs of experiments do."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dxml.bench._machine import circumstances

from .scripts import BENCHMARKS, load_script

stored_results = load_script("stored_results")
SCORE_TEST = (
    "annif_beside",
    "calibration",
    "contents_paths",
    "joint_same",
    "short_texts",
    "suggest_next",
    "teaching",
    "twins",
)
"""Scripts that store what a model says of test points; `parts` and `load` store times alone."""


def test_a_line_says_what_was_scored_by_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["some/where/twins.py", "--only", "bibtex"])
    where = circumstances(device="cpu", seed=0, started="python benchmarks/twins.py --only bibtex")
    stored_results.log_test("bibtex", "knn", where, tmp_path)
    stored_results.log_test("bibtex", "joint", where, tmp_path)
    lines = (tmp_path / "test-log.jsonl").read_text("utf-8").splitlines()
    first, second = map(json.loads, lines)
    assert second["run"] == "bibtex joint" and second["id"] == "twins bibtex joint"
    assert first == {
        "date": where["date"],
        "run": "bibtex knn",
        "id": "twins bibtex knn",
        "version": where["versions"]["dxml"],
        "commit": where["commit"],
        "command": "python benchmarks/twins.py --only bibtex",
    }
    log = BENCHMARKS / "results" / "test-log.jsonl"
    assert set(first) == set(json.loads(log.read_text("utf-8").splitlines()[0]))


@pytest.mark.parametrize("name", SCORE_TEST)
def test_a_script_that_scores_test_points_logs_it(name: str) -> None:
    text = (BENCHMARKS / f"{name}.py").read_text("utf-8")
    assert text.count("log_test(") == 1, "imported by that name, and called once"
