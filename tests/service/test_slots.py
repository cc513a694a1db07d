"""Numbers of workers: the smallest that is free, and apart for what is numbered."""

from __future__ import annotations

from pathlib import Path

from dxml.service._slots import free_slot


def test_a_number_is_held_until_its_lock_ends(tmp_path: Path) -> None:
    numbers, locks = zip(*(free_slot(tmp_path) for _ in range(3)), strict=True)
    assert numbers == (0, 1, 2)
    locks[1].close()
    number, lock = free_slot(tmp_path)
    other, apart = free_slot(tmp_path, "connections-")
    assert (number, other) == (1, 0)
    for each in (*locks, lock, apart):
        each.close()
