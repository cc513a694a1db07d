"""docs/benchmarks.md is what the committed summaries say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from dxml.bench._report import write_report

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


def test_the_page_and_the_stored_results_agree(tmp_path: Path) -> None:
    fresh = write_report(RESULTS, tmp_path, with_plots=False).read_text("utf-8")
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    assert page == fresh, "docs/benchmarks.md is out of date: run `dxml bench report`"


NOT_CLEAN = {
    "baselines.json": {"0.1.0", "2c95f662f2ee+"},
    "calibration.jsonl": {"fc7dc4a59fee+"},
    "faults.json": {"69e8d9f11d23+", "e9e7cfdc2142+"},
    "fuzz-models.json": {"d8a199a66cd4+", "e9e7cfdc2142+"},
    "fuzz-readers.json": {"2a7481a2a9ba+", "e9e7cfdc2142+"},
    "incremental.jsonl": {"f78df12aedc6+"},
    "paper-eurlex.json": {"0.1.0", "06f2e850226a+"},
    "paper-small.json": {"0.1.0", "06f2e850226a+", "2c95f662f2ee+"},
    "soak.json": {"58e7f29+", "d8a199a+"},
    "teaching-choices.json": {"805d8d32d378+"},
    "test-log.jsonl": {"d9c32d962e52+"},  # scored, and done again with a clean tree
}
"""Commits of stored results whose code nobody can get back: with changes, or not known."""
NO_COMMIT = {"joint-same.json", "parts.json", "suggest-next.json"}


def commits_in(value: object, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from commits_in(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from commits_in(each, name)
    elif name in ("commit", "commits"):
        yield str(value)


def test_no_more_results_of_code_that_nobody_can_get_back() -> None:
    """A list that may become shorter: measure anew with a clean tree, then take the line out."""
    found, without = {}, set()
    for path in [*RESULTS.glob("*.json"), *RESULTS.glob("*.jsonl")]:
        text = path.read_text("utf-8")
        parts = [text] if path.suffix == ".json" else text.splitlines()
        commits = set(commits_in([json.loads(part) for part in parts]))
        if not commits:
            without.add(path.name)
        if unclean := {each for each in commits if not re.fullmatch("[0-9a-f]{7,40}", each)}:
            found[path.name] = unclean
    assert found == NOT_CLEAN
    assert without == NO_COMMIT


def test_stored_summaries_are_small_and_name_nobodys_folders() -> None:
    for path in RESULTS.glob("*.json"):
        text = path.read_text("utf-8")
        assert len(text) < 1_000_000, f"{path.name} is too large to commit"
        stored = json.loads(text)  # an experiment of `dxml bench`, or runs of a script
        assert isinstance(stored, list) or stored.get("experiment", path.stem) == path.stem
        assert not re.search(r"/(home|root|tmp|usr|var)/", text)
