"""benchmarks/incremental.py on planted data."""

from __future__ import annotations

import numpy as np
import pytest

from dxml.data import make_planted

from .scripts import load_script

incremental = load_script("incremental")

DATA = make_planted(700, 120, 20, labels_per_point=2, features_per_point=12, random_state=3)


def test_points_of_hidden_labels_come_later() -> None:
    first, later, known = incremental.parts(DATA, "labels", 0)
    hidden = np.setdiff1d(np.arange(20), known)
    assert len(hidden) == 2 and len(first) + len(later) == 700
    assert DATA.Y[first][:, hidden].nnz == 0
    assert (DATA.Y[later][:, hidden].sum(axis=1) > 0).all()
    first, later, known = incremental.parts(DATA, "points", 0)
    assert len(first) == 350 and not set(first) & set(later) and len(known) == 20


@pytest.mark.parametrize("case", ["points", "labels"])
def test_three_rows_a_case(case: str) -> None:
    train, test = DATA.take(np.arange(500)), DATA.take(np.arange(500, 700))
    settings = {"epochs": 10, "dim": 16, "hidden": 32, "n_partitions": 1, "n_neighbors": 5}
    part, added, anew = incremental.measure(train, test, case, settings)
    assert [row["model"] for row in (part, added, anew)] == ["first part", "added", "anew"]
    assert part["learnt"] < added["learnt"] == anew["learnt"] == 500
    assert part["P@3"] < added["P@3"] + 2 and added["P@1"] > 50
