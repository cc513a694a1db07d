"""What is taught holds at once, whatever parts a model has; what is forgotten is gone."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
import torch

from dxml.data import Dataset, make_planted
from dxml.exceptions import DataFormatError
from dxml.joint import Joint
from dxml.joint.catching_up import NEARBY, catch_up
from dxml.joint.parts import without_self
from dxml.joint.teaching import _new_task
from dxml.learners.kernel_ridge import Kernel, KernelVote, extend_kernel, fit_kernel
from dxml.learners.linear_head import fit_linear, label_tasks
from dxml.methods import load_model
from dxml.metrics import precision_at_k

PLANS: dict[str, dict[str, Any]] = {
    "kernel": {},
    "kernel, linear": {"C": 1.0},
    "linear": {"candidates": "nearest", "width": 0},
    "linear, every label": {"memory_gb": 1e-4},
    "wide": {"candidates": "all", "width": 64, "epochs": 8},
    "all, int8": {"candidates": "nearest", "width": 64, "epochs": 8, "precision": "int8"},
}
ROOT = Path(__file__).parents[2]
Rows = npt.NDArray[np.int64]
KNOWN = 10  # of the 12 labels; the last two are new


@pytest.fixture(scope="module")
def planted() -> Dataset:
    return make_planted(
        500, 120, 12, labels_per_point=1.5, features_per_point=12, noise=0.05, random_state=4
    )


@pytest.fixture(scope="module")
def halves(planted: Dataset) -> tuple[Rows, Rows, Rows]:
    """Training points without the new labels, training points with one, and test points."""
    fresh = np.asarray(planted.Y[:400, KNOWN:].sum(axis=1)).ravel() > 0
    return np.flatnonzero(~fresh), np.flatnonzero(fresh), np.arange(400, 500)


@pytest.fixture(scope="module", params=sorted(PLANS))
def fitted(request: pytest.FixtureRequest, planted: Dataset, halves: Any) -> Joint:
    old = halves[0]
    model = Joint(device="cpu", **PLANS[request.param])
    return model.fit(planted.X[old], planted.Y[old][:, :KNOWN])


@pytest.fixture
def model(fitted: Joint, tmp_path: Path) -> Joint:
    """A copy that a test may teach."""
    opened = load_model(fitted.save(tmp_path / "m"))
    assert isinstance(opened, Joint)
    return opened


def test_a_new_label_is_predicted_at_once(model: Joint, planted: Dataset, halves: Any) -> None:
    _, fresh, test = halves
    model.partial_fit(planted.X[fresh], planted.Y[fresh])
    assert (model.n_samples_, model.n_labels_) == (400, 12)
    assert model.label_frequency_.tolist() == planted.Y[:400].sum(axis=0).A1.tolist()
    with_new = test[np.asarray(planted.Y[test][:, KNOWN:].sum(axis=1)).ravel() > 0]
    single = with_new[np.asarray(planted.Y[with_new].sum(axis=1)).ravel() == 1]
    best = model.predict_topk(planted.X[single], 1).indices[:, 0]
    assert (best >= KNOWN).mean() > 0.8
    quality = precision_at_k(planted.Y[test], model.predict_topk(planted.X[test], 1), 1)[0]
    whole = Joint(**model.get_params()).fit(planted.X[:400], planted.Y[:400])
    best = precision_at_k(planted.Y[test], whole.predict_topk(planted.X[test], 1), 1)[0]
    assert quality > best - 0.06


def test_a_taught_model_is_saved_as_it_is(
    model: Joint, planted: Dataset, halves: Any, tmp_path: Path
) -> None:
    model.partial_fit(planted.X[halves[1]], planted.Y[halves[1]])
    model.remove_label(3, int(model.parts_.labels[3].indices[0]))
    model.forget([0, 7])
    again = load_model(model.save(tmp_path / "taught"))
    for k in (1, 5):
        ours, theirs = (each.predict_topk(planted.X[400:], k) for each in (model, again))
        assert (ours.indices == theirs.indices).all()
        assert ours.scores == pytest.approx(theirs.scores, abs=1e-5)


def test_one_point_is_its_own_nearest(model: Joint, planted: Dataset) -> None:
    novel = sp.csr_matrix(
        (np.ones(3, np.float32), (np.zeros(3, int), [5, 60, 119])), shape=(1, 120)
    )
    model.partial_fit(novel, [[KNOWN]])
    found = model.explain(novel, k=2)
    evidence = next(each for each in found if each.label == KNOWN)
    assert evidence.voters[0].point == model.n_samples_ - 1
    assert evidence.voters[0].similarity == pytest.approx(1, abs=0.01)
    model.forget(model.n_samples_ - 1)
    assert all(not each.voters for each in model.explain(novel, k=11) if each.label == KNOWN)


def test_a_label_taken_off_is_unlearnt(model: Joint, planted: Dataset) -> None:
    row = int(np.flatnonzero(np.diff(model.parts_.labels.indptr) == 1)[0])
    label = int(model.parts_.labels[row].indices[0])
    point = model.parts_.points[row]
    before = model.score_labels(point, [label])[0, 0]
    frequency = model.label_frequency_[label]
    model.remove_label(row, label)
    assert model.score_labels(point, [label])[0, 0] < before - 0.1
    assert model.label_frequency_[label] == frequency - 1
    with pytest.raises(DataFormatError, match=f"point {row} does not carry label {label}"):
        model.remove_label(row, label)


def test_refit_equals_fit_on_the_same_points(planted: Dataset, halves: Any) -> None:
    rows = np.concatenate(halves[:2])
    model = Joint(device="cpu", **PLANS["linear"])
    model.fit(planted.X[halves[0]], planted.Y[halves[0]][:, :KNOWN])
    model.partial_fit(planted.X[halves[1]], planted.Y[halves[1]]).refit()
    whole = Joint(**model.get_params()).fit(planted.X[rows], planted.Y[rows])
    ours, theirs = (each.predict_topk(planted.X[400:], 3) for each in (model, whole))
    assert (ours.indices[:, 0] == theirs.indices[:, 0]).mean() > 0.95


def test_refit_undoes_scaled_columns(planted: Dataset) -> None:
    model = Joint(scaling="columns", device="cpu", precision="float32").fit(
        planted.X[:100], planted.Y[:100]
    )
    before = model.predict_topk(planted.X[100:150], 3)
    after = model.refit().predict_topk(planted.X[100:150], 3)
    assert (before.indices == after.indices).mean() > 0.98


def test_names_grow(planted: Dataset) -> None:
    names = [[f"label {label:02d}" for label in planted.Y[i].indices] for i in range(100)]
    model = Joint(device="cpu").fit(planted.X[:100], names)
    known = model.label_names_
    assert known is not None
    model.partial_fit(planted.X[100:101], [["a new one", names[0][0]]])
    assert model.label_names_.tolist() == [*known.tolist(), "a new one"]
    assert "a new one" in model.predict(planted.X[100], k=2)[0]
    assert Joint(device="cpu").partial_fit(planted.X[:100], names).n_samples_ == 100
    n = model.n_samples_
    assert model.partial_fit(planted.X[:0], []).n_samples_ == n


def test_names_stay_where_a_matrix_is_taught(planted: Dataset) -> None:
    names = [[f"label {label:02d}" for label in planted.Y[i].indices] for i in range(100)]
    more = planted.Y[100:120]
    taught = []
    for given in (more, more.toarray(), more.toarray().astype(float)):
        model = (
            Joint(device="cpu").fit(planted.X[:100], names).partial_fit(planted.X[100:120], given)
        )
        assert model.label_names_ is not None and len(model.label_names_) == 12
        assert (model.train_labels_[100:] != more).nnz == 0
        taught.append(model.predict_topk(planted.X[400:410], 3).scores)
    assert np.array_equal(taught[0], taught[1]) and np.array_equal(taught[0], taught[2])
    with pytest.raises(DataFormatError, match="12 labels .* have names, .* a matrix of 13 columns"):
        model.partial_fit(planted.X[:1], np.ones((1, 13)))
    with pytest.raises(DataFormatError, match="labels of this model have names, got lists of ids"):
        model.partial_fit(planted.X[:1], [[3]])
    with pytest.raises(DataFormatError, match="got 'label 01' at position 0. Put a single label"):
        model.partial_fit(planted.X[:1], ["label 01"])


def test_mistakes_are_named(model: Joint, planted: Dataset) -> None:
    with pytest.raises(DataFormatError, match="equally many rows, got 2 and 1"):
        model.partial_fit(planted.X[:2], [[0]])
    with pytest.raises(DataFormatError, match="the 10 labels of the model, and may have more, got"):
        model.partial_fit(planted.X[:2], planted.Y[:2, :3])
    with pytest.raises(DataFormatError, match="may have more, got 1 by name"):
        model.partial_fit(planted.X[:1], [["fish"]])
    with pytest.raises(DataFormatError, match=r"there is no point 9999 in \d+ points"):
        model.forget([1, 9999])
    with pytest.raises(DataFormatError, match="cannot forget all of its points"):
        model.forget(np.arange(model.n_samples_))


@pytest.mark.parametrize("sparse", [True, False])
def test_an_extended_kernel_solves_its_block(sparse: bool) -> None:
    rng = np.random.default_rng(0)
    X: Any = rng.normal(size=(30, 8)).astype(np.float32)
    X[rng.random(X.shape) < 0.7] = 0
    X = sp.csr_matrix(X) if sparse else X + np.float32(0.1)
    Y = sp.csr_matrix(rng.random((30, 4)) < 0.4)
    padded = Y[:20].toarray()
    padded[:, 3] = False
    truth = sp.csr_matrix(np.concatenate([padded, Y[20:].toarray()]))
    cpu, kernel = torch.device("cpu"), Kernel("gauss", 2, 0.1)
    known = fit_kernel(X[:20], Y[:20, :3], kernel, cpu)
    whole = fit_kernel(X, truth, kernel, cpu)
    every = extend_kernel(known, truth[:20], X[20:], truth[20:], np.arange(20), cpu)
    assert every.votes == pytest.approx(whole.votes, abs=1e-4)
    rows = np.array([1, 5, 6])
    some = extend_kernel(known, truth[:20], X[20:], truth[20:], rows, cpu)
    block = np.concatenate([rows, np.arange(20, 30)])
    left = truth[block].toarray() - some.scores(X[block], cpu) - 0.1 * some.votes[block]
    assert np.abs(left).max() < 1e-4
    others = np.setdiff1d(np.arange(20), rows)
    assert (some.votes[others, :3] == known.votes[others]).all() and not some.votes[others, 3].any()
    assert isinstance(some, KernelVote) and some.points.shape == (30, 8)
    relations = np.arange(9, dtype=np.float32).reshape(3, 3)
    related = extend_kernel(
        replace(known, relations=relations), truth[:20], X[20:], truth[20:], rows, cpu
    )
    assert (related.votes == some.votes).all()  # labels are told apart before they are related
    own = some.scores(X, cpu)
    told = own[:, :3] + own[:, :3] @ relations
    assert related.scores(X, cpu)[:, :3] == pytest.approx(told, rel=1e-5)
    assert (related.scores(X, cpu)[:, 3] == own[:, 3]).all()  # the new label, to no other
    padded = related.all_relations
    assert padded is not None and padded.shape == (4, 4) and not padded[3].any()
    assert (padded[:3, :3] == relations).all() and not padded[:, 3].any()


def test_new_labels_take_no_room_among_the_relations() -> None:
    """A table of every label with every other would have 160 GB here."""
    rng = np.random.default_rng(0)
    X, cpu = sp.csr_matrix(rng.random((6, 4), dtype=np.float32)), torch.device("cpu")
    Y = sp.csr_matrix(rng.random((5, 3)) < 0.5)
    known = fit_kernel(X[:5], Y, Kernel("gauss", 2, 0.1), cpu)
    known = replace(known, relations=np.eye(3, dtype=np.float32))
    many = 200_000
    wide = sp.csr_matrix((Y.data, Y.indices, Y.indptr), shape=(5, many))
    last = sp.csr_matrix(([True], ([0], [many - 1])), shape=(1, many))
    grown = extend_kernel(known, wide, X[5:], last, np.arange(5), cpu)
    assert grown.relations is not None and grown.relations.shape == (3, 3)
    assert grown.scores(X[5:], cpu)[0].argmax() == many - 1


def test_a_text_that_says_nothing_teaches_nothing(planted: Dataset) -> None:
    """A new label whose only point has no features must not come up everywhere."""
    model = Joint(device="cpu").fit(planted.X[:100], planted.Y[:100])
    before = model.predict_topk(planted.X[400:450], 1).indices
    model.partial_fit(sp.csr_matrix((1, 120), dtype=np.float32), [[12]])
    after = model.predict_topk(planted.X[400:450], 1).indices
    assert (before == after).mean() > 0.9 and not (after == 12).any()


def test_training_goes_on_from_known_weights() -> None:
    """Without points the weights stay; with the same multipliers it is one problem in two steps."""
    rng = np.random.default_rng(1)
    X = sp.csr_matrix(rng.normal(size=(40, 6)).astype(np.float32) / 3)
    Y = sp.csr_matrix(rng.random((40, 3)) < 0.4)
    everything = sp.csr_matrix(np.ones((40, 3), dtype=bool))
    task = label_tasks(Y, everything)
    head = fit_linear(X, task, passes=200, prune=0)
    nothing = label_tasks(Y[:0], everything[:0])
    same = fit_linear(X[:0], nothing, start=head.weights, prune=0)
    assert abs(same.weights - head.weights).max() == 0
    pruned = fit_linear(X[:0], nothing, start=head.weights, prune=0.2)
    assert abs(pruned.weights.data).min() > 0.2
    more = sp.csr_matrix(rng.normal(size=(5, 6)).astype(np.float32) / 3)
    wanted = sp.csr_matrix(np.ones((5, 3), dtype=bool))
    extra = label_tasks(wanted, wanted)
    on = fit_linear(more, extra, start=head.weights, passes=200, prune=0)
    by_hand = head.weights.toarray() + np.array(
        [extra.duals[5 * label : 5 * label + 5] @ more.toarray() for label in range(3)]
    )
    assert on.weights.toarray() == pytest.approx(by_hand, abs=1e-4)
    margins = more @ on.weights.toarray().T - 1  # the dual's optimum: 1 − margin = α / 2C, or α = 0
    duals = extra.duals.reshape(3, 5).T
    assert np.where(duals > 0, 1 - margins - duals / 2, 0) == pytest.approx(0, abs=0.05)


def copy_of(fitted: Joint) -> Joint:
    """A model that may be taught."""
    again = Joint(**fitted.get_params())
    for name, value in vars(fitted).items():
        setattr(again, name, value)
    return again


@pytest.mark.parametrize("fitted", ["kernel"], indirect=True)
def test_a_kernel_vote_is_taken_back_exactly(fitted: Joint) -> None:
    model = copy_of(fitted)
    row = 5
    label = int(model.parts_.labels[row].indices[0])
    model.remove_label(row, label)
    kernel = model.parts_.kernel
    assert kernel is not None
    said = kernel.scores(model.parts_.points[[row]], torch.device("cpu"))[0, label]
    left = 0 - said - kernel.kernel.ridge * kernel.votes[row, label]
    assert left == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("fitted", ["wide"], indirect=True)
def test_a_new_label_has_logits_like_the_others(
    fitted: Joint, planted: Dataset, halves: Any
) -> None:
    """Over its own points, and over all, a new label's mean logit is that of the known labels."""
    model = copy_of(fitted)
    model.partial_fit(planted.X[halves[1]], planted.Y[halves[1]])
    assert model.parts_.wide is not None
    logits = model.parts_.wide.scores(model.parts_.points, torch.device("cpu"))
    carried = model.parts_.labels.toarray()
    low = logits[:, :KNOWN].mean()
    high = logits[:, :KNOWN][carried[:, :KNOWN]].mean()
    assert high > low + 0.3
    for label in range(KNOWN, 12):
        assert logits[:, label].mean() == pytest.approx(low, abs=0.1)
        assert logits[carried[:, label], label].mean() == pytest.approx(high, abs=0.1)


