"""benchmarks/incremental.py on planted data."""

from __future__ import annotations

from typing import Any

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


def test_the_page_has_means_of_the_newest_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def row(commit: str, split: int, p1: float) -> dict[str, Any]:
        scores = {"P@1": p1, "P@3": 30.0, "P@5": 20.0}
        about = {"data": "bibtex", "split": split, "case": "points", "model": "added", **scores}
        return {**about, "commit": commit, "machine": "A", "threads": 1, "command": "c"}

    rows = [row("old", 1, 10.0), row("new1234", 1, 50.0), row("new1234", 2, 52.0)]
    made: list[str] = []
    monkeypatch.setattr(incremental, "read_results", lambda name: rows)
    part = type("Part", (), {"write": lambda self, text: made.append(text)})
    monkeypatch.setattr(incremental, "part_of", lambda *names: part())
    incremental.write_page()
    scores = "51.0 ± 1.4 / 30.0 ± 0.0 / 20.0 ± 0.0"
    cells = ["Bibtex", "half of the points", "the others added", scores]
    assert (
        f"| {' | '.join(cells)} | 2 |" in made[0]
        and "10.0" not in made[0]
        and "commit new1234 on A" in made[0]
    )


@pytest.mark.parametrize("case", ["points", "labels"])
def test_three_rows_a_case(case: str) -> None:
    train, test = DATA.take(np.arange(500)), DATA.take(np.arange(500, 700))
    settings = {"epochs": 10, "dim": 16, "hidden": 32, "n_partitions": 1, "n_neighbors": 5}
    part, added, anew = incremental.measure(train, test, case, settings)
    assert [row["model"] for row in (part, added, anew)] == ["first part", "added", "anew"]
    assert part["learnt"] < added["learnt"] == anew["learnt"] == 500
    assert part["P@3"] < added["P@3"] + 2 and added["P@1"] > 50
