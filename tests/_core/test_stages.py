"""What a long step gave is taken up again, for the same inputs and no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core import stages
from dxml._core.stages import has_stages, open_stages, remembered, remove_stages

ROWS = sp.csr_matrix(np.eye(3, dtype=np.float32))
INPUTS: dict[str, Any] = {"X": ROWS, "y": np.arange(3), "C": 1.0, "name": "a", "start": None}


@pytest.fixture(autouse=True)
def store_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "LEAST", 0.0)


@pytest.fixture
def step() -> Callable[..., tuple[float, int]]:
    """A step whose result tells how often it was computed."""
    done = [0]

    def compute() -> dict[str, Any]:
        done[0] += 1
        return {"value": np.array([done[0] / 3]), "flags": np.array([[True], [False]])}

    def run(name: str = "step", **changes: Any) -> tuple[float, int]:
        found = remembered(name, INPUTS | changes, compute)
        assert found["flags"].shape == (2, 1) and found["flags"].flags.writeable
        return float(found["value"][0]), done[0]

    return run


def test_a_result_is_computed_once(tmp_path: Path, step: Callable[..., Any]) -> None:
    assert step() == (1 / 3, 1) and step() == (2 / 3, 2), "nothing is open"
    with open_stages(tmp_path):
        assert step() == (1, 3)
        assert step() == (1, 3)
    assert has_stages(tmp_path)
    with open_stages(tmp_path, resume=True):
        assert step() == (1, 3), "bit for bit"
    with open_stages(tmp_path):
        assert step() == (4 / 3, 4), "not resumed: begun anew"
    remove_stages(tmp_path)
    assert not tmp_path.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"X": ROWS * 2},
        {"X": ROWS.astype(np.float64)},
        {"X": ROWS[:2]},
        {"y": np.arange(3) + 1},
        {"y": np.arange(3, dtype=np.int32)},
        {"C": 1},
        {"name": "b"},
        {"start": 0},
        {"more": None},
    ],
    ids=str,
)
def test_other_inputs_are_others(
    tmp_path: Path, step: Callable[..., Any], changes: dict[str, Any]
) -> None:
    with open_stages(tmp_path, resume=True):
        step()
        assert step(**changes)[1] == 2
        assert step("another step")[1] == 3
        assert step(**changes)[1] == 3


def test_a_damaged_result_is_computed_again(tmp_path: Path, step: Callable[..., Any]) -> None:
    with open_stages(tmp_path, resume=True):
        step()
        [file] = tmp_path.rglob("*.safetensors")
        file.write_bytes(file.read_bytes()[:-1])
        assert step() == (2 / 3, 2)
        assert step() == (2 / 3, 2)


def test_short_steps_are_not_stored(
    tmp_path: Path, step: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "LEAST", 3600.0)
    with open_stages(tmp_path, resume=True):
        step()
    assert not has_stages(tmp_path)
    with open_stages(None, resume=True):
        step()
