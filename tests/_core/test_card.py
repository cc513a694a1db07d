"""The model card: written with every model, from what it knows, and never over another's text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dxml._core.card import MARK, plain_sections, table, write_card
from dxml.baselines.knn import KNN
from dxml.data import make_planted


def header_of(text: str) -> dict[str, Any]:
    """The YAML header; its values are JSON."""
    assert text.startswith("---\n")
    lines = text.split("---\n")[1].splitlines()
    return {key: json.loads(value) for key, _, value in (line.partition(": ") for line in lines)}


def test_every_method_has_one(tmp_path: Path) -> None:
    data = make_planted(40, 20, 5, features_per_point=6, random_state=0)
    folder = KNN().fit(data.X, data.Y).save(tmp_path / "m")
    text = (folder / "README.md").read_text("utf-8")
    assert header_of(text)["library_name"] == "dxml" and "\n# m\n" in text
    assert "| points | 40 |" in text and "| labels | 5 |" in text
    assert "Nothing is known of its accuracy" in text


def test_held_out_scores_are_shown() -> None:
    config = {"n_samples": 9, "n_features": 2, "n_labels": 3}
    held = {"points": 1200, "precision": {"1": 81.24, "5": 40.0}}
    _, (_, accuracy) = plain_sections({**config, "state": {"held_out": held}}, "texts")
    assert "| P@1 | 81.2 |\n| P@5 | 40.0 |" in accuracy and "On 1,200 texts" in accuracy


def test_a_text_of_somebody_else_stays(tmp_path: Path) -> None:
    write_card(tmp_path, f"{MARK}\nfirst")
    write_card(tmp_path, f"{MARK}\nsecond")
    assert (tmp_path / "README.md").read_text() == f"{MARK}\nsecond"
    (tmp_path / "README.md").write_text("mine")
    write_card(tmp_path, f"{MARK}\nthird")
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.parametrize("cell", ["a|b", "a\nb"])
def test_cells_do_not_break_a_table(cell: str) -> None:
    assert len(table(["x"], [[cell]]).splitlines()) == 3
