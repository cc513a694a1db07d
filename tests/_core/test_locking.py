"""One writer at a time: waiting, giving up, taking it twice, and what a kill leaves."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

from dxml._core.locking import LOCK, folder_lock

HOLD = """
import sys
from dxml._core.locking import folder_lock
with folder_lock(sys.argv[1]):
    print("has it", flush=True)
    sys.stdin.readline()
"""
Holder = subprocess.Popen[str]


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Holder]:
    """A process that has the lock, until its input ends."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "has it\n"
        yield process
        process.kill()


def end(holder: Holder) -> None:
    assert holder.stdin is not None
    holder.stdin.close()


def test_others_are_waited_for_and_that_is_said_once(tmp_path: Path, holder: Holder) -> None:
    said: list[int] = []

    def waiting() -> None:
        said.append(1)
        end(holder)

    with folder_lock(tmp_path, waiting=waiting):
        assert said == [1] and holder.wait(20) == 0


def test_waiting_has_an_end(tmp_path: Path, holder: Holder) -> None:
    wanted = "another program is writing this model, and was for 0.1 s"
    with pytest.raises(TimeoutError, match=wanted) as stop, folder_lock(tmp_path, timeout=0.1):
        pass
    assert stop.value.filename == str(tmp_path)
    end(holder)
    with folder_lock(tmp_path):
        assert holder.wait(20) == 0


def test_a_kill_gives_it_up(tmp_path: Path, holder: Holder) -> None:
    holder.kill()
    with folder_lock(tmp_path, timeout=20):
        pass
    assert (tmp_path / LOCK).exists()


def test_who_has_it_may_take_it_again_and_another_thread_may_not(tmp_path: Path) -> None:
    refused: list[bool] = []

    def other() -> None:
        try:
            with folder_lock(tmp_path, timeout=0):
                refused.append(False)
        except TimeoutError:
            refused.append(True)

    def ask() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    with folder_lock(tmp_path):
        with folder_lock(tmp_path, timeout=0):
            ask()
        ask()
    ask()
    assert refused == [True, True, False]


def test_a_folder_put_in_the_place_of_another_has_a_lock_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    with folder_lock(tmp_path / "m"):
        (tmp_path / "m").rename(tmp_path / "aside")
        (tmp_path / "m").mkdir()
        with folder_lock(tmp_path / "m", timeout=0):
            pass
    with folder_lock(tmp_path / "aside", timeout=0), folder_lock(tmp_path / "m", timeout=0):
        pass
