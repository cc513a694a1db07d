"""A part that dxml does not have, added by one class and one line: label centroids.

All that a model does goes through the public API alone, and the part is heard in all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from dxml import load_model
from dxml._core.arrays import Arrays
from dxml._core.precision import Precision
from dxml._core.storage import read_folder
from dxml.data import Dataset, make_planted
from dxml.exceptions import ModelFormatError
from dxml.joint import PARTS, Joint
from dxml.joint._mixture import Opinion
from dxml.joint._points import Known
from dxml.joint.parts.protocol import Lesson, Named, Options, Part, Query, Settings, Shape, Task

MODELS = Path(__file__).parents[1] / "models"
WAYS = ["all", "nearest"]
KNOWN = 10  # of the 12 labels; the last two are new


def centroids(X: sp.csr_matrix, Y: sp.csr_matrix) -> npt.NDArray[np.float32]:
    """The mean of the unit rows of each label's points, (n_labels, n_features)."""
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    unit = sp.diags(1 / np.maximum(lengths, 1e-12)) @ X
    counts = np.asarray(Y.sum(axis=0)).ravel()
    means = (Y.T.astype(np.float32) @ unit).toarray() / np.maximum(counts, 1)[:, None]
    return means.astype(np.float32)


@dataclass(frozen=True, eq=False)
class Centroids(Part):
    """Scores a pair by the dot product of the point with the label's centroid."""

    name: ClassVar[str] = "centroid"  # sorts before all others
    opinion: ClassVar[Opinion] = Opinion(default_weight=4.0)

    means: npt.NDArray[np.float32]

    @classmethod
    def plan(
        cls, shape: Shape, options: Options, others: Mapping[str, Settings]
    ) -> Settings | None:
        return {}

    @classmethod
    def fit(cls, task: Task, settings: Settings, start: Part | None = None) -> Self:
        return cls(centroids(*task.learnt))

    def scores(self, query: Query) -> npt.NDArray[np.float32]:
        rows = np.repeat(np.arange(query.X.shape[0]), np.diff(query.pairs.indptr))
        found: npt.NDArray[np.float32] = (query.X @ self.means.T)[rows, query.pairs.indices]
        return found

    def state(self, precision: Precision) -> tuple[dict[str, Any], Named]:
        return {}, {"centroid.means": self.means}

    @classmethod
    def restore(cls, config: Settings, arrays: Arrays, known: Known) -> Self:
        return cls(arrays.floats("centroid.means", known.n_labels, known.points.shape[1]))

    def add(self, lesson: Lesson) -> Part:
        return self._of(lesson.after)

    def drop(self, kept: npt.NDArray[np.bool_], after: Known) -> Part:
        return self._of(after)

    def unlabel(self, row: int, label: int, after: Known, options: Options) -> Part:
        return self._of(after)

    def train_on(self, task: Task, planned: Settings | None) -> Part:
        return type(self).fit(task, {})

    @classmethod
    def _of(cls, known: Known) -> Centroids:
        return cls(centroids(known.points, known.labels))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PARTS, "centroid", Centroids)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return make_planted(
        500, 120, 12, labels_per_point=1.5, features_per_point=12, noise=0.1, random_state=4
    )


@pytest.fixture(scope="module")
def rows(data: Dataset) -> tuple[Any, Any]:
    """Training points without and with one of the last two labels."""
    fresh = np.asarray(data.Y[:400, KNOWN:].sum(axis=1)).ravel() > 0
    return np.flatnonzero(~fresh), np.flatnonzero(fresh)


@pytest.fixture(params=WAYS)
def model(request: pytest.FixtureRequest, data: Dataset, rows: Any) -> Joint:
    old = rows[0]
    model = Joint(candidates=request.param, width=0, device="cpu")
    return model.fit(data.X[old], data.Y[old][:, :KNOWN])


