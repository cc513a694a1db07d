"""One thread and two give the same bits, in processes where all libraries have as many."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dxml.methods import METHODS

SETTINGS = {
    "dxml": {"epochs": 1, "walks_per_label": 2, "dim": 8, "hidden": 16},
    "joint": {"candidates": "nearest", "width": 0},
    "joint with trees": {"candidates": "nearest", "width": 0, "n_trees": 2},
    "joint with a wide layer": {"width": 64, "epochs": 3},
}
PRODUCTS = ("sleec", "leml", "cplst", "cs", "ml-cssp")
DENSE = {
    **dict.fromkeys(PRODUCTS, 1e-4),
    "joint with a kernel": 0.002,
    "joint with a wide layer": 0.002,
}
"""Dense products of a library may add in another order, which differs from processor to processor:
how far scores may move."""
PAGES = ("what-holds.md", "reliability.md")
PROGRAM = """
import json, sys
import numpy as np
from dxml._core.threads import blas_threads, n_threads
from dxml.data import make_planted
from dxml.methods import method_class

folder, settings, methods = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
data = make_planted(1200, 300, 60, labels_per_point=2, features_per_point=30, random_state=0)
for name in methods:
    method = name.partition(" ")[0]
    model = method_class(method)(**settings.get(name, {})).fit(data.X[:1000], data.Y[:1000])
    found = model.predict_topk(data.X[1000:], 5)
    np.savez(f"{folder}/{name}.npz", indices=found.indices, scores=found.scores)
print(n_threads(), blas_threads())
"""


def rankings(folder: Path, count: int, *methods: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What methods say with so many threads of numba, torch and BLAS."""
    folder.mkdir()
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), json.dumps(SETTINGS), *methods],
        env={**os.environ, **dict.fromkeys(names, str(count))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(count), str(count)], "the libraries took as many"
    found = {}
    for name in methods:
        with np.load(folder / f"{name}.npz", allow_pickle=False) as arrays:
            found[name] = arrays["indices"], arrays["scores"]
    return found


def test_the_pages_name_those_that_move() -> None:
    docs = Path(__file__).parents[1] / "docs"
    holds, reliable = ((docs / name).read_text("utf-8") for name in PAGES)
    *first, last = (name.upper() for name in PRODUCTS)
    assert f"{', '.join(first)}, {last} | scores move by less than 0.0001" in holds
    assert f"{', '.join(first)} and {last}, which stay within 0.0001" in reliable
    assert "with a kernel or a wide layer | probabilities moved by less than 0.002" in holds
    assert "with a kernel or a wide layer, which stays within 0.002" in reliable
    assert "votes, also with label trees" in holds


@pytest.mark.thorough
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core")
def test_every_method_gives_the_same_bits_with_one_and_two_threads(tmp_path: Path) -> None:
    """But for those with dense products, up to what docs/what-holds.md says."""
    methods = (*METHODS, *(name for name in {**SETTINGS, **DENSE} if name not in METHODS))
    one, two = (rankings(tmp_path / str(count), count, *methods) for count in (1, 2))
    for name in methods:
        if name in DENSE:
            assert np.abs(one[name][1] - two[name][1]).max() < DENSE[name], name
        else:
            assert np.array_equal(one[name][0], two[name][0]), name
            assert np.array_equal(one[name][1], two[name][1]), name
