"""Where stored results come from: commit, command, machine, threads, device, seed, versions."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dxml.bench import _machine
from dxml.bench._machine import circumstances, commit, machine_name

from .scripts import BENCHMARKS

ROOT = BENCHMARKS.parent
RESULTS = BENCHMARKS / "results"
TOLD = {"command", "commit", "date", "machine", "threads", "device", "seed", "versions"}
PROGRAMS = sorted(
    [
        *BENCHMARKS.glob("*.py"),
        *(path for name in ("fuzz", "faults") for path in (ROOT / "tests" / name).glob("*.py")),
        ROOT / "tests" / "versions.py",
    ]
)
WRITES = re.compile(r"\b(?:add_result|write_results)\(|\bstarted\(|--output.*figures")
TELLS = {"circumstances", "started"}
"""Functions that say where a result comes from."""
OLDER = {
    "annif-beside.json": 1,
    "calibration.jsonl": 82,
    "checkpoints.json": 3,
    "cluster-plan.json": 1,
    "contents-paths.json": 12,
    "deep-names.jsonl": 2,
    "deep-scale.jsonl": 2,
    "faults.json": 12,
    "fuzz-models.json": 9,
    "fuzz-readers.json": 4,
    "growth.json": 8,
    "incremental.jsonl": 15,
    "large-twins.jsonl": 14,
    "memory.json": 1,
    "opening.json": 1,
    "parts-worth.jsonl": 3,
    "plain-processes.json": 1,
    "ray-scaling.json": 1,
    "schema.json": 2,
    "short-texts.json": 9,
    "soak.json": 5,
    "startup.json": 1,
    "teaching-choices.json": 1,
    "teaching.json": 1,
    "twins.json": 6,
    "two-billion.json": 1,
    "versions.json": 4,
}
"""Records of before each said all of this. Measured anew, a line may become shorter, or go."""


def test_all_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks/some.py", "--at", "/home/somebody/of/data"])
    monkeypatch.setitem(sys.modules, "__main__", type(sys)("__main__"))
    told = circumstances(device="cpu", seed=[0, 1])
    assert told.keys() == TOLD
    assert told["command"] == "python benchmarks/some.py --at data"
    assert told["threads"] >= 1 and told["seed"] == [0, 1] and told["device"] == "cpu"
    assert told["versions"]["numpy"] and "cores" in told["machine"]
    assert circumstances(device="cuda", seed=0, threads=3, started="it")["threads"] == 3
    with pytest.raises(TypeError, match="missing 2 required keyword-only arguments"):
        circumstances()  # type: ignore[call-arg]
    assert machine_name(told["machine"]) == told["machine"]


def test_a_module_is_told_by_its_name(tmp_path: Path) -> None:
    said, path = "from dxml.bench._machine import command; print(command())", tmp_path
    (path / "telling.py").write_text(said)
    asked = [sys.executable, "-m", "telling", "--trials", "7"]
    done = subprocess.run(asked, cwd=path, capture_output=True, text=True, check=True)
    assert done.stdout == "python -m telling --trials 7\n"
    (path / "told").mkdir(exist_ok=True)
    (path / "told" / "__main__.py").write_text(said)
    asked = [sys.executable, "-m", "told"]
    done = subprocess.run(asked, cwd=path, capture_output=True, text=True, check=True)
    assert done.stdout == "python -m told\n"


@pytest.mark.parametrize(
    ("changed", "clean"),
    [
        ("src/dxml/page.html", False),
        ("benchmarks/growth.py", False),
        ("benchmarks/some.toml", False),
        ("benchmarks/results/growth.json", True),
        ("docs/guide/large.md", True),
    ],
)
def test_a_changed_program_is_told_with_the_commit(
    changed: str, clean: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DXML_COMMIT", raising=False)
    for name in ("src/dxml/__init__.py", changed):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(_machine.dxml, "__file__", str(tmp_path / "src/dxml/__init__.py"))
    assert re.fullmatch("[0-9a-f]{12}", commit())
    (tmp_path / changed).write_text("after")
    assert commit().endswith("+") != clean


def called(program: Path) -> set[str]:
    """Names of the functions that a program calls."""
    calls = [n for n in ast.walk(ast.parse(program.read_text("utf-8"))) if isinstance(n, ast.Call)]
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)}


def test_every_program_that_stores_tells_where_it_comes_from() -> None:
    own = ("stored_results.py", "pages.py", "record.py")
    storing = [
        path for path in PROGRAMS if path.name not in own and WRITES.search(path.read_text("utf-8"))
    ]
    assert len(storing) > 25
    silent = [str(path.relative_to(ROOT)) for path in storing if not called(path) & TELLS]
    assert silent == []


def test_no_program_tells_a_part_of_it_by_itself() -> None:
    parts = re.compile(r"\b(?:describe_machine|describe_versions|platform\.processor)\(")
    telling = [path.name for path in PROGRAMS if parts.search(path.read_text("utf-8"))]
    assert telling == []


def records(value: Any) -> Iterator[dict[str, Any]]:
    """Whatever has a commit of its own."""
    if isinstance(value, dict):
        if "commit" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from records(each)


def test_all_that_is_stored_says_where_it_comes_from() -> None:
    short: Counter[str] = Counter()
    for path in sorted([*RESULTS.glob("*.json"), *RESULTS.glob("*.jsonl")]):
        text = path.read_text("utf-8")
        for part in text.splitlines() if path.suffix == ".jsonl" else [text]:
            told = [each.keys() >= TOLD for each in records(json.loads(part))]
            short[path.name] += told.count(False)
    del short["test-log.jsonl"]  # says when test points were scored, and of which run
    more = {name: count for name, count in short.items() if count > OLDER.get(name, 0)}
    assert more == {}, "new records lack something: store them with circumstances()"


def test_rows_of_experiments_say_where_they_come_from() -> None:
    """Those with a command, which is stored since 2026-11-18."""
    told = {"seeds", "machines", "threads", "devices", "commits", "rankings"}
    rows = [
        row
        for path in RESULTS.glob("*.json")
        for found in [json.loads(path.read_text("utf-8"))]
        if isinstance(found, dict) and "experiment" in found
        for row in found["rows"]
        if row.get("commands")
    ]
    assert len(rows) > 10
    assert [row["label"] for row in rows if not all(row.get(name) for name in told)] == []
