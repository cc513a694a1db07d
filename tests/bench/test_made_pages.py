"""What scripts write into pages is what is stored, and is written by ``make docs``."""

from __future__ import annotations

import json
import re
import shutil
import sys
from importlib import import_module
from pathlib import Path

import pytest

from .scripts import BENCHMARKS, load_script

ROOT = BENCHMARKS.parent
MARK = re.compile(r"<!-- [^>]*made by benchmarks/(\w+)\.py -->")
PAGES = [Path("README.md"), *(path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md"))]


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pages in a folder of their own, which the scripts take for the repository."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for page in PAGES:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / page, tmp_path / page)
    monkeypatch.setattr(import_module("stored_results"), "ROOT", tmp_path)
    return tmp_path


def test_the_pages_are_made_from_the_stored_results(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {}
    for page in PAGES:
        text = (copy / page).read_text("utf-8")
        before[page] = text
        # A table that nobody writes again is noticed, since its first number is gone.
        emptied = re.sub(rf"({MARK.pattern}\s+\|.*?\n\|[-:| ]+\n)\|.*?\n", r"\1", text)
        (copy / page).write_text(emptied, "utf-8")
    monkeypatch.setattr(sys, "argv", ["pages.py"])
    load_script("pages").main()
    stale = [str(page) for page in PAGES if (copy / page).read_text("utf-8") != before[page]]
    assert stale == [], "run: make docs"


def test_every_script_that_a_page_names_is_asked_for_its_part() -> None:
    scripts = load_script("pages").SCRIPTS
    named = {name for page in PAGES for name in MARK.findall((ROOT / page).read_text("utf-8"))}
    assert named <= set(scripts) and len(named) >= 8
    assert all((BENCHMARKS / f"{name}.py").is_file() for name in scripts)


def test_one_part_is_written_alone(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [copy / "docs" / "guide" / name for name in ("large.md", "tagging.md")]
    whole = pages[0].read_text("utf-8")
    pages[0].write_text(whole.replace("| joint | points, 20,000", "| joint | points, 20,001"))
    pages[1].write_text("no marks")
    monkeypatch.setattr(sys, "argv", ["pages.py", "growth"])
    load_script("pages").main()
    assert pages[0].read_text("utf-8") == whole and pages[1].read_text("utf-8") == "no marks"


def test_results_are_read_added_to_and_put_in_place(tmp_path: Path) -> None:
    results = load_script("stored_results")
    for name in ("runs.json", "runs.jsonl"):
        path = tmp_path / name
        assert results.read_results(path) == []
        for n in (1, 2):
            results.add_result(path, {"n": n})
        assert results.read_results(path) == [{"n": 1}, {"n": 2}]
    results.write_results(tmp_path / "runs.json", {"n": 3})
    assert results.read_results(tmp_path / "runs.json") == {"n": 3}
    stored = json.loads((BENCHMARKS / "results" / "growth.json").read_text("utf-8"))
    assert results.read_results("growth.json") == stored
