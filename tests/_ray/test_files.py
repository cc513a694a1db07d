"""Files by Ray Data: each is ranked and written once, whatever dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dxml._cli._files import Pair, _writer, write_files
from dxml._cli._rankers import Job
from dxml._core.blocks import run_each, running_on
from dxml._core.cluster import RayCluster
from dxml.data import make_planted, write
from dxml.exceptions import DataFormatError
from dxml.joint import Joint
from dxml.progress import SILENT

from .nodes import Nodes

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),  # Ray Data's of itself
]


def test_the_same_files_when_a_node_dies_at_work(
    nodes: Nodes, cluster: RayCluster, tmp_path: Path
) -> None:
    data = make_planted(300, 200, 40, 2, 6, noise=0.3, random_state=3)
    settings: dict[str, Any] = {"candidates": "nearest", "width": 0, "max_iter": 2}
    model = Joint(**settings).fit(data.X, data.Y).save(tmp_path / "m")
    files = [tmp_path / f"{i}.svm" for i in range(5)]
    for i, file in enumerate(files):
        rows = slice(20 * i, 20 * i + 10 + i)
        write(type(data)(data.X[rows], data.Y[rows]), file)
    job, written = Job(model, "tsv"), {}
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        outputs = [tmp_path / name / file.name for file in files]
        with SILENT.stage("predict") as stage:
            if name == "here":
                tally = write_files(job, files, outputs, stage)
            else:
                with nodes.killing(cluster, "run_each", tmp_path) as killing:
                    tally = write_files(job, files, outputs, stage)
                killing.check()
        assert tally == (sum(10 + i for i in range(5)), 0)
        found = sorted((tmp_path / name).iterdir())
        written[name] = {path.name: path.read_bytes() for path in found}
    assert written["here"] == written["there"] and len(written["there"]) == 5


def test_an_error_of_ours_comes_back_as_it_is(cluster: RayCluster, tmp_path: Path) -> None:
    data = make_planted(60, 40, 6, random_state=1)
    model = Joint(device="cpu").fit(data.X, data.Y).save(tmp_path / "m")
    (tmp_path / "bad.svm").write_text("0 1:x\n")
    pairs = [Pair(tmp_path / "bad.svm", tmp_path / f"{i}.tsv") for i in range(2)]
    job = Job(model, "tsv")
    with running_on(cluster), pytest.raises(DataFormatError, match="bad.svm"):
        list(run_each(lambda: _writer(job), pairs))
