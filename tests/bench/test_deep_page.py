"""The page about the encoder shows what is stored."""

from __future__ import annotations

from pathlib import Path

from .scripts import load_script


def test_the_page_is_made_from_the_stored_runs(tmp_path: Path) -> None:
    module = load_script("deep_page")
    stored = module.PAGE.read_text("utf-8")
    page = tmp_path / "deep.md"
    emptied = stored
    for name, make in module.TABLES.items():
        made = make()
        assert made in emptied, name
        emptied = emptied.replace(made, "")
    page.write_text(emptied, "utf-8")
    module.write_page(page)
    assert page.read_text("utf-8") == stored
