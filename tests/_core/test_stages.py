"""What a long step gave is taken up again, for the same inputs and no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core import stages
from dxml._core.stages import (
    Newest,
    Pieces,
    checksum,
    has_stages,
    open_stages,
    remembered,
    remove_stages,
)

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


def numbered(n: int) -> dict[str, Any]:
    return {"n": np.array([n]), "rows": np.arange(6.0).reshape(2, 3).T * n}


def test_pieces_are_taken_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_stages(tmp_path), Pieces("row", INPUTS) as pieces:
        for n in range(2):
            assert pieces.take() is None
            pieces.add(numbered(n))
        monkeypatch.setattr(stages, "LEAST", 3600.0)
        for n in range(2, 12):
            pieces.add(numbered(n))
        monkeypatch.setattr(stages, "LEAST", 0.0)  # what is left is stored at the end, as one
    assert len(list(tmp_path.rglob("*.safetensors"))) == 3
    with open_stages(tmp_path, resume=True):
        with Pieces("row", INPUTS | {"C": 2.0}) as pieces:
            assert pieces.take() is None
        with Pieces("row", INPUTS) as pieces:
            for n in range(13):
                found = pieces.next(lambda n=n: numbered(-n))  # type: ignore[misc]
                assert found["n"][0] == (n if n < 12 else -12)
                assert found["rows"].flags.f_contiguous, "products have the same last bits"
                np.testing.assert_array_equal(found["rows"], numbered(int(found["n"][0]))["rows"])


def test_pieces_that_broke_off_are_those_that_were_stored(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), open_stages(tmp_path), Pieces("row", {}) as pieces:
        pieces.add(numbered(0))
        pieces.add(numbered(1))
        pieces._made.append(numbered(2))
        raise KeyboardInterrupt
    damaged = max(tmp_path.rglob("*.safetensors"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with open_stages(tmp_path, resume=True), Pieces("row", {}) as pieces:
        assert pieces.take() is not None and pieces.take() is None


def test_generators_go_on_from_where_they_were(tmp_path: Path) -> None:
    def draws(resume: bool, n: int) -> list[float]:
        rng = np.random.default_rng(3)
        with open_stages(tmp_path, resume), Pieces("draws", {}, rng) as pieces:
            found = [pieces.next(lambda: {"x": rng.random(1)}) for _ in range(n)]
            drawn = remembered("draw", {}, lambda: {"x": rng.random(1)}, rng)
        return [float(each["x"][0]) for each in (*found, drawn)] + [rng.random()]

    expected = np.random.default_rng(3).random(5).tolist()
    assert draws(False, 3) == draws(True, 3) == expected
    assert draws(False, 2) == expected[:4] and draws(True, 3) == expected


def test_the_newest_state_takes_the_place_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    with open_stages(tmp_path):
        newest = Newest("state", INPUTS, rng)
        assert newest.found is None
        for n in range(3):
            rng.random()
            newest.keep(numbered(n))
        monkeypatch.setattr(stages, "LEAST", 3600.0)
        newest.keep(numbered(3))
    assert len(list(tmp_path.rglob("*.safetensors"))) == 1
    with open_stages(tmp_path, resume=True):
        assert Newest("state", INPUTS, np.random.default_rng(4)).found is None
        rng = np.random.default_rng(3)
        found = Newest("state", INPUTS, rng).found
        assert found is not None and found["n"][0] == 2
        assert rng.random() == np.random.default_rng(3).random(4)[3]
    Newest("state", INPUTS).keep(numbered(0))  # nothing is open


def test_what_is_worth_storing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storing takes no more than a fiftieth of the work."""
    monkeypatch.setattr(stages, "LEAST", 5.0)
    worth = stages._is_worth
    assert worth(5.0, 10) and not worth(4.9, 10)
    assert not worth(49.0, 500_000_000) and worth(50.0, 500_000_000)
    assert not worth(19.0, 10, spent=0.4) and worth(20.0, 10, spent=0.4)


def test_large_inputs_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checksum({"X": ROWS}) == "", "nothing is stored"
    with open_stages(tmp_path):
        assert checksum({"X": ROWS}) == checksum({"X": ROWS.copy()}) != checksum({"X": ROWS * 2})
        read = []
        monkeypatch.setattr(stages, "_add", lambda digest, value: read.append(value))
        with Pieces("row", {"X": ROWS}) as pieces:
            for n in range(5):
                pieces.next(lambda n=n: numbered(n))  # type: ignore[misc]
        assert len(read) == 1
