"""The page about the encoder shows what is stored."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("deep_page", ROOT / "benchmarks" / "deep_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_made_from_the_stored_runs(tmp_path: Path) -> None:
    module = script()
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
