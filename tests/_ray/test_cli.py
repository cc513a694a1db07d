"""The option --ray: the same files and scores as without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dxml._cli import app
from dxml._core.cluster import RayCluster
from dxml._learners import linear_training
from dxml._neighbors import cosine
from dxml.joint import Joint
from dxml.text import _counting

from .nodes import Nodes, content

pytestmark = pytest.mark.ray


def dxml(*arguments: object) -> Any:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done


def write_texts(path: Path, n: int) -> Path:
    """Texts of two words of their labels among others."""
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        for _ in range(n):
            labels = rng.choice(30, 2, replace=False)
            words = [f"label{label}word{i}" for label in labels for i in range(2)]
            words += [f"word{i}" for i in rng.integers(0, 50, 5)]
            row = {"text": " ".join(words), "tags": [f"tag{label}" for label in labels]}
            file.write(json.dumps(row) + "\n")
    return path


def test_train_predict_and_evaluate(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cosine, "SEARCHED", 40)
    monkeypatch.setattr(linear_training, "BLOCK_BYTES", 50_000)
    monkeypatch.setattr(_counting, "SENT", 30)
    monkeypatch.setattr(Joint, "batch_rows", 50)
    table = write_texts(tmp_path / "texts.jsonl", 240)
    more = write_texts(tmp_path / "more.jsonl", 2500)  # read in two blocks
    stages, run = set(), RayCluster.run

    def noted(self: RayCluster, function: Any, shared: Any, blocks: Any) -> Any:
        stages.add(function.__name__)
        return run(self, function, shared, blocks)

    monkeypatch.setattr(RayCluster, "run", noted)
    settings = ["--set", "candidates=nearest", "--set", "width=0", "--set", "encoder=none"]
    found = []
    for name, ray in (("here", []), ("there", ["--ray", nodes.address])):
        model, ranked = tmp_path / name, tmp_path / f"{name}.jsonl"
        told = dxml(
            "train", table, "--text", "text", "--labels", "tags", "-m", model, *settings, *ray
        )
        assert "count words" in told.output and "linear head" in told.output
        dxml("predict", more, "-m", model, "--json", "-o", ranked, "-q", *ray)
        scores = json.loads(dxml("evaluate", table, "-m", model, "--json", *ray).output)
        assert scores.pop("seconds") > 0 and scores["P@1"] > 90
        found.append((content(model), ranked.read_text(), scores))
    assert found[0] == found[1] and found[0][1].count("\n") == 2500
    assert stages >= {"_count_new_terms", "_search_sparse", "_train_block", "_rank_batch"}
    assert "_rank_texts" in stages