@pytest.mark.parametrize("fitted", ["linear"], indirect=True)
def test_a_new_label_is_told_from_the_points_nearby(fitted: Joint, planted: Dataset) -> None:
    model = copy_of(fitted)
    known = model.parts_
    model.partial_fit(planted.X[400:402], [[KNOWN], [0]])
    task = _new_task(
        model.parts_, model.parts_.points[-2:], model.n_samples_ - 2, KNOWN, model._lessons()
    )
    signs = task.points[KNOWN].toarray()[0]
    assert signs[-2] == 1 and (signs[:-2] <= 0).all() and (signs[:-1] == 1).sum() == 1
    near, _ = known.search(model.parts_.points[[-2]], 50, "cpu")
    assert (signs[near[0][:40]] == -1).all()


def test_catching_up_uses_all_points(model: Joint, planted: Dataset, halves: Any) -> None:
    """Right after adding it is about as good as training again, and saved as it is."""
    _, fresh, test = halves
    model.partial_fit(planted.X[fresh], planted.Y[fresh])
    added, mixture = model.parts_, model.mixture_
    model.catch_up()
    assert model.mixture_ is mixture
    assert (model.parts_.n_neighbors, model.parts_.power) == (added.n_neighbors, added.power)
    assert (model.parts_.labels != added.labels).nnz == 0
    caught = precision_at_k(planted.Y[test], model.predict_topk(planted.X[test], 1), 1)[0]
    again = copy_of(model).refit().predict_topk(planted.X[test], 1)
    assert caught > precision_at_k(planted.Y[test], again, 1)[0] - 0.04


