"""The kernel as a part: chosen by a sample, taken back exactly, solved again for all points."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._core.arrays import Arrays
from dxml._learners.kernel_ridge import KERNELS, fit_kernel
from dxml.data import Dataset
from dxml.exceptions import ParameterError, command_line_advice
from dxml.joint import Joint
from dxml.joint import _answering as answering
from dxml.joint import _plan as plan_module
from dxml.joint._ensemble import every_pair
from dxml.joint._points import Known
from dxml.joint.parts import _kernel as module
from dxml.joint.parts._kernel import KernelPart
from dxml.joint.parts.protocol import Data, Lesson, Options, Query, Regrouping, Task, Trial
from dxml.metrics import precision_at_k

CPU = torch.device("cpu")


@pytest.fixture
def part(known: Known) -> KernelPart:
    return KernelPart(fit_kernel(known.points, known.labels, KERNELS[1], CPU))


def votes(model: Joint) -> Any:
    part = model.parts_["kernel"]
    assert isinstance(part, KernelPart)
    return part.vote


def test_a_kernel_speaks_of_every_pair(known: Known, part: KernelPart) -> None:
    X = known.points[:5]
    query = Query(X, known.search(X, 3, "cpu"), every_pair(5, 8), True, known, "cpu")
    expected = part.vote.scores(X, CPU)
    assert np.array_equal(part.scores(query).reshape(5, 8), expected)
    pairs = known.labels[:5]
    some = Query(X, query.near, pairs, False, known, "cpu")
    rows = np.repeat(np.arange(5), np.diff(pairs.indptr))
    assert np.array_equal(part.scores(some), expected[rows, pairs.indices])


def test_it_is_fitted_to_the_points_to_learn_from(known: Known, options: Options) -> None:
    rows = np.arange(30) < 20
    task = Task(Data(known.points, known.labels), options, rows)
    found = KernelPart.fit(task, asdict(KERNELS[1]))
    expected = fit_kernel(known.points[rows], known.labels[rows], KERNELS[1], CPU)
    assert found.vote.kernel == KERNELS[1]
    assert np.array_equal(found.vote.votes, expected.votes)
    assert KernelPart.fit(task, {}).vote.kernel == KERNELS[0]


def test_a_sample_chooses_the_kernel(planted: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """All points of each trial, or as many as may be; the votes are of all of them again."""
    seen = []
    choose = module.choose_kernel

    def spy(folds: Any, *rest: Any, **named: Any) -> Any:
        seen.append([(fold.X.shape[0], fold.Y.shape[0]) for fold in folds])
        return choose(folds, *rest, **named)

    monkeypatch.setattr(module, "choose_kernel", spy)
    data = planted.take(np.arange(300))
    model = Joint(candidates="all", width=0, device="cpu").fit(data.X, data.Y)
    monkeypatch.setattr(module, "CHOICE_POINTS", {"cpu": 50})
    model = Joint(**model.get_params()).fit(data.X, data.Y)
    assert seen == [[(240, 240)] * 5, [(50, 50)] * 5]
    assert votes(model).votes.shape == (300, 12)
    assert model.plan_.parts["kernel"] == asdict(votes(model).kernel)
    assert model.score(planted.X[300:], planted.Y[300:]) > 0.7


def test_every_trial_has_the_kernel_that_was_chosen(planted: Dataset, options: Options) -> None:
    X, Y = planted.X[:120], planted.Y[:120]
    trials = []
    for which in (0, 1):
        held = np.arange(120) % 2 == which
        task = Task(Data(X, Y), options, ~held)
        trials.append(Trial(task, X[held], Y[held], None))  # type: ignore[arg-type]
    settings, parts = KernelPart.choose(trials, {})
    for trial, part in zip(trials, parts, strict=True):
        assert isinstance(part, KernelPart) and asdict(part.vote.kernel) == settings
        expected = fit_kernel(*trial.task.learnt, part.vote.kernel, CPU)
        np.testing.assert_allclose(part.vote.votes, expected.votes, atol=1e-4)


def test_a_vote_is_taken_back_exactly(known: Known, part: KernelPart, options: Options) -> None:
    """The residual of the point and its label is then 0, and no other vote has changed."""
    row = 5
    label = int(known.labels[row].indices[0])
    after = part.unlabel(row, label, known.unlabel(row, label), options).vote
    said = after.scores(known.points[[row]], CPU)[0, label]
    left = 0 - said - after.kernel.ridge * after.votes[row, label]
    assert left == pytest.approx(0, abs=0.02)
    changed = np.argwhere(after.votes != part.vote.votes)
    assert changed.tolist() == [[row, label]]


def test_dropped_points_vote_no_more(known: Known, part: KernelPart) -> None:
    """What is left of their votes is a mean that all others have."""
    kept = np.arange(30) != 4
    after, gone = part.drop(kept, known.drop(kept)).vote, part.vote.votes[4]
    np.testing.assert_allclose(after.votes, part.vote.votes[kept] + gone / 29, atol=1e-6)
    assert after.votes.sum(axis=0) == pytest.approx(part.vote.votes.sum(axis=0), abs=1e-4)
    half = replace(part.vote, votes=part.vote.votes.astype(np.float16).astype(np.float32))
    found = KernelPart(half).drop(kept, known.drop(kept)).vote.votes
    assert np.array_equal(found.astype(np.float16), found), "as they will be read"
    nobody = part.drop(np.zeros(30, dtype=bool), known).vote
    assert nobody.votes.shape == (0, 8)


def test_forgetting_a_tenth_of_the_points_costs_little(planted: Dataset) -> None:
    """Votes for a label and against it cancel out; those of the others must go on doing so."""
    model = Joint(device="cpu").fit(planted.X[:400], planted.Y[:400])
    X, Y = planted.X[400:], planted.Y[400:]
    before = precision_at_k(Y, model.predict_topk(X, 1), 1)[0]
    carriers = planted.Y[:400].tocsc()[:, 0].nonzero()[0][:40]
    assert len(carriers) == 40
    model.forget(carriers)
    assert precision_at_k(Y, model.predict_topk(X, 1), 1)[0] > before - 0.04


def test_new_points_get_votes_that_fit_their_labels(
    known: Known, part: KernelPart, options: Options
) -> None:
    """With every known point involved, the votes are those of all points together."""
    old, kept = known.drop(np.arange(30) < 20), np.arange(30) < 20
    first = KernelPart(fit_kernel(old.points, old.labels, KERNELS[1], CPU))
    X, Y = known.points[~kept], known.labels[~kept]
    grown = first.add(Lesson(X, Y, old, old.add(X, Y), options))
    assert grown.vote.votes == pytest.approx(part.vote.votes, abs=1e-4)
    assert first.vote.votes.shape == (20, 8)


def test_training_on_solves_for_all_points(planted: Dataset, halves: Any) -> None:
    old, fresh, _ = halves
    model = Joint(device="cpu").fit(planted.X[old], planted.Y[old][:, :10])
    model.partial_fit(planted.X[fresh], planted.Y[fresh]).catch_up()
    found = votes(model)
    whole = fit_kernel(model.train_features_, model.train_labels_, found.kernel, CPU)
    assert found.votes == pytest.approx(whole.votes, abs=0.01)  # 16 bits


def test_a_kernel_that_is_too_large_to_solve_stays(
    known: Known, part: KernelPart, options: Options, planted: Dataset
) -> None:
    task = Task(Data(known.points, known.labels), options)
    assert part.train_on(task, None) is part
    nothing = KernelPart(replace(part.vote, votes=np.zeros_like(part.vote.votes)))
    solved = nothing.train_on(task, {})
    assert solved.vote.kernel == part.vote.kernel
    np.testing.assert_allclose(solved.vote.votes, part.vote.votes, atol=1e-5)
    model = Joint(device="cpu").fit(planted.X[:100], planted.Y[:100])
    before = votes(model).votes
    model.memory_gb = 1e-9
    assert (votes(model.catch_up()).votes == before).all()


def test_it_proposes_its_best_labels_and_scores_them_once(
    known: Known, part: KernelPart, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = known.points[:5]
    expected, calls, every = part.vote.scores(X, CPU), [], KernelPart._every

    def counted(self: KernelPart, query: Query) -> Any:
        calls.append(1)
        return every(self, query)

    monkeypatch.setattr(KernelPart, "_every", counted)
    query = Query(X, known.search(X, 3, "cpu"), known.labels[:5], False, known, "cpu")
    proposed = part.propose(query, 3)
    best = np.argsort(-expected, axis=1)[:, :3]
    assert [set(row) for row in proposed.tolist()] == [set(row) for row in best.tolist()]
    rows = np.repeat(np.arange(5), np.diff(query.pairs.indptr))
    assert np.array_equal(part.scores(query), expected[rows, query.pairs.indices])
    assert len(calls) == 1
    assert np.array_equal(part.propose(query, 8), np.tile(np.arange(8), (5, 1)))


def test_the_best_labels_are_looked_for_in_runs_of_rows(
    known: Known, part: KernelPart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The opposites of all scores and their places took three times the memory of the scores."""
    query = Query(
        known.points, known.search(known.points, 3, "cpu"), known.labels, False, known, "cpu"
    )
    whole, sizes, partition = part.propose(query, 3), [], np.argpartition

    def counted(scores: Any, *rest: Any, **named: Any) -> Any:
        sizes.append(scores.size)
        return partition(scores, *rest, **named)

    monkeypatch.setattr(module, "PROPOSED_FROM", 60)
    monkeypatch.setattr(np, "argpartition", counted)
    assert np.array_equal(part.propose(query, 3), whole)
    assert sizes == [56, 56, 56, 56, 16]


