"""Planted stored results: two data sets, known rankings."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dxml.bench._results import Store, Stored
from dxml.bench._spec import Experiment, Planned, Run
from dxml.bench._worker import Settings
from dxml.data import make_planted, write
from dxml.topk import TopK

PLANTED = "planted:n_samples=90,n_features=40,n_labels=6"
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "board.md"
OWN = make_planted(120, 40, 6, random_state=0)
MACHINE = {"cpu": "Some CPU", "cores": 2, "memory_gib": 8, "gpu": None}


def record(seconds: float = 2.0, **changes: Any) -> dict[str, Any]:
    """What a worker would store, with round numbers."""
    data = {"train": 72, "test": 18, "features": 40, "labels": 6}
    return {
        "parameters": {},
        "chosen": {"n_neighbors_": 5},
        "seconds": {"train": seconds, "predict": 0.5},
        "stages": {"read": 0.1, "encoder": seconds, "predict": 0.5},
        "ms_per_point": 0.25,
        "model_bytes": 1_000_000,
        "memory": {"peak": 200_000_000, "before_fit": 1, "gpu_peak": None},
        "data": data | {"points_per_label": 45.0, "labels_per_point": 3.0},
        "settings": {"device": "auto", "threads": 2, "warm_up": False},
        "machine": MACHINE,
        "versions": {"python": "3.11.0", "dxml": "0.1.0"},
        "commit": "abc",
        "date": "2026-01-02T03:04:05+00:00",
        **changes,
    }


def plan(run: Run, label: str | None = None, study: str | None = None, **given: Any) -> Planned:
    return Planned(run, tuple(sorted(given.items())), label or run.method, study, None)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


@pytest.fixture
def put(store: Store) -> Callable[..., Stored]:
    """Store a result whose ranking is given."""

    def put(run: Run, indices: Any, **changes: Any) -> Stored:
        ids = np.asarray(indices, dtype=np.int32)
        return store.put(run, record(**changes), TopK(ids, np.ones(ids.shape, np.float32)))

    return put


def experiment(*planned: Planned, name: str = "e", processes: bool = False) -> Experiment:
    return Experiment(name, "An example.", planned, warm_up=False, processes=processes)


QUICK = Settings(device="cpu", threads=1, warm_up=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The adapter and the two kinds of data set of the guide."""
    [adapter] = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "frequent.py").write_text(adapter, "utf-8")
    for name, rows in (("train", np.arange(90)), ("test", np.arange(90, 120))):
        write(OWN.take(rows), tmp_path / f"{name}.txt")
    (tmp_path / "mine.toml").write_text('train = "train.txt"\ntest = "test.txt"\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path
