"""Variants of a plan: held-out points choose the settings of a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pytest

from dxml._core.arrays import Arrays
from dxml._core.precision import Precision
from dxml.data import Dataset, make_planted
from dxml.joint import PARTS, Joint
from dxml.joint._mixture import Opinion
from dxml.joint._points import Known
from dxml.joint.parts.protocol import Named, Options, Part, Query, Settings, Shape, Task

Told = dict[tuple[int, ...], npt.NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class Whisper(Part):
    """Loud, it scores pairs by what it was told of each row; as planned it says nothing."""

    name: ClassVar[str] = "whisper"
    opinion: ClassVar[Opinion] = Opinion(default_weight=1.0)
    told: ClassVar[Told] = {}
    fits: ClassVar[list[tuple[bool, int]]] = []

    loud: bool

    @classmethod
    def plan(
        cls, shape: Shape, options: Options, others: Mapping[str, Settings]
    ) -> Settings | None:
        return {"loud": False}

    @classmethod
    def variants(cls, shape: Shape, options: Options, settings: Settings) -> Sequence[Settings]:
        return ({"loud": True},)

    @classmethod
    def fit(cls, task: Task, settings: Settings, start: Part | None = None) -> Self:
        cls.fits.append((settings["loud"], task.learnt[0].shape[0]))
        return cls(settings["loud"])

    @property
    def settings(self) -> Settings:
        return {"loud": self.loud}

    def scores(self, query: Query) -> npt.NDArray[np.float32]:
        rows = [tuple(query.X[i].indices.tolist()) for i in range(query.X.shape[0])]
        said = np.array([self.told[row] for row in rows], dtype=np.float32)
        owner = np.repeat(np.arange(len(rows)), np.diff(query.pairs.indptr))
        found: npt.NDArray[np.float32] = said[owner, query.pairs.indices]
        return found if self.loud else np.zeros_like(found)

    def state(self, precision: Precision) -> tuple[dict[str, Any], Named]:
        return {"loud": self.loud}, {}

    @classmethod
    def restore(cls, config: Settings, arrays: Arrays, known: Known) -> Self:
        return cls(bool(config["loud"]))


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.setitem(PARTS, "whisper", Whisper)
    Whisper.fits.clear()
    return make_planted(400, 120, 12, features_per_point=15, noise=0.8, random_state=4)


def tell(data: Dataset, said: npt.NDArray[np.float32]) -> None:
    Whisper.told = {
        tuple(data.X[i].indices.tolist()): row for i, row in enumerate(said.astype(np.float32))
    }


def fitted(data: Dataset, n: int = 300) -> Joint:
    return Joint(width=0, device="cpu").fit(data.X[:n], data.Y[:n])


@pytest.mark.parametrize("folds", ["several folds", "one fold"])
def test_a_variant_that_ranks_held_out_points_better_is_taken(
    folds: str, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    if folds == "one fold":
        monkeypatch.setattr("dxml.joint._model.MOST_FOLDS", 1)
    rng = np.random.default_rng(0)
    tell(data, 3 * data.Y.toarray() + rng.normal(size=data.Y.shape))
    model = fitted(data)
    assert model.plan_.parts["whisper"] == {"loud": True} and model.plan_.variants == ()
    assert Whisper.fits[-1] == (True, 300), "the last fit is with all points"
    monkeypatch.setattr(Whisper, "variants", classmethod(lambda *_: ()))
    without = fitted(data)
    assert without.plan_.parts["whisper"] == {"loud": False}
    wrong, before = (1 - each.score(data.X[300:], data.Y[300:]) for each in (model, without))
    assert wrong < 0.5 * before, (wrong, before)


def test_a_variant_that_does_not_leaves_no_trace(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(data, np.random.default_rng(0).normal(size=data.Y.shape))
    model = fitted(data)
    assert model.plan_.parts["whisper"] == {"loud": False}
    assert any(loud for loud, _ in Whisper.fits), "it was tried"
    assert all(n < 300 for loud, n in Whisper.fits if loud)
    monkeypatch.setattr(Whisper, "variants", classmethod(lambda *_: ()))
    ours, theirs = (each.predict_topk(data.X[300:], 5) for each in (model, fitted(data)))
    assert np.array_equal(ours.indices, theirs.indices)
    assert np.array_equal(ours.scores, theirs.scores)


def test_without_held_out_points_the_plan_holds(data: Dataset) -> None:
    tell(data, data.Y.toarray())
    model = fitted(data, 8)
    assert model.plan_.parts["whisper"] == {"loud": False}
    assert Whisper.fits == [(False, 8)]
