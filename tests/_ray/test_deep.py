"""An encoder trained by several workers of Ray Train: the steps that one process takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dxml._core.blocks import running_on
from dxml._core.cluster import RayCluster
from dxml._core.random import spawn_seed
from dxml._deep import Keep, Pretrained, fit_deep, open_pretrained
from dxml._deep.resuming import read_state
from dxml._deep.training import Trainer, _own_chance

from .._deep.planting import CPU, TINY, Planted, plant
from .nodes import PATIENCE, Nodes

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
]
FULL = replace(TINY, epochs=4)
SHORT = replace(FULL, shortlist=True, random=4, own=2, hard=2)


@pytest.fixture
def pretrained(encoder_folder: Path) -> Pretrained:
    return open_pretrained(encoder_folder, 32)


class Told:
    """Hears how far the training is."""

    def __init__(self) -> None:
        self.done = 0.0

    @contextmanager
    def stage(self, name: str, total: float | None = None, unit: str = "") -> Iterator[Told]:
        yield self

    def advance(self, amount: float = 1) -> None:
        self.done += amount

    def note(self, text: str) -> None:
        pass


def last_state(folder: Path) -> dict[str, np.ndarray]:
    """Weights and moments after the last step."""
    found = read_state(folder, {})
    assert found is not None
    return {name: array for name, array in found[1].items() if name not in ("chance", "total")}


def in_pieces(
    folder: Path, train: Planted, pretrained: Pretrained, settings: Any
) -> dict[str, np.ndarray]:
    """What one process learns that computes each batch in two pieces."""
    with _own_chance(spawn_seed(0, "deep"), CPU):
        trainer = Trainer(train.tokens, train.Y, settings, pretrained, 0, CPU)
        trainer.parts = 2
        trainer.run(Keep(folder, interval=1e9))
    return last_state(folder)


def check_like(
    found: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float
) -> None:
    assert found.keys() == expected.keys() and len(found) > 50
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("settings", [FULL, SHORT], ids=["all labels", "shortlists"])
def test_two_workers_take_the_steps_of_two_pieces(
    settings: Any, pretrained: Pretrained, nodes: Nodes, cluster: RayCluster, tmp_path: Path
) -> None:
    train, told, keep = plant(pretrained, 100, 0), Told(), Keep(tmp_path / "there", interval=1e9)
    with nodes.another(), running_on(cluster):
        head = fit_deep(
            train.tokens,
            train.Y,
            settings,
            start=pretrained,
            device=CPU,
            keep=keep,
            progress=told,
        )
    expected = in_pieces(tmp_path / "here", train, pretrained, settings)
    check_like(last_state(keep.folder), expected, 0.0)
    np.testing.assert_allclose(head.weight, expected["head.weight"], rtol=1e-3, atol=1e-6)
    assert told.done == 4 * 100


def test_a_node_that_dies_costs_no_step(
    pretrained: Pretrained,
    nodes: Nodes,
    cluster: RayCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker that is left goes on from the newest state."""
    monkeypatch.setenv("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "20")  # for the node that is gone
    train, settings = plant(pretrained, 100, 0), replace(FULL, epochs=8)
    keep = Keep(tmp_path / "states", interval=0.0)

    def kill() -> None:
        end = time.monotonic() + PATIENCE
        while not list(keep.folder.glob("step-*")) and time.monotonic() < end:
            time.sleep(0.01)
        nodes.cluster.remove_node(doomed, allow_graceful=False)

    with nodes.another() as doomed, running_on(cluster):
        killer = threading.Thread(target=kill)
        killer.start()
        fit_deep(train.tokens, train.Y, settings, start=pretrained, device=CPU, keep=keep)
        killer.join()
        assert cluster.n_cores == 1
    expected = in_pieces(tmp_path / "here", train, pretrained, settings)
    check_like(last_state(keep.folder), expected, 0.02)
