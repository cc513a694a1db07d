"""A training that breaks off after any of its steps goes on to the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dxml._core import stages
from dxml._core.stages import open_stages
from dxml.data import make_planted
from dxml.methods import method_class

DATA = make_planted(150, 40, 8, labels_per_point=2, features_per_point=8, random_state=4)
KINDS: dict[str, tuple[str, dict[str, Any], int]] = {
    "linear": ("joint", {"candidates": "nearest", "width": 0}, 3),
    "trees": ("joint", {"candidates": "nearest", "width": 0, "n_trees": 2}, 3),
    "wide": ("joint", {"width": 16, "epochs": 2}, 1),
    "dxml": ("dxml", {"epochs": 2, "walks_per_label": 3, "dim": 4, "hidden": 8}, 3),
}


class BrokenOff(Exception):
    """Somebody pulled the plug."""


class Breaking:
    """A progress that breaks off at the n-th step, and remembers the steps."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.names = at, list[str]()

    @contextmanager
    def stage(self, name: str, total: float | None = None, unit: str = "") -> Iterator[Breaking]:
        self.names.append(name)
        if len(self.names) == self.at:
            raise BrokenOff(name)
        yield self

    def advance(self, amount: float = 1) -> None:
        pass

    def note(self, text: str) -> None:
        pass


def content(model: Any) -> dict[str, Any]:
    """All arrays of a model, bit by bit."""
    return {name: (array.dtype, array.tobytes()) for name, array in model._packed()[1].items()}


@pytest.mark.parametrize("kind", KINDS)
def test_to_the_same_bits(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "LEAST", 0.0)
    method, settings, least = KINDS[kind]
    whole = Breaking()
    expected = content(method_class(method)(**settings).fit(DATA.X, DATA.Y, progress=whole))
    stored, spared = set(), 0
    n = len(whole.names)
    for at in sorted({2, n // 2, n}):
        folder = tmp_path / str(at)
        with pytest.raises(BrokenOff), open_stages(folder):
            method_class(method)(**settings).fit(DATA.X, DATA.Y, progress=Breaking(at))
        stored.add(len(list((folder / stages.FOLDER).glob("*"))))
        again = Breaking()
        with open_stages(folder, resume=True):
            model = method_class(method)(**settings).fit(DATA.X, DATA.Y, progress=again)
        assert content(model) == expected
        spared = max(spared, len(whole.names) - len(again.names))
    assert max(stored) >= least and spared >= least, "what was done is not done again"
    assert np.isfinite(model.predict_topk(DATA.X, 3).scores).all()
