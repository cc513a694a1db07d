"""The page about reliability shows what is stored, and names tests that are there."""

from __future__ import annotations

import ast
import json
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from .scripts import BENCHMARKS, load_script

ROOT = Path(__file__).parents[2]


def test_every_test_that_the_page_names_is_there() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/.]+)`", text)
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)
    assert set(re.findall(r"`make ([\w-]+)`", text)) <= set(targets)


def test_the_page_says_which_of_the_named_tests_ci_does_not_run() -> None:
    """Those that no command of .ci/run has: slow ones, and those of Ray that its short form skips.

    Tests of GPUs and published weights are not meant: no file of theirs is named.
    """
    text = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    first = text.partition("\n## ")[0]
    runs = ROOT / ".ci" / "run"  # not in the sdist
    if runs.exists():
        asked = runs.read_text("utf-8").split()
        assert "ray-short" in asked and not {"ray", "test-slow"} & set(asked)
    [chosen] = re.findall(r'tests/_ray -k "(.*)"', (ROOT / "Makefile").read_text("utf-8"))
    missed = set()
    for path in sorted(set(re.findall(r"`(tests/[\w/]+\.py)`", text))):
        for node in ast.parse((ROOT / path).read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                marks = " ".join(map(ast.unparse, node.decorator_list))
                on_ray = path.startswith("tests/_ray/")
                kept = any(word in node.name for word in re.findall(r"\w+_\w+", chosen))
                if "mark.slow" in marks or "mark.network" in marks or (on_ray and not kept):
                    missed.add(node.name)
    assert missed == set(re.findall(r"`(test_\w+)`", first))


def test_checkpoints_that_take_too_long_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    module = load_script("checkpoints")
    shares = {"joint": 0.0299, "dxml": 0.001}
    monkeypatch.setattr(sys, "argv", ["checkpoints.py", "bibtex"])
    monkeypatch.setattr(
        module, "features", lambda _, name: {"training": name, "share": found[name]}
    )
    found = shares
    module.main()
    found = {**shares, "joint": 0.03}
    with pytest.raises(SystemExit, match=r"^joint: storing took 3\.0% of the rest, 3% or more$"):
        module.main()
    stored = json.loads((BENCHMARKS / "results" / module.STORED).read_text("utf-8"))
    assert [module.judge(run["trainings"]) for run in stored] == [[]] * len(stored)
    page = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    assert f"less than {100 * module.MOST:.0f} % of a training" in page


def test_no_last_run_lost_or_crashed_anything() -> None:
    module = load_script("reliability")
    runs = module.stored(module.FAULTS)
    newest = {name: run for run in runs for name in run["scenarios"]}
    assert not any(run["problems"] for run in newest.values())
    assert all("note" in run for run in runs if run["problems"])
    last = module.stored(module.MODELS)[-1]
    for name in ("checksums as they were", "written again"):
        assert not any(last[name][kind] for kind in ("signal", "hang", "wrong kind"))
    assert last["checksums as they were"]["different"] == 0
    assert module.stored(module.READERS)[-1]["crashes"] == 0


RAN = {"command": "make it", "machine": "a machine", "began": "2026-01-02T03:04:05Z"}
STEADY = {
    "what": "steady",
    "workers": 4,
    "minutes": 10,
    "requests": 100_000,
    "statuses": {"200": 99_998, "503": 2},
    "p50_ms": 3.1,
    "p99_ms": 20.0,
}
LARGE = {
    "method": "knn",
    "stored": 2_147_483_650,
    "points": 600_000,
    "right before": "7 of 8",
    "right behind": "9 of 9",
    "memory": "6GB",
    "peak": 400_000_000,
    "cpu": 1234,
}
SUITE = {"passed": 4000, "failed": 1, "skipped": 2, "versions": {"numpy": "2.0"}}
TRAINED = {"training": "texts", "seconds": 1234.5, "stored": 3, "storing": 1.5, "share": 0.0012}


def test_runs_become_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    module = load_script("reliability")
    planted = {
        module.SOAK: [
            RAN | STEADY | {"megabytes": {"ratio": 1.004}},
            RAN | STEADY | {"workers": 1, "megabytes": {}},
        ],
        module.SCHEMA: [RAN | {"models": {"tagger": {"requests": 4321, "right": True}}}],
        module.LARGE: [RAN | LARGE],
        module.VERSIONS: [{"command": "make it", "ended": RAN["began"]} | SUITE],
        module.CHECKPOINTS: [
            RAN | {"trainings": [TRAINED | {"stored": 2}]},
            RAN | {"trainings": [TRAINED, TRAINED | {"training": "more", "every": 180.0}]},
            RAN | {"command": "make more", "trainings": [TRAINED | {"training": "trees"}]},
        ],
    }
    monkeypatch.setattr(module, "stored", planted.__getitem__)
    assert module._steady()[2:4] == [
        "| 4 | 10 | 100,000 | 2 | 3.1 | 20 | 1.00 |",
        "| 1 | 10 | 100,000 | 2 | 3.1 | 20 | too short |",
    ]
    assert module._schema()[2] == "| a tagger | 4,321 | all |"
    assert module._checkpoints()[2:] == [
        "| texts | 1,234.5 | 3 | 1.5 | 0.12 % |",
        "| more | 1,234.5 | 3 | 1.5 | 0.12 %, one in 180 s |",
        "| trees | 1,234.5 | 3 | 1.5 | 0.12 % |",
        "",
        "`make it` on a machine, 2026-01-02. `make more` on a machine, 2026-01-02.",
    ]
    assert module._large()[2] == (
        "| `knn` | 2,147,483,650 | 600,000 | 7 of 8 | 9 of 9 | 6GB | 400 MB | 1,234 |"
    )
    assert module._versions()[2] == "| `make it`, 2026-01-02 | 4,000 | 1 | 2 | numpy 2.0 |"
    assert module._steady()[-1] == "`make it` on a machine, 2026-01-02."


def test_kinds_of_runs_that_are_not_stored_have_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    module = load_script("reliability")
    monkeypatch.setattr(module, "stored", lambda name: [])
    assert module._steady() == module._schema() == module._checkpoints() == []
    assert module._large() == module._versions() == []


def test_growth_of_what_rises_and_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    module = import_module("soaked_service")
    teeth = [0.2, 1.0, 5.0, 0.3, 0.2, 5.1, 2.0, 0.2] * 4

    def samples(values: list[float]) -> list[object]:
        return [module.Sample(i, 4, 0.0, 0, value) for i, value in enumerate(values)]

    assert module.peaks(samples(teeth), "disk")["ratio"] == 1.0
    growing = [value * (1 + i / 16) for i, value in enumerate(teeth)]
    assert module.peaks(samples(growing), "disk")["ratio"] > 1.5
    assert module.peaks(samples(teeth[:3]), "disk") == {}


def test_the_last_soak_lost_nothing() -> None:
    last = [run for run in load_script("reliability").stored("soak.json") if run["what"] == "soak"][
        -1
    ]
    assert last["wrong_texts"] == last["unexplained"] == last["dead_clients"] == []
    assert last["texts"] > 50 and sum(last["upheavals"].values()) >= 5