@pytest.mark.parametrize("fitted", ["linear"], indirect=True)
def test_catching_up_moves_linear_weights_to_less_loss(
    fitted: Joint, planted: Dataset, halves: Any
) -> None:
    """½ ‖w − w₀‖² + C' Σ loss is lower than where it starts, and no weight goes far."""
    model = copy_of(fitted)
    model.partial_fit(planted.X[halves[1]], planted.Y[halves[1]])
    parts, how = model.parts_, model._lessons()
    near = without_self(*parts.search(parts.points, how.n_negatives + 1, "cpu"))
    task = label_tasks(parts.labels, parts.shortlist(*near, how.n_negatives))
    assert parts.linear is not None
    before = parts.linear.weights.toarray()

    def objective(weights: Any) -> float:
        scores = (parts.points @ weights.T).T - 1  # (n_labels, n_samples)
        signs = task.points.toarray()
        loss = np.where(signs != 0, np.maximum(0, 1 - signs * scores) ** 2, 0).sum()
        return float(0.5 * np.square(weights - before).sum() + NEARBY * how.C * loss)

    after = catch_up(parts, how).linear
    assert after is not None
    assert objective(after.weights.toarray()) < 0.8 * objective(before)


@pytest.mark.parametrize("fitted", ["kernel"], indirect=True)
def test_catching_up_solves_the_kernel_for_all_points(
    fitted: Joint, planted: Dataset, halves: Any
) -> None:
    model = copy_of(fitted)
    model.partial_fit(planted.X[halves[1]], planted.Y[halves[1]]).catch_up()
    parts = model.parts_
    assert parts.kernel is not None
    cpu = torch.device("cpu")
    whole = fit_kernel(parts.points, parts.labels, parts.kernel.kernel, cpu)
    assert parts.kernel.votes == pytest.approx(whole.votes, abs=0.01)  # 16 bits


