"""The README's tables are those of the stored results."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_readme_says_what_is_stored() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "readme.py"))
    text = (ROOT / "README.md").read_text("utf-8")
    shown = text.split(script["BEGIN"])[1].split(script["END"])[0]
    assert shown.strip() == script["render"]().strip(), "run: make docs"
