"""A training on a cluster that breaks off goes on there to the same bits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dxml._cli import app
from dxml._core import stages
from dxml._core.blocks import running_on
from dxml._core.cluster import RayCluster
from dxml._deep import Keep, Pretrained, fit_deep, on_cluster, open_pretrained
from dxml._learners import linear_training
from dxml.exceptions import ClusterError

from .._deep.planting import CPU, TINY, plant
from .nodes import Nodes, content
from .test_cli import write_texts
from .test_deep import last_state

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
]
BROKEN_AT = 3  # blocks of linear heads, of which there are more


def test_linear_heads(nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the command, whose cluster is lost while it trains the second head."""
    monkeypatch.setattr(stages, "LEAST", 0.0)
    monkeypatch.setattr(linear_training, "BLOCK_BYTES", 50_000)
    table = write_texts(tmp_path / "texts.jsonl", 240)
    calls, run, broken = Counter[str](), RayCluster.run, False

    def breaking(self: RayCluster, function: Any, shared: Any, blocks: Any) -> Any:
        calls[function.__name__] += 1
        if broken and calls["_train_block"] == BROKEN_AT:
            raise ClusterError("the cluster is gone.")
        return run(self, function, shared, blocks)

    monkeypatch.setattr(RayCluster, "run", breaking)

    def train(name: str, *options: object) -> Any:
        calls.clear()
        words = ["train", table, "--text", "text", "--labels", "tags", "-m", tmp_path / name]
        settings = ["--set", "candidates=nearest", "--set", "width=0", "--set", "encoder=none"]
        return CliRunner().invoke(app, [str(word) for word in (*words, *settings, *options)])

    assert train("here").exit_code == 0 and not calls
    assert train("there", "--ray", nodes.address).exit_code == 0
    whole = calls["_train_block"]
    assert whole > BROKEN_AT
    broken = True
    told = train("resumed", "--ray", nodes.address)
    assert isinstance(told.exception, ClusterError) and "go on with --resume" in told.output
    assert not (tmp_path / "resumed").exists()
    broken = False
    assert train("resumed", "--ray", nodes.address, "--resume").exit_code == 0
    assert calls["_train_block"] == whole - (BROKEN_AT - 1), "what was done is not done again"
    expected = content(tmp_path / "here")
    assert content(tmp_path / "there") == expected
    assert content(tmp_path / "resumed") == expected


@pytest.mark.parametrize("n_nodes", [1, 2])
def test_a_text_encoder(
    n_nodes: int,
    encoder_folder: Path,
    nodes: Nodes,
    cluster: RayCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whose states the disk takes no more from some step on; no step is taken twice."""
    monkeypatch.setattr(on_cluster, "RETRIES", 0)
    pretrained: Pretrained = open_pretrained(encoder_folder, 32)
    train, settings = plant(pretrained, 100, 0), replace(TINY, epochs=4)

    class Picky(Keep):  # here, so that it is sent to the cluster itself and not by its name
        first, last = 0, 10**9

        def write(self, step: int, run: Any, arrays: Any) -> None:
            if not self.first <= step <= self.last:
                raise OSError(f"no room for step {step}")
            super().write(step, run, arrays)

    class UpToFive(Picky):
        last = 5

    class FromSix(Picky):
        first = 6

    def fit(keep: Keep) -> dict[str, np.ndarray]:
        fit_deep(train.tokens, train.Y, settings, start=pretrained, device=CPU, keep=keep)
        return last_state(keep.folder)

    def trained() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        with running_on(cluster):
            expected = fit(Keep(tmp_path / "whole", interval=0.0))
            with pytest.raises(ClusterError, match="could not be trained"):
                fit(UpToFive(tmp_path / "broken", interval=0.0))
            newest = sorted(path.name for path in (tmp_path / "broken").glob("step-*"))[-1]
            assert newest == "step-000000005"
            return expected, fit(FromSix(tmp_path / "broken", interval=0.0, resume=True))

    if n_nodes == 1:
        expected, found = trained()
    else:
        with nodes.another():
            expected, found = trained()
    assert found.keys() == expected.keys() and len(found) > 50
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
