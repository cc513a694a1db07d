"""``dxml bench`` end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dxml._cli.bench import app
from dxml.exceptions import ParameterError

EXPERIMENT = """
name = "tiny"
description = "A tiny one."
warm_up = false
processes = false
k = 5
[[runs]]
datasets = ["planted:n_samples=90,n_features=40,n_labels=6"]
splits = [1, 2]
methods = ["knn"]
"""


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_run_score_and_report(tmp_path: Path) -> None:
    file, results = tmp_path / "tiny.toml", tmp_path / "results"
    file.write_text(EXPERIMENT, "utf-8")
    said = run("run", file, "--results", results, "--device", "cpu")
    assert "tiny: 2 runs, 0 stored already" in said
    assert "1/2 planted:n_samples=90,n_features=40,n_labels=6 split 1 knn: done in" in said
    assert "s left" in said and "2 runs, 2 new, 0 failed" in said
    again = run("run", file, "--results", results, "--quiet")
    assert again.strip().endswith("tiny.json: 2 runs, 0 new, 0 failed")
    summary = json.loads((results / "tiny.json").read_text("utf-8"))
    assert summary["rows"][0]["scores"]["P@1"]["mean"] > 50
    part = run("run", file, "--results", results, "--only", "split 2", "--rerun")
    assert "tiny: 2 runs, 1 to do" in part and "2 runs, 1 new, 0 failed" in part
    assert "1 of them scored test points before, with this version of dxml" in part
    log = (results / "test-log.jsonl").read_text("utf-8").splitlines()
    assert len(log) == 3 and "split 2 knn" in json.loads(log[-1])["run"]
    summary = json.loads((results / "tiny.json").read_text("utf-8"))
    (results / "tiny.json").unlink()
    assert run("score", file, "--results", results, "--quiet") == ""
    assert json.loads((results / "tiny.json").read_text("utf-8")) == summary
    output = tmp_path / "page"
    drawn = ("--output", output, "--no-plots", "--experiment", "tiny")
    assert run("report", "--results", results, *drawn, "-q") == ""
    assert "A tiny one." in (output / "benchmarks.md").read_text("utf-8")


def test_all_means_every_experiment_but_that_of_tiny_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tiny", "other", "smoke"):
        text = EXPERIMENT.replace('"tiny"', f'"{name}"')
        (tmp_path / f"{name}.toml").write_text(text, "utf-8")
    found = {path.stem: path for path in sorted(tmp_path.glob("*.toml"))}
    monkeypatch.setattr("dxml.bench._spec.shipped", lambda: found)
    said = run("run", "all", "--results", tmp_path / "results", "--device", "cpu")
    assert "other: 2 runs, 0 stored already" in said
    assert "tiny: 2 runs, 2 stored already" in said and "smoke" not in said
    summary = json.loads((tmp_path / "results" / "tiny.json").read_text("utf-8"))
    assert summary["rows"][0]["commands"][0].startswith("dxml")


def test_list_shows_the_experiments() -> None:
    listed = run("list")
    for name in ("smoke", "paper-small", "paper-eurlex", "baselines", "ablation", "peers"):
        assert name in listed


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="unknown device 'cdua'; did you mean 'cuda'"):
        run("run", "smoke", "--results", tmp_path, "--device", "cdua")
