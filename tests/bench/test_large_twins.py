"""The page about large data shows what is stored."""

from __future__ import annotations

from pathlib import Path

from .scripts import load_script


def test_the_page_is_made_from_the_stored_runs(tmp_path: Path) -> None:
    module = load_script("large_twins")
    page = tmp_path / "large.md"
    page.write_text(module.PAGE.read_text("utf-8"), "utf-8")
    module.write_page(page)
    assert page.read_text("utf-8") == module.PAGE.read_text("utf-8")
    assert "amazon-670k twin | joint |" in page.read_text("utf-8")


def test_a_later_run_takes_the_place_of_an_earlier_one() -> None:
    module = load_script("large_twins")
    lines = module.RESULTS.read_text("utf-8").splitlines()
    later = lines[0].replace('"seconds": ', '"seconds": 9', 1)
    made = module.table([*lines, later])
    assert made.count("amazon-670k twin | joint |") == 1
    assert "| joint | 9" in made