def test_beside_a_shortlist_points_are_ranked_in_runs(
    planted: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores of all labels of thousands of points took gigabytes."""
    settings = {"candidates": "nearest", "width": 0, "n_trees": 0, "device": "cpu"}
    model = Joint(kernel=True, **settings).fit(planted.X[:60], planted.Y[:60])
    whole, sizes, every = model.predict_topk(planted.X[:50], 3), [], KernelPart._every

    def counted(self: KernelPart, query: Query) -> Any:
        sizes.append(query.X.shape[0])
        return every(self, query)

    monkeypatch.setattr(KernelPart, "_every", counted)
    monkeypatch.setattr(answering, "KERNEL_SCORES", 20 * 12 + 5)
    found = model.predict_topk(planted.X[:50], 3)
    assert sizes == [20, 20, 10]
    assert np.array_equal(found.indices, whole.indices)
    assert np.array_equal(found.scores, whole.scores)


def test_beside_a_shortlist_it_is_weighed_kept_and_taught(
    planted: Dataset, halves: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As long texts just beyond `EVERY_LABEL_PAIRS` have it."""
    for home in (module, plan_module):
        monkeypatch.setattr(home, "EVERY_LABEL_PAIRS", 100)
    monkeypatch.setattr(module, "TREE_FEATURES", 1)
    old, fresh, new = halves
    X_new = planted.X[new]
    model = Joint(n_trees=0, width=0, device="cpu").fit(planted.X[old], planted.Y[old][:, :10])
    assert not model.plan_.every_label and set(model.parts_) >= {"kernel", "linear", "vote"}
    assert votes(model).kernel.pull == 0
    model.save(tmp_path / "model")
    again = Joint.load(tmp_path / "model").predict_topk(X_new, 3)
    assert np.array_equal(again.indices, model.predict_topk(X_new, 3).indices)
    model.partial_fit(planted.X[fresh], planted.Y[fresh])
    assert votes(model).votes.shape == (400, planted.Y.shape[1])


def test_a_kernel_that_is_asked_for_stands_beside_a_shortlist(
    planted: Dataset, halves: Any, tmp_path: Path
) -> None:
    old, _, new = halves
    X, Y, settings = planted.X[old], planted.Y[old], {"candidates": "nearest", "device": "cpu"}
    model = Joint(kernel=True, width=0, **settings).fit(X, Y)
    plain = Joint(width=0, n_trees=0, **settings).fit(X, Y)
    assert "kernel" in model.parts_ and "kernel" not in plain.parts_
    assert not model.plan_.every_label
    ranking = model.predict_topk(planted.X[new], 3)
    model.save(tmp_path / "model")
    again = Joint.load(tmp_path / "model")
    assert again.kernel is True
    assert np.array_equal(again.predict_topk(planted.X[new], 3).indices, ranking.indices)
    assert "kernel" not in Joint(kernel=False, device="cpu").fit(X, Y).parts_


def test_a_kernel_that_memory_does_not_allow_is_refused_before_training(planted: Dataset) -> None:
    """500 points, 12 labels: 12 · 500² + 20 · 500 · 12 bytes."""
    said = r"kernel=True takes about 0\.0031 GB for 500 points and 12 labels"
    with pytest.raises(ParameterError, match=said):
        Joint(kernel=True, memory_gb=0.0031).fit(planted.X, planted.Y)
    assert "kernel" in Joint(kernel=True, memory_gb=0.0032).fit(planted.X, planted.Y).parts_


def test_what_a_kernel_would_take_is_said_before_texts_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """4 · 90,000 · (270,000 + 5 · 2,000) bytes; on the command line by its options."""
    monkeypatch.setattr("dxml.joint._model.open_encoder", None)
    n = 90_000
    X, Y = sp.csr_matrix((n, 1), dtype=np.float32), sp.eye(n, 2_000, dtype=bool, format="csr")
    said = "100.8 GB for 90,000 points and 2,000 labels, .* Raise "
    with pytest.raises(ParameterError, match=f"^kernel=True takes about {said}memory_gb, or"):
        Joint(kernel=True).fit(X, Y, texts=[""] * n)
    asked = f"^--set kernel=true takes about {said}--set memory_gb, or"
    with command_line_advice(), pytest.raises(ParameterError, match=asked):
        Joint(kernel=True).fit(X, Y)


@pytest.fixture
def twice(known: Known) -> KernelPart:
    """With a second regression over the scores."""
    kernel = replace(KERNELS[1], second=1.0)
    return KernelPart(fit_kernel(known.points, known.labels, kernel, CPU))


def second_of(part: KernelPart) -> Any:
    assert part.vote.second is not None
    return part.vote.second


def test_a_second_regression_is_for_small_data_of_enough_held_out_points(
    known: Known, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def spy(folds: Any, *rest: Any, second: bool, **named: Any) -> Any:
        asked.append(second)
        return [fit_kernel(fold.X, fold.Y, KERNELS[1], CPU) for fold in folds]

    monkeypatch.setattr(module, "choose_kernel", spy)
    held = np.arange(30) % 3 == 0
    task = Task(Data(known.points, known.labels), options, ~held)
    trial = Trial(task, known.points[held], known.labels[held], known)
    for most, least in ((30, 20), (29, 20), (30, 21)):  # of all points, of those held out twice
        monkeypatch.setattr(module, "SECOND_POINTS", most)
        monkeypatch.setattr(module, "SECOND_HELD", least)
        KernelPart.choose([trial, trial], {})
    assert asked == [True, False, False]


def test_a_dropped_point_is_gone_from_the_second_regression(
    known: Known, twice: KernelPart, options: Options
) -> None:
    kept = np.arange(30) != 4
    after = twice.drop(kept, known.drop(kept))
    gone = second_of(twice).votes[4]
    np.testing.assert_allclose(
        second_of(after).votes, second_of(twice).votes[kept] + gone / 29, atol=1e-6
    )
    assert np.array_equal(second_of(after).points, second_of(twice).points[kept])
    lesson = Lesson(known.points[:3], known.labels[:3], known, known, options)
    later = known.add(known.points[:3], known.labels[:3])
    grown = twice.add(replace(lesson, after=later))
    kept = np.arange(33) != 31  # a point that the second regression does not have
    fewer = grown.drop(kept, later.drop(kept))
    assert fewer.vote.votes.shape == (32, 8) and second_of(fewer).votes.shape == (30, 8)
    assert np.array_equal(second_of(fewer).votes, second_of(twice).votes)


def test_a_second_regression_without_a_point_is_none(known: Known, twice: KernelPart) -> None:
    """Its points were forgotten and others came: a GPU divided by their number."""
    later = known.add(known.points[:3], known.labels[:3])
    grown = replace(
        twice.vote,
        points=later.points,
        votes=np.concatenate([twice.vote.votes, twice.vote.votes[:3]]),
    )
    kept = np.arange(33) >= 30
    after = KernelPart(grown).drop(kept, later.drop(kept)).vote
    assert after.second is None and after.kernel.second == 0
    assert after.kernel == replace(twice.vote.kernel, second=0.0)


@pytest.mark.parametrize("scale", [1.0, 5e4], ids=["rounded", "not rounded"])
def test_votes_that_are_left_are_rounded_once(
    known: Known, part: KernelPart, monkeypatch: pytest.MonkeyPatch, scale: float
) -> None:
    """As they will be read: in 16 bits, or in 32 where rounding errors would add up."""
    votes = (part.vote.votes * np.float32(scale)).astype(np.float32)
    if scale == 1:
        votes = votes.astype(np.float16).astype(np.float32)
    kept, rounded, packed = np.arange(30) != 4, [], module._packed
    gone = votes[~kept].sum(axis=0) / np.float32(29)
    expected = module._rounded(votes[kept] + gone, "float16")

    def counted(name: str, given: Any, precision: Any) -> Any:
        rounded.append(len(given))
        return packed(name, given, precision)

    monkeypatch.setattr(module, "_packed", counted)
    found = KernelPart(replace(part.vote, votes=votes)).drop(kept, known.drop(kept)).vote.votes
    assert np.array_equal(found, expected)
    assert rounded == ([29] if scale == 1 else [30, 29])


def test_a_label_taken_off_is_taken_back_twice(
    known: Known, twice: KernelPart, options: Options
) -> None:
    """Both votes of the point for the label change, and a label it never had is not missed."""
    row, before = 5, second_of(twice)
    label = int(known.labels[row].indices[0])
    after = second_of(twice.unlabel(row, label, known.unlabel(row, label), options))
    changed = np.argwhere(after.votes != before.votes)
    assert changed.tolist() == [[row, label]]
    step = before.votes[row, label] - after.votes[row, label]
    assert step == pytest.approx(1 / (1 + before.kernel.ridge), abs=1e-5)


def test_merged_labels_are_one_in_the_second_regression(
    known: Known, twice: KernelPart, options: Options
) -> None:
    """A row has the roots of scores, so that the root of their sum is left of two."""
    main, both = np.array([0, 1, 3, 4, 5, 6]), np.array([1, 7])
    change = Regrouping(main, {1: both}, np.array([]), None, known, known, options)
    before, after = second_of(twice), second_of(twice.regroup(change))
    assert after.votes.shape == after.points.shape == (30, len(main))
    shares = np.square(before.points)
    wanted = shares[:, main]
    wanted[:, 1] += shares[:, 7]
    wanted = np.sqrt(wanted / wanted.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(after.points, wanted, atol=1e-5)
    carried = known.labels[:, both].toarray().sum(axis=1) - 1.0
    summed = before.votes[:, both].sum(axis=1) - np.maximum(carried, 0) / 2
    np.testing.assert_allclose(after.votes[:, 1], summed, atol=1e-5)
    np.testing.assert_allclose(after.votes[:, 2:], before.votes[:, main[2:]], atol=1e-6)


def test_without_a_label_of_its_own_there_is_no_second_regression(
    known: Known, options: Options
) -> None:
    old = fit_kernel(known.points, known.labels[:, :3], replace(KERNELS[1], second=1.0), CPU)
    wide = replace(old, votes=np.pad(old.votes, ((0, 0), (0, 5))))
    change = Regrouping(np.arange(3, 8), {}, np.array([]), None, known, known, options)
    after = KernelPart(wide).regroup(change).vote
    assert after.second is None and after.kernel.second == 0


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_a_second_regression_is_saved(known: Known, twice: KernelPart, precision: Any) -> None:
    config, arrays = twice.state(precision)
    again = KernelPart.restore(config, Arrays(arrays), known)
    atol = 1e-6 if precision == "float32" else 0.01
    found, wanted = again.vote.scores(known.points, CPU), twice.vote.scores(known.points, CPU)
    np.testing.assert_allclose(found, wanted, atol=atol)
    assert again.settings == twice.settings and again.settings["second"] == 1.0
    older = {name: value for name, value in config.items() if not name.startswith("second")}
    assert KernelPart.restore(older, Arrays(arrays), known).vote.second is None
    for name, wrong in (("second_points", 31), ("second_labels", 9)):
        with pytest.raises(ValueError, match=name):
            KernelPart.restore({**config, name: wrong}, Arrays(arrays), known)
