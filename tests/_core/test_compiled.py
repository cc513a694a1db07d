"""Functions that numba compiles when they are first called."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

from dxml._core import compiled as module
from dxml._core.compiled import (
    FEW_ROWS,
    Compiled,
    Stopped,
    compiled,
    is_loaded,
    prange,
    rehearsal,
    spare,
)

LOOPS = '''
import numpy as np
from dxml._core.compiled import compiled, prange

@compiled(inline="always")
def twice(x):
    """Doubled."""
    return 2 * x
'''
MAIN = """
import sys
import numpy as np
from loops import twice
from dxml._core.compiled import compiled, is_loaded, prange, when_compiling

@compiled(parallel=True)
def doubled(values, out):
    for i in prange(len(values)):
        out[i] = twice(values[i])

said = []
ended = []
when_compiling(said.append, ended.append)
assert not is_loaded() and twice.__doc__ == "Doubled." and doubled.__name__ == "doubled"
out = np.zeros(3)
doubled(np.array([1.0, 2.0, 3.0]), out)
assert is_loaded()
assert sorted(said) == sorted(ended)
print(out.tolist(), sorted(set(said)))
"""


def run(folder: Path, program: str = "main.py") -> str:
    done = subprocess.run(
        [sys.executable, program], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_numba_is_imported_by_the_first_call_and_compiles_once(tmp_path: Path) -> None:
    """It calls another module's function, and the second process reads what the first compiled."""
    (tmp_path / "loops.py").write_text(LOOPS, "utf-8")
    (tmp_path / "main.py").write_text(MAIN, "utf-8")
    assert run(tmp_path) == "[2.0, 4.0, 6.0] ['doubled']"
    assert run(tmp_path) == "[2.0, 4.0, 6.0] []"


NOWHERE = """
from numba.core import caching
from main import doubled, np
from dxml._core.compiled import are_kept

kind = getattr(caching, "CacheImpl", None) or caching._CacheImpl  # older versions
kind._locator_classes = []  # no folder can be written to
assert are_kept()
out = np.zeros(3)
doubled(np.array([1.0, 2.0, 3.0]), out)
print(out.tolist(), are_kept())
"""


def test_without_a_folder_for_them_loops_are_compiled_all_the_same(tmp_path: Path) -> None:
    """An installation that cannot be written to, used by someone without a home."""
    (tmp_path / "loops.py").write_text(LOOPS, "utf-8")
    (tmp_path / "main.py").write_text(MAIN.partition("said = []")[0], "utf-8")
    (tmp_path / "nowhere.py").write_text(NOWHERE, "utf-8")
    assert run(tmp_path, "nowhere.py") == "[2.0, 4.0, 6.0] False"


def test_the_function_itself_can_be_called_without_numba() -> None:
    @compiled(parallel=True)
    def count(n):  # type: ignore[no-untyped-def]
        total = 0
        for _ in prange(n):
            total += 1
        return total

    assert count.__wrapped__(4) == 4


def test_few_rows_are_done_by_numpy_until_numba_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_loaded", lambda: False)
    assert spare(FEW_ROWS) and not spare(FEW_ROWS + 1)
    monkeypatch.setattr(module, "is_loaded", lambda: True)
    assert not spare(1)


def test_whether_numba_is_here() -> None:
    assert is_loaded() == ("numba" in sys.modules)


LATE = """
import numpy as np
from dxml._core.compiled import compiled

@compiled()
def twice(x):
    return 2 * x

assert twice(3) == 6
from dxml._core.packed import as_bits, value_at

@compiled()
def first(values):
    return value_at(values, 0)

print(first(as_bits(np.array([1.5], np.float16))))
"""


def test_what_compiled_code_reads_may_be_imported_after_numba(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(LATE, "utf-8")
    assert run(tmp_path) == "1.5"


TWO_THREADS = """
import threading
import numpy as np
import counting

def run():
    for _ in range(300):
        counting.twice(np.ones(1000))

threads = [threading.Thread(target=run) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
import numba
print(numba.threading_layer(), counting.twice(np.ones(3)).tolist())
"""
COUNTING = """
import numpy as np
from dxml._core.compiled import compiled, prange

@compiled()
def double(value):
    return 2 * value

@compiled(parallel=True)
def twice(values):
    found = np.empty_like(values)
    for i in prange(len(values)):
        found[i] = double(values[i])
    return found
"""


def test_threads_take_turns_where_numba_bears_one_only(tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text(COUNTING, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", TWO_THREADS],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            **os.environ,
            "NUMBA_THREADING_LAYER": "workqueue",
            "NUMBA_NUM_THREADS": "2",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(maxsplit=1) == ["workqueue", "[2.0, 2.0, 2.0]\n"]


def test_what_a_loop_calls_stays_a_function_that_takes_turns(tmp_path: Path) -> None:
    sys.path.insert(0, str(tmp_path))
    (tmp_path / "counting_again.py").write_text(COUNTING, "utf-8")
    try:
        import counting_again  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(tmp_path))
    assert counting_again.twice(np.ones(2)).tolist() == [2.0, 2.0]
    assert isinstance(counting_again.double, Compiled) and counting_again.double(3) == 6


def test_a_rehearsal_is_for_its_own_thread_and_can_be_stopped() -> None:
    """Others go on as if numba were not there; the one that rehearses runs compiled loops only."""
    import numba  # noqa: F401

    stop, seen, one = Event(), [], np.ones(1)
    with rehearsal(stop):
        assert is_loaded() and not spare(1)
        other = Thread(target=lambda: seen.append((is_loaded(), spare(1), spare(FEW_ROWS + 1))))
        other.start()
        other.join()
        assert _doubled(one).tolist() == [2]
        stop.set()
        with pytest.raises(Stopped):
            _doubled(one)
    assert seen == [(False, True, False)]
    assert is_loaded() and _doubled(one).tolist() == [2]


@compiled()
def _doubled(values):  # type: ignore[no-untyped-def]
    return 2 * values