def means(model: Joint) -> npt.NDArray[np.float32]:
    part = model.parts_["centroid"]
    assert isinstance(part, Centroids)
    return part.means


def assert_of_known_points(model: Joint) -> None:
    """The centroids are those of the points that are known now."""
    expected = centroids(model.train_features_, model.train_labels_)
    np.testing.assert_allclose(means(model), expected, atol=2e-3)  # points are in 16 bits


def same(model: Joint, other: Joint, X: sp.csr_matrix) -> bool:
    ours, theirs = (each.predict_topk(X, 5) for each in (model, other))
    equal = np.array_equal(ours.indices, theirs.indices)
    return equal and np.array_equal(ours.scores, theirs.scores)


def test_it_is_planned_fitted_and_weighed(model: Joint, data: Dataset) -> None:
    """The part that comes first by name gets its own weight, and the others keep theirs."""
    assert model.plan_.parts["centroid"] == {}
    assert sorted(model.mixture_.weights) == sorted(model.plan_.parts) == sorted(model.parts_)
    assert min(model.plan_.parts) == "centroid"
    sizes = {name: len(weights) for name, weights in model.mixture_.weights.items()}
    assert sizes == {name: 1 + PARTS[name].opinion.is_share for name in model.parts_}
    assert model.mixture_.weights["centroid"][0] != 0
    assert_of_known_points(model)
    assert model.score(data.X[400:], data.Y[400:][:, :KNOWN]) > 0.6