@pytest.mark.parametrize("fitted", ["kernel"], indirect=True)
def test_a_kernel_that_is_too_large_to_solve_stays(fitted: Joint) -> None:
    model = copy_of(fitted)
    model.memory_gb = 1e-9
    before = model.parts_.kernel
    assert before is not None
    votes = model.catch_up().parts_.kernel
    assert votes is not None and (votes.votes == before.votes).all()


def test_before_added_caught_up_and_trained_again_are_in_order() -> None:
    """The benchmark's own measurement, on planted data."""
    script = runpy.run_path(str(ROOT / "benchmarks" / "teaching.py"))
    data = make_planted(1500, 400, 60, labels_per_point=2, random_state=1)
    train, test = data.take(range(1200)), data.take(range(1200, 1500))
    case = script["make_case"](
        train.Y, test.Y, lambda known, added: (train.X[known], train.X[added], test.X, None)
    )
    assert case.n_labels == 54 and case.added[1][:, 54:].sum(axis=1).min() >= 1
    rows = script["measure"](case, Joint(device="cpu", candidates="nearest", width=0))
    means = {row["what"]: np.mean(row["with held-out labels"]) for row in rows}
    before, added, caught, again = means.values()
    assert before < added - 3
    assert added < caught + 1 and caught < again + 2 and again < caught + 2
    found = [row["held-out labels found"] for row in rows]
    assert found[0] == 0 and min(found[1:]) > 50


def test_the_page_says_what_is_stored() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "teaching.py"))
    text = script["PAGE"].read_text("utf-8")
    shown = text.split(script["BEGIN"])[1].split(script["END"])[0]
    assert shown.strip() == script["render"]().strip(), "run: make docs"
