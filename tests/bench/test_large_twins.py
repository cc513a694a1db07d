"""The page about large data shows what is stored."""

from __future__ import annotations

import os
import time

import numpy as np

from .scripts import load_script


def test_a_later_run_takes_the_place_of_an_earlier_one() -> None:
    module = load_script("large_twins")
    first, *_ = module.read_results(module.STORED)
    later = {**first, "seconds": 9123.0}
    made = module.table([first, later])
    assert made.count("amazon-670k twin | joint |") == 1
    assert "| joint | 9123 |" in made
    elsewhere = {**later, "device": "cpu", "memory": "7GB", "own memory, GB": 6.5}
    made = module.table([first, elsewhere])
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
