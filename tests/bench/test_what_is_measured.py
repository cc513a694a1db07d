"""benchmarks/measurements.toml has a command for every stored result, and the commands are real."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest

from dxml.bench._measurements import Measurement, read_measurements
from dxml.bench._spec import measuring, shipped
from dxml.data import REGISTRY

from ..test_quoted_numbers import PAGES, SCORES, SOURCES
from .scripts import BENCHMARKS

ROOT, RESULTS = BENCHMARKS.parent, BENCHMARKS / "results"
ENTRIES = read_measurements(BENCHMARKS / "measurements.toml")
RECORDS = ("joint-experiments/", "deep-experiments/")
"""What was tried while the methods were made: the scripts are not kept, the records say so."""
LOG = "test-log.jsonl"
SCRIPTS = [entry for entry in ENTRIES.values() if entry.commands]


def test_every_stored_result_has_a_command() -> None:
    stored = {path.name for path in RESULTS.glob("*.json*")} - {LOG}
    assert {name for entry in ENTRIES.values() for name in entry.stores} == stored


def test_every_result_that_a_page_is_compared_with_has_an_entry_that_names_the_page() -> None:
    quoted = [
        (page, name)
        for table in (SOURCES, SCORES)
        for page, names in table.items()
        for name in names
        if not name.startswith(("../", *RECORDS))
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
    assert left == {"deep_trial.py"}, "its runs are records, in results/deep-experiments"
