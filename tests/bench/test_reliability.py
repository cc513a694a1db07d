"""The page about reliability shows what is stored, and names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

from .scripts import load_script

ROOT = Path(__file__).parents[2]


def test_the_page_is_made_from_the_stored_runs(tmp_path: Path) -> None:
    module = load_script("reliability")
    page = tmp_path / "reliability.md"
    page.write_text(module.PAGE.read_text("utf-8"), "utf-8")
    module.write_page(page)
    assert page.read_text("utf-8") == module.PAGE.read_text("utf-8")


def test_every_test_that_the_page_names_is_there() -> None:
    text = load_script("reliability").PAGE.read_text("utf-8")
    named = re.findall(r"`(tests/[\w/.]+)`", text)
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)
    assert set(re.findall(r"`make ([\w-]+)`", text)) <= set(targets)


def test_no_last_run_lost_or_crashed_anything() -> None:
    module = load_script("reliability")
    assert sum(run["problems"] for run in module.stored(module.FAULTS)) == 0
    last = module.stored(module.MODELS)[-1]
    for name in ("checksums as they were", "written again"):
        assert not any(last[name][kind] for kind in ("signal", "hang", "wrong kind"))
    assert last["checksums as they were"]["different"] == 0
    assert module.stored(module.READERS)[-1]["crashes"] == 0


def test_the_last_soak_lost_nothing() -> None:
    last = [run for run in load_script("reliability").stored("soak.json") if run["what"] == "soak"][
        -1
    ]
    assert last["wrong_texts"] == last["unexplained"] == last["dead_clients"] == []
    assert last["texts"] > 50 and sum(last["upheavals"].values()) >= 5