def test_it_is_heard_in_the_ranking(model: Joint, data: Dataset, rows: Any) -> None:
    """A fit without it ranks otherwise, and so do centroids of nothing."""
    old = rows[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(PARTS, "centroid")
        without = Joint(**model.get_params()).fit(data.X[old], data.Y[old][:, :KNOWN])
    assert "centroid" not in without.plan_.parts
    assert not same(model, without, data.X[400:])
    before = model.score_labels(data.X[400:], range(KNOWN))
    weight = float(model.mixture_.weights["centroid"][0])
    said = model.scaler_.transform(data.X[400:]) @ means(model).T
    means(model)[:] = 0
    after = model.score_labels(data.X[400:], range(KNOWN))
    np.testing.assert_allclose(before - after, weight * said, atol=1e-3)


def test_it_is_saved_and_opened(model: Joint, data: Dataset, tmp_path: Path) -> None:
    again = load_model(model.save(tmp_path / "m"))
    assert isinstance(again, Joint)
    assert same(model, again, data.X[400:])
    assert again.plan_ == model.plan_
    assert {name: weights.tolist() for name, weights in again.mixture_.weights.items()} == {
        name: weights.tolist() for name, weights in model.mixture_.weights.items()
    }
    assert np.array_equal(means(again), means(model))


def test_a_new_label_is_predicted_through_it(model: Joint, data: Dataset, rows: Any) -> None:
    fresh = rows[1]
    model.partial_fit(data.X[fresh], data.Y[fresh])
    assert_of_known_points(model)
    assert means(model).shape == (12, 120) and means(model)[KNOWN:].any(axis=1).all()
    truth = data.Y[400:]
    alone = 400 + np.flatnonzero(
        (truth[:, KNOWN:].sum(axis=1).A1 == 1) & (truth.sum(axis=1).A1 == 1)
    )
    best = model.predict_topk(data.X[alone], 1).indices[:, 0]
    assert (best >= KNOWN).mean() > 0.7
    label = int(data.Y[alone[0]].indices[0])
    weight = float(model.mixture_.weights["centroid"][0])
    said = float((model.scaler_.transform(data.X[alone[0]]) @ means(model)[label])[0])
    [why] = model.explain_labels(data.X[alone[0]], [label])
    assert said > 0 and why.added["centroid"] == pytest.approx(weight * said, abs=1e-3)


def test_it_is_explained_under_its_name(model: Joint, data: Dataset) -> None:
    """An empty row says nothing: what the part adds is its weight times its score."""
    row = data.X[401]
    scaled = model.scaler_.transform(row)
    weight = float(model.mixture_.weights["centroid"][0])
    found = model.explain(row, k=3)
    for why in found:
        assert set(why.added) == set(model.plan_.parts) - {"frequency"}
        said = float((scaled @ means(model)[why.label])[0])
        assert why.added["centroid"] == pytest.approx(weight * said, abs=1e-3)
    ranked = model.predict_topk(row, 3).row(0)
    assert [why.label for why in found] == [label for label, _ in ranked]


def test_points_are_forgotten_and_labels_taken_off(
    model: Joint, data: Dataset, tmp_path: Path
) -> None:
    before = means(model).copy()
    model.forget([0, 7])
    assert_of_known_points(model)
    assert not np.array_equal(means(model), before)
    before = means(model).copy()
    label = int(model.train_labels_[3].indices[0])
    model.remove_label(3, label)
    assert_of_known_points(model)
    changed = np.abs(means(model) - before).max(axis=1) > 1e-6
    assert np.flatnonzero(changed).tolist() == [label]
    again = load_model(model.save(tmp_path / "taught"))
    assert isinstance(again, Joint) and same(model, again, data.X[400:])


def test_it_catches_up(model: Joint, data: Dataset, rows: Any, tmp_path: Path) -> None:
    fresh = rows[1]
    weights = model.mixture_.weights
    model.partial_fit(data.X[fresh], data.Y[fresh]).catch_up()
    assert_of_known_points(model)
    assert model.mixture_.weights is weights and "centroid" in model.plan_.parts
    again = load_model(model.save(tmp_path / "caught-up"))
    assert isinstance(again, Joint) and same(model, again, data.X[400:])


def test_it_is_fitted_again(model: Joint, data: Dataset, rows: Any) -> None:
    fresh = rows[1]
    model.partial_fit(data.X[fresh], data.Y[fresh]).refit()
    assert_of_known_points(model)
    assert "centroid" in model.mixture_.weights and model.n_labels_ == 12
    assert model.score(data.X[400:], data.Y[400:]) > 0.6


def test_with_too_few_points_its_default_weight_holds(data: Dataset) -> None:
    for way in WAYS:
        few = Joint(candidates=way, width=0, device="cpu").fit(data.X[:15], data.Y[:15])  # type: ignore[arg-type]
        assert few.mixture_.weights["centroid"].tolist() == [4.0]
        assert few.predict_topk(data.X[:3], 2).indices.shape == (3, 2)


@pytest.mark.parametrize("there", [True, False], ids=["registered", "not registered"])
@pytest.mark.parametrize(
    "folder", sorted(MODELS.glob("format-4-*")), ids=lambda folder: str(folder.name)
)
def test_old_models_do_not_mind(folder: Path, there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their weights had no names: they went by the order of the parts that there were then."""
    if not there:
        monkeypatch.delitem(PARTS, "centroid")
    model = load_model(folder)
    assert isinstance(model, Joint)
    stored = read_folder(folder)[1].floats("mixture.weights", None).tolist()
    assert "centroid" not in model.plan_.parts and "centroid" not in model.mixture_.weights
    assert set(model.mixture_.weights) == set(model.parts_)
    in_order = [model.mixture_.weights[name].tolist() for name in sorted(model.mixture_.weights)]
    assert [weight for part in in_order for weight in part] == stored
    assert [len(part) for part in in_order] == [
        2 if name in ("kernel", "vote") else 1 for name in sorted(model.mixture_.weights)
    ]


def test_a_model_with_a_part_that_is_not_known(
    model: Joint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = model.save(tmp_path / "m")
    monkeypatch.delitem(PARTS, "centroid")
    with pytest.raises(
        ModelFormatError, match="this model has a part 'centroid' that this dxml does not know"
    ):
        load_model(folder)
