"""The page about large data shows what is stored."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np

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
    later = {**json.loads(lines[0]), "seconds": 9123.0}
    made = module.table([lines[0], json.dumps(later)])
    assert made.count("amazon-670k twin | joint |") == 1
    assert "| joint | 9123 |" in made
    elsewhere = {**later, "device": "cpu", "memory": "7GB", "own memory, GB": 6.5}
    made = module.table([lines[0], json.dumps(elsewhere)])
    assert made.count("amazon-670k twin | joint |") == 2
    assert ", 6.5 of its own |" in made and "--memory 7GB" in made


def test_memory_is_what_a_process_has_of_its_own() -> None:
    own_memory = load_script("own_memory")
    with own_memory.OwnMemory(os.getpid()) as before:
        pass
    with own_memory.OwnMemory(os.getpid()) as during:
        taken = np.ones(100_000_000, np.uint8)
        time.sleep(0.2)
    assert 80e6 < during.peak - before.peak < 150e6 and len(taken)


def test_the_table_of_a_promise_of_memory_is_what_is_stored() -> None:
    script = load_script("memory")
    page = script.PAGE.read_text("utf-8")
    assert f"{script.BEGIN}\n{script.render()}\n{script.END}" in page
