"""The page about large data shows what is stored."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "large_twins", ROOT / "benchmarks" / "large_twins.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_made_from_the_stored_runs(tmp_path: Path) -> None:
    module = script()
    page = tmp_path / "large.md"
    page.write_text(module.PAGE.read_text("utf-8"), "utf-8")
    module.write_page(page)
    assert page.read_text("utf-8") == module.PAGE.read_text("utf-8")
    assert "amazon-670k twin | joint |" in page.read_text("utf-8")


def test_a_later_run_takes_the_place_of_an_earlier_one() -> None:
    module = script()
    lines = module.RESULTS.read_text("utf-8").splitlines()
    later = lines[0].replace('"seconds": ', '"seconds": 9', 1)
    made = module.table([*lines, later])
    assert made.count("amazon-670k twin | joint |") == 1
    assert "| joint | 9" in made
