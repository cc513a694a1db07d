"""docs/benchmarks.md is what the committed summaries say."""

from __future__ import annotations

import json
import re
from pathlib import Path

from dxml.bench.report import write_report

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


def test_the_page_and_the_stored_results_agree(tmp_path: Path) -> None:
    fresh = write_report(RESULTS, tmp_path, with_plots=False).read_text("utf-8")
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    assert page == fresh, "docs/benchmarks.md is out of date: run `dxml bench report`"


def test_stored_summaries_are_small_and_name_nobodys_folders() -> None:
    for path in RESULTS.glob("*.json"):
        text = path.read_text("utf-8")
        assert len(text) < 1_000_000, f"{path.name} is too large to commit"
        assert json.loads(text).get("experiment", path.stem) == path.stem
        assert not re.search(r"/(home|root|tmp|usr|var)/", text)
