"""A promise of memory: large arrays beyond it lie in files, and nothing else changes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core import memory as limits
from dxml._core.memory import Memory, limit_memory, open_limit, parse_size, promised_memory
from dxml.data import make_planted
from dxml.exceptions import ParameterError
from dxml.joint import Joint

MEGABYTE = 1 << 20


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """Four megabytes for arrays, whatever this process has already."""
    monkeypatch.setattr(limits, "_used", lambda: 0)
    monkeypatch.setattr(limits, "RESERVE", 0)
    monkeypatch.setattr(limits, "LEAST", 0)
    with limit_memory(4 * MEGABYTE, tmp_path) as memory:
        yield memory


def files_of_this_process(folder: Path) -> int:
    """Mappings of files without a name in a folder."""
    maps = Path("/proc/self/maps").read_text()
    return len(re.findall(rf"{re.escape(str(folder))}/.* \(deleted\)", maps))


def test_what_does_not_fit_lies_in_a_file(memory: Memory) -> None:
    small = np.ones(1000)
    assert memory.held == memory.in_files == 0
    first = np.ones(3 * MEGABYTE // 8)
    assert memory.held == first.nbytes and memory.in_files == 0
    second = np.zeros(3 * MEGABYTE // 8)
    assert memory.in_files == second.nbytes and files_of_this_process(memory.folder) == 1
    assert not second.any()
    second += first
    assert second.sum() == first.sum() and small.sum() == 1000
    third = np.ones(MEGABYTE // 8)  # fits beside the first
    assert memory.held == first.nbytes + third.nbytes
    del first
    assert memory.held == third.nbytes
    del second, third
    assert memory.held == memory.in_files == files_of_this_process(memory.folder) == 0
    assert memory.most_in_files == 3 * MEGABYTE and not list(memory.folder.iterdir())


def test_what_is_not_counted_takes_the_room_of_arrays(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOOK", 1)
    first = np.ones(MEGABYTE // 8)
    assert memory.held == first.nbytes and memory.unforeseen == 0
    monkeypatch.setattr(limits, "_used", lambda: memory.held + 2 * MEGABYTE)  # compiled code has it
    second = np.ones(2 * MEGABYTE // 8)
    assert memory.unforeseen == 2 * MEGABYTE and memory.in_files == second.nbytes
    third = np.ones(MEGABYTE // 8)
    assert memory.held == first.nbytes + third.nbytes
    monkeypatch.setattr(limits, "_used", lambda: memory.held)  # and has given it back
    fourth = np.ones(2 * MEGABYTE // 8)
    assert memory.unforeseen == 0 and memory.held == 4 * MEGABYTE
    del first, second, third, fourth


def test_arrays_grow_and_shrink_with_what_is_in_them(memory: Memory) -> None:
    numbers = np.arange(100_000)
    for size in (1_000_000, 50, 2_000_000, 300_000):
        numbers.resize(size, refcheck=False)
        known = min(50 if size == 2_000_000 or size == 300_000 else size, 100_000)
        np.testing.assert_array_equal(numbers[:known], np.arange(known))
        assert not numbers[100_000:].any()
    del numbers
    assert memory.held == memory.in_files == 0


def test_arrays_outlive_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_used", lambda: 0)
    monkeypatch.setattr(limits, "RESERVE", 0)
    monkeypatch.setattr(limits, "LEAST", 0)
    before = np.ones(2 * MEGABYTE)
    with limit_memory(MEGABYTE, tmp_path) as memory:
        assert promised_memory() is memory
        del before  # by the functions that it came from
        inside = np.ones(2 * MEGABYTE)
    assert promised_memory() is None
    after = np.ones(2 * MEGABYTE)
    assert memory.in_files == inside.nbytes
    assert (inside == after).all()
    del inside
    assert memory.in_files == 0


def test_no_limit_is_no_limit() -> None:
    with open_limit(None):
        assert promised_memory() is None


def test_a_full_disk_is_said(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with (
        pytest.raises(ParameterError, match="No space left on device.*Make room there, or set TMP"),
        limit_memory(4 * MEGABYTE, memory.folder),
    ):
        np.ones(MEGABYTE)


def test_the_guide_says_the_least_that_can_be_promised() -> None:
    page = Path(__file__).parents[2] / "docs" / "guide" / "large.md"
    assert f"{(limits.RESERVE + limits.LEAST) / 1e6:.0f} MB is the least that can be promised" in (
        page.read_text("utf-8")
    )


def test_too_little_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="100 MB of memory are too few: Python and its"):
        limit_memory("100MB", tmp_path).__enter__()
    with (
        pytest.raises(ParameterError, match="too few for a kernel, which takes 9,000 MB that"),
        limit_memory("3GB", tmp_path) as memory,
    ):
        memory.reserve(9_000_000_000, "a kernel")


def test_memory_is_no_place_for_what_memory_does_not_hold() -> None:
    if not limits._in_memory(Path("/dev/shm")):
        pytest.fail("expected a file system in memory at /dev/shm")
    with pytest.raises(ParameterError, match="lies in memory itself .tmpfs.*Set TMPDIR"):
        limit_memory("3GB", "/dev/shm").__enter__()


@pytest.mark.parametrize("text", ["", "GB", "2 PB", "-1GB", "0", "2G B"])
def test_a_size_is_a_number_and_a_unit(text: str) -> None:
    with pytest.raises(ParameterError, match="a size such as 2GB or 500MB, got"):
        parse_size(text)


def test_a_model_is_the_same_in_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly every array lies in a file: those of some kilobytes too."""
    data = make_planted(400, 300, 60, 2, 12, noise=0.3, random_state=3)

    def trained() -> list[np.ndarray]:
        model = Joint(candidates="nearest", width=0, n_trees=2).fit(data.X, data.Y)
        found = model.predict_topk(data.X, 5)
        weights = model.parts_["linear"].head.weights
        return [found.indices, found.scores, weights.data, weights.indices]

    expected = trained()
    monkeypatch.setattr(limits, "LARGE", 16384)
    monkeypatch.setattr(limits, "RESERVE", 0)
    monkeypatch.setattr(limits, "LEAST", 0)
    monkeypatch.setattr(limits, "_used", lambda: 0)
    with limit_memory(100_000, tmp_path) as memory:
        monkeypatch.setattr(memory, "reserve", lambda *_: None)
        for one, other in zip(trained(), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    assert memory.most_in_files > 5 * memory.most


def test_a_plan_that_cannot_keep_to_it_is_refused(tmp_path: Path) -> None:
    X = sp.random(9000, 50, 0.1, format="csr", random_state=0, dtype=np.float32)
    Y = sp.random(9000, 4, 0.3, format="csr", random_state=1) > 0
    most = limits._used() + limits.RESERVE + limits.LEAST + 20_000_000
    with (
        pytest.raises(ParameterError, match="too few for training with kernel, which takes 97"),
        limit_memory(most, tmp_path),
    ):
        Joint(device="cpu").fit(X, Y)


def test_a_process_that_ends_with_such_arrays_ends_well(tmp_path: Path) -> None:
    """Arrays may be freed after everything else."""
    script = f"""
import sys
import numpy as np
from dxml._core import memory
memory.RESERVE = memory.LEAST = 0
memory._used = lambda: 0
with memory.limit_memory(1 << 20, {str(tmp_path)!r}):
    sys.kept = [np.ones(1 << 20), np.ones(10)]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
