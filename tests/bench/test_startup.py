"""benchmarks/startup.py: each version has a copy of its own, and no refusal is measured."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from .scripts import BENCHMARKS, load_script

SOURCE = BENCHMARKS.parent / "src"


def test_a_command_must_end_as_it_should(tmp_path: Path) -> None:
    script = load_script("startup")
    asked = ["predict", "one.jsonl", "-m", "nowhere"]
    seen = script.measure(asked, 2, SOURCE, tmp_path)
    assert set(seen) == set(script.UNITS) and min(seen.values()) > 0
    with pytest.raises(SystemExit, match=r"ended with 2, not 0: error: nowhere") as stop:
        script.measure(asked, 0, SOURCE, tmp_path)
    assert str(SOURCE) in str(stop.value), "it says of which version"


def test_what_a_version_writes_the_other_does_not_see(tmp_path: Path) -> None:
    script = load_script("startup")
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    first, second = (script.prepare(tmp_path / name, model) for name in ("before", "now"))
    (second / "model" / "config.json").write_text("changed")
    assert (first / "model" / "config.json").read_text() == "{}"
    assert (first / "one.jsonl").exists() and (second / "one.jsonl").exists()


def test_versions_take_turns_and_the_first_does_not_count(tmp_path: Path) -> None:
    script = load_script("startup")
    order: list[str] = []

    def look(source: Path, folder: Path) -> dict[str, float]:
        order.append(source.name)
        seconds = {"old": [0.5, 8, 6], "new": [0.1, 2, 3]}[source.name][(len(order) - 1) // 2]
        return {"s": seconds, "cpu_s": 1.0, "mb": 10.0}

    versions = {"before": (Path("old"), tmp_path), "now": (Path("new"), tmp_path)}
    found = script.in_turn(look, versions, 2)
    assert order == ["old", "new"] * 3
    assert (found["before"]["s"], found["now"]["s"]) == (6, 2), "the least, less the first"
    told = script.with_ratios({"labels": found})["labels"]
    assert told["ratio"] == {"s": 0.333, "cpu_s": 1.0, "mb": 1.0}


def test_the_most_uneven_run_of_workers_counts() -> None:
    runs = [{"ms_a_request": 2.0, "busiest": 0.5}, {"ms_a_request": 1.0, "busiest": 0.9}]
    assert load_script("startup").least(runs) == {"ms_a_request": 1.0, "busiest": 0.9}


def test_requests_hold_titles_of_the_table_beside_the_model(tmp_path: Path) -> None:
    script = load_script("startup")
    (tmp_path / "made" / "model").mkdir(parents=True)
    rows = [{"text": f"title {i}\nand more"} for i in range(150)]
    table = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "made" / "new.jsonl").write_text(table)
    folder = script.prepare(tmp_path / "now", tmp_path / "made" / "model")
    assert script.points_of(folder, 1) == [f"title {i}" for i in range(150)]
    assert len((folder / "titles.jsonl").read_text().splitlines()) == 150
    batches = script.points_of(folder, 100)
    assert {len(batch) for batch in batches} == {100}
    assert batches[1] == [f"title {i % 150}" for i in range(100, 200)]


def test_the_cpu_of_a_process_without_children_is_its_own() -> None:
    script = load_script("startup")
    [(pid, seconds)] = script.cpu_of_workers(os.getpid()).items()
    assert pid == os.getpid() and 0 < seconds <= time.process_time() + 1


def test_the_record_says_what_it_was_measured_with() -> None:
    where = load_script("startup").where()
    assert where["commit"] and "cores" in where["machine"] and where["versions"]["python"]
