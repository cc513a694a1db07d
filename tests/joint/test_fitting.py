"""Fitting: what is held out, what held-out points choose, and that nothing given is changed."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.scaling import fit_scaler
from dxml.data import Dataset
from dxml.joint import Joint
from dxml.joint._fitting import Fitted, _as_seen, fit_ensemble, n_candidates_for
from dxml.joint._held_out import Fold, hold_out, hold_out_groups
from dxml.joint._mixture import Mixture
from dxml.joint._plan import PARTS, Plan, make_plan, shape_of
from dxml.joint._points import tie_order_of
from dxml.joint._weighing import Weighing
from dxml.joint.parts._linear import LinearPart
from dxml.joint.parts._trees import TreesPart
from dxml.joint.parts.protocol import Data, Options, Part, Task
from dxml.methods import load_model
from dxml.progress import SILENT
from dxml.tagging import TextTagger

NEAREST: dict[str, Any] = {"candidates": "nearest", "width": 0, "device": "cpu"}
ALL: dict[str, Any] = {"candidates": "all", "width": 0, "device": "cpu"}


@pytest.fixture(scope="module", params=[NEAREST, ALL], ids=["nearest", "all"])
def fitted(request: pytest.FixtureRequest, small: tuple[Dataset, Dataset]) -> Joint:
    return Joint(**request.param).fit(small[0].X, small[0].Y)


def test_the_parts_are_those_of_all_points(fitted: Joint, small: tuple[Dataset, Dataset]) -> None:
    """Not of those that were left when some were held out."""
    train = small[0]
    assert fitted.train_features_.shape == train.X.shape
    assert (fitted.train_labels_ != train.Y).nnz == 0
    held = hold_out(300, 0.2, 0)[0].held
    Y = sp.hstack([train.Y, sp.csr_matrix(held[:, None])], format="csr")
    parts: Any = Joint(**fitted.get_params()).fit(train.X, Y).parts_
    linear = "linear" in parts
    learnt = parts["linear"].head.weights[25] if linear else parts["kernel"].vote.votes[:, 25]
    assert np.abs(learnt).max() > 0.1  # of a label that only points held out carry


@pytest.mark.parametrize("candidates", ["all", "nearest"])
def test_points_of_a_group_that_is_held_out_are_no_neighbours(
    candidates: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty groups of ten copies: held out by chance a point finds its copies, by group none."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), 10)
    X = sp.csr_matrix((rng.random((30, 40)) < 0.3)[groups].astype(np.float32) + 0.01)
    Y = sp.csr_matrix(np.eye(30, dtype=bool)[groups])
    nearest: list[float] = []
    kept = Weighing.__init__

    def seen(self: Weighing, trials: Any, queries: Any, opinions: Any) -> None:
        nearest.extend(cosine for query in queries for cosine in query.near.cosines[:, 0])
        kept(self, trials, queries, opinions)

    monkeypatch.setattr(Weighing, "__init__", seen)
    Joint(candidates=candidates, width=0, scaling="rows").fit(X, Y)
    assert min(nearest) > 0.999
    nearest.clear()
    Joint(candidates=candidates, width=0, scaling="rows").fit(X, Y, groups=groups)
    assert len(nearest) == 300 and max(nearest) < 0.99


class Planted(Weighing):
    """Says how good a mixture is by the C of its linear head, in the order of the attempts."""

    asked: ClassVar[list[float | None]] = []
    qualities: ClassVar[dict[float | None, float]] = {}

    def mixture(self, more: Mapping[str, Sequence[Part]] | None = None) -> tuple[float, Mixture]:
        linear: Any = None if more is None else more["linear"][0]
        C = None if linear is None else linear.C
        self.asked.append(C)
        return self.qualities[C], super().mixture(more)[1]


@pytest.fixture
def planted_quality(monkeypatch: pytest.MonkeyPatch) -> type[Planted]:
    monkeypatch.setattr("dxml.joint._fitting.Weighing", Planted)
    Planted.asked.clear()
    return Planted


@pytest.mark.parametrize(
    ("qualities", "asked"),
    [
        ({0.3: 0.5, 1: 0.505}, [0.3, 1]),
        ({0.3: 0.505, 1: 0.5}, [0.3, 1]),
        ({0.3: 0.5, 1: 0.6, 3: 0.605}, [0.3, 1, 3]),
        ({0.3: 0.5, 1: 0.6, 3: 0.7, 10: 0.6}, [0.3, 1, 3, 10]),
        ({0.3: 0.5, 1: 0.2, 0.1: 0.4}, [0.3, 1, 0.1]),
        ({0.3: 0.5, 1: 0.4, 0.1: 0.6, 0.03: 0.7}, [0.3, 1, 0.1, 0.03]),
    ],
)
def test_held_out_points_choose_the_strength_of_the_linear_head(
    qualities: dict[float | None, float],
    asked: list[float],
    small: tuple[Dataset, Dataset],
    planted_quality: type[Planted],
    tmp_path: Path,
) -> None:
    planted_quality.qualities = qualities
    train, test = small
    model = Joint(**NEAREST).fit(train.X, train.Y)
    assert planted_quality.asked == asked
    assert model.C_ == max(qualities, key=lambda C: qualities[C])
    given = Joint(**NEAREST | {"C": model.C_}).fit(train.X, train.Y)
    assert planted_quality.asked == [*asked, model.C_]
    assert given.score(test.X, test.Y) > 0.7
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model").C_ == model.C_


@pytest.mark.parametrize(
    ("qualities", "asked", "kept"),
    [
        ({None: 0.5, 0.3: 0.502}, [0.3], False),
        ({None: 0.5, 0.3: 0.504, 1: 0.502}, [0.3, 1], True),
    ],
)
def test_a_linear_head_must_earn_its_place_beside_a_kernel(
    qualities: dict[float | None, float],
    asked: list[float],
    kept: bool,
    small: tuple[Dataset, Dataset],
    planted_quality: type[Planted],
) -> None:
    planted_quality.qualities = qualities
    train, test = small
    model = Joint(**ALL).fit(train.X, train.Y)
    assert [C for C in planted_quality.asked if C is not None] == asked
    assert None in planted_quality.asked, "they are weighed without it too"
    linear = {"linear"} if kept else set()
    assert model.plan_.every_label
    assert set(model.plan_.parts) == {"frequency", "vote", "kernel"} | linear
    assert set(model.parts_) == set(model.mixture_.weights) == set(model.plan_.parts)
    assert model.score(test.X, test.Y) > 0.7


def test_a_wide_layer_gets_longer_shortlists() -> None:
    assert n_candidates_for(Plan(False, {"linear": {}})) == 100
    assert n_candidates_for(Plan(False, {"linear": {}, "wide": {}})) == 200


CASES: dict[str, dict[str, Any]] = {
    "all": {"candidates": "all"},
    "all, one fold": {"candidates": "all", "width": 32, "epochs": 2, "most_folds": 1},
    "nearest": {"candidates": "nearest", "epochs": 2},
    "nearest, one fold": {"candidates": "nearest", "width": 32, "epochs": 2, "most_folds": 1},
    "all, groups": {"candidates": "all", "groups": True},
    "nearest, groups": {"candidates": "nearest", "groups": True},
    "nothing held out": {"candidates": "all", "width": 32, "epochs": 2, "most_folds": 0},
}


def arrays_of(fitted: Fitted) -> dict[str, bytes]:
    """All that a fit learnt."""
    config, arrays = fitted.ensemble.state("float32")
    found = {name: array.tobytes() for name, array in (arrays | fitted.mixture.arrays()).items()}
    return found | {"config": repr(config).encode()}


@pytest.mark.parametrize("case", CASES)
def test_fitting_has_no_side_effects(case: str, small: tuple[Dataset, Dataset]) -> None:
    """What is given stays as it is, and a second fit gives the same bits."""
    settings = dict(CASES[case])
    most_folds, candidates = settings.pop("most_folds", 5), settings.pop("candidates")
    grouped = settings.pop("groups", False)
    X, Y = fit_scaler(small[0].X, "auto").transform(small[0].X), small[0].Y
    options = Options(
        standardised=False, device="cpu", precision="float32", random_state=0, **settings
    )
    plan = make_plan(shape_of(X, 25, device="cpu", memory=8e9, candidates=candidates), options)
    folds = hold_out(300, 0.2, 0, most_folds)
    if grouped:
        folds = hold_out_groups(np.arange(300) // 10, 0.2, 0)
    masks = [mask for fold in folds for mask in (fold.held, fold.asked)]
    tie_order = tie_order_of(Y)
    given = [X.data, X.indices, X.indptr, Y.data, Y.indices, Y.indptr, tie_order, *masks]
    before = [array.copy() for array in given]
    settings_before, options_before = copy.deepcopy(dict(plan.parts)), replace(options)
    registered = dict(PARTS)
    found = [
        fit_ensemble(X, Y, plan, folds, options, tie_order=tie_order, progress=SILENT)
        for _ in range(2)
    ]
    assert arrays_of(found[0]) == arrays_of(found[1])
    assert all(np.array_equal(*pair) for pair in zip(given, before, strict=True))
    assert dict(plan.parts) == settings_before and options == options_before
    assert registered == PARTS


@pytest.mark.parametrize("name", ["kernel", "wide", "frequency", "vote", "linear"])
def test_a_fit_does_not_change_the_part_it_goes_on_from(
    name: str, small: tuple[Dataset, Dataset]
) -> None:
    X, Y = fit_scaler(small[0].X, "auto").transform(small[0].X), small[0].Y
    options = Options(standardised=False, device="cpu", precision="float32", random_state=0)
    settings: dict[str, dict[str, Any]] = {
        "wide": {"width": 16, "learners": 1, "epochs": 2, "voters": 0},
        "linear": {"C": 0.3},
    }
    kind, task, own = PARTS[name], Task(Data(X, Y), options), settings.get(name, {})
    start = kind.fit(task, own)

    def held(part: Any) -> dict[str, Any]:
        config, arrays = part.state("float32")
        duals = getattr(part, "duals", None)
        found = {key: array.tobytes() for key, array in arrays.items()}
        return {**found, "duals": None if duals is None else duals.tobytes(), "config": config}

    before = held(start)
    kind.fit(task, own, start)
    assert held(start) == before
    assert name != "linear" or before["duals"]


def test_trees_of_a_trial_know_nothing_of_the_points_held_out(
    small: tuple[Dataset, Dataset],
) -> None:
    """Other labels of theirs change neither the trees nor their classifiers."""
    X, Y = fit_scaler(small[0].X, "auto").transform(small[0].X), small[0].Y
    options = Options(standardised=False, device="cpu", precision="float32", random_state=0)
    rows = np.arange(X.shape[0]) >= 50
    others = sp.csr_matrix(sp.vstack([Y[50:100], Y[50:]], format="csr"))
    assert (others[:50] != Y[:50]).nnz > 0
    found = [
        TreesPart.fit(Task(Data(X, labels), options, rows), {"n_trees": 2}).state("float32")[1]
        for labels in (Y, others)
    ]
    assert found[0].keys() == found[1].keys()
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])
    whole = TreesPart.fit(Task(Data(X, Y), options), {"n_trees": 2}).state("float32")[1]
    assert any(not np.array_equal(whole[name], found[0][name]) for name in whole)


def test_trees_of_a_trial_are_gone_when_the_last_head_is_trained(
    small: tuple[Dataset, Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    grown: list[tuple[bool, weakref.ref[Part]]] = []
    fit_trees, fit_head = TreesPart.fit, LinearPart.fit
    left: list[tuple[int, int]] = []

    def trees(task: Task, settings: Any, start: Part | None = None) -> TreesPart:
        part = fit_trees(task, settings, start)
        grown.append((task.rows is not None, weakref.ref(part)))
        return part

    def head(task: Task, settings: Any, start: Part | None = None) -> LinearPart:
        if task.rows is None:
            alive = [trial for trial, part in grown if part() is not None]
            left.append((alive.count(True), alive.count(False)))
        return fit_head(task, settings, start)

    monkeypatch.setattr(TreesPart, "fit", trees)
    monkeypatch.setattr(LinearPart, "fit", head)
    Joint(**NEAREST, n_trees=2, C=1.0).fit(small[0].X, small[0].Y)
    assert len(grown) > 1 and left == [(0, 1)]


def test_held_out_points_have_no_feature_that_only_they_have() -> None:
    """Features 2 and 3 are those of held-out points alone, so a model would not know them."""
    X = sp.csr_matrix(np.array([[3, 4, 0, 0], [0, 1, 0, 0], [3, 4, 0, 12], [0, 0, 2, 1]]) / 1.0)
    held = np.array([False, False, True, True])
    seen = _as_seen(sp.csr_matrix(X, dtype=np.float32), Fold(held, held))
    assert np.allclose(seen.toarray(), [[0.6, 0.8, 0, 0], [0, 0, 0, 0]])
    asked = _as_seen(X, Fold(held, np.array([False, False, True, False])))
    assert np.allclose(asked.toarray(), [[0.6, 0.8, 0, 0]])
    one = np.array([False, True, False, False])
    assert np.array_equal(_as_seen(X, Fold(one, one)).toarray(), X[[1]].toarray())


def test_what_held_out_points_promise_holds_where_words_are_rare() -> None:
    """Each label has a word of its own, and most words of a text no other text has.

    The words of a new text are then mostly unknown. Where held-out points kept theirs, their rows
    were more spread out than those of new points, which were called surer than they should be.
    """
    rng = np.random.default_rng(0)

    def texts(n: int, first: int) -> tuple[list[str], list[list[str]]]:
        labels = rng.integers(0, 12, n)
        told = rng.random(n) < 0.5
        words = [
            " ".join(
                [f"sign{label}" if sure else "none", *(f"w{first + 5 * i + j}" for j in range(5))]
            )
            for i, (label, sure) in enumerate(zip(labels, told, strict=True))
        ]
        return words, [[f"l{label}"] for label in labels]

    train, labels = texts(400, 0)
    tagger = TextTagger(vectors="none", min_df=1, device="cpu").fit(train, labels)
    test, right = texts(600, 10**6)
    tags = [row[0] for row in tagger.tag(test, top=1)]
    hits = np.mean([tag.name == own[0] for tag, own in zip(tags, right, strict=True)])
    assert abs(np.mean([tag.probability for tag in tags]) - hits) < 0.05
