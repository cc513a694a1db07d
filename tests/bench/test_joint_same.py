"""The comparison of two versions of joint: the same source twice ranks the same, by hand."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from .scripts import load_script


@pytest.fixture
def script() -> ModuleType:
    return load_script("joint_same")


def test_scores_are_means_and_seconds_the_least(script: ModuleType) -> None:
    one = {"P@1": 0.5, "P@3": 0.25, "P@5": 0.2, "fit": 3.0, "rank": 0.5}
    two = {"P@1": 0.7, "P@3": 0.35, "P@5": 0.1, "fit": 2.0, "rank": 0.75}
    made = script.table({"bibtex": {"before": [one, two], "now": [two]}}).splitlines()
    assert made[0].split() == ["P@1", "P@3", "P@5", "fit", "s", "rank", "s"]
    assert made[1].split() == ["bibtex", "before", "60.00", "30.00", "15.00", "2.00", "0.50"]
    assert made[2].split() == ["bibtex", "now", "70.00", "35.00", "10.00", "2.00", "0.75"]


def test_versions_take_turns_with_the_same_seeds(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(script, "run", lambda *given: asked.append(given) or {})
    old, new = Path("old"), Path("new")
    found = script.compare({"before": old, "now": new}, ["a", "b"], 2, 1)
    turns = [(old, "a", 0, 1), (new, "a", 0, 1), (old, "a", 1, 1), (new, "a", 1, 1)]
    assert asked[:4] == turns and len(asked) == 8
    assert found["b"] == {"before": [{}, {}], "now": [{}, {}]}
