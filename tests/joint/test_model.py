"""Joint: its ranking put together by hand, its probabilities checked, its ways out walked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml import metrics
from dxml.data import Dataset, load_dataset, make_planted
from dxml.exceptions import ParameterError
from dxml.joint import Joint
from dxml.joint._calibration import RANKS
from dxml.joint._held_out import LEAST_POINTS
from dxml.joint._sizes import PROPOSED, WELL_COMPARED
from dxml.methods import load_model
from dxml.metrics import precision_at_k
from dxml.topk import TopK

NEAREST: dict[str, Any] = {"candidates": "nearest", "width": 0, "device": "cpu"}
ALL: dict[str, Any] = {"candidates": "all", "width": 0, "device": "cpu"}


def noisy(n: int = 2_000) -> tuple[Dataset, Dataset]:
    """Planted data in which not everything can be told."""
    data = make_planted(n + 600, 200, 30, 2.5, 8, noise=0.4, random_state=5)
    return data.take(np.arange(n)), data.take(np.arange(n, n + 600))


@pytest.fixture(scope="module", params=[NEAREST, ALL], ids=["nearest", "all"])
def fitted(request: pytest.FixtureRequest, small: tuple[Dataset, Dataset]) -> Joint:
    return Joint(**request.param).fit(small[0].X, small[0].Y)


def calibration_error(ranking: TopK, truth: sp.csr_matrix, n_bins: int = 15) -> float:
    """Mean gap between probability and share of right labels, over bins of equal size."""
    named = ranking.indices >= 0
    rows = np.broadcast_to(np.arange(len(ranking))[:, None], named.shape)[named]
    right = np.asarray(truth[rows, ranking.indices[named]]).ravel()
    p = ranking.scores[named]
    bins = np.array_split(np.argsort(p, kind="stable"), n_bins)
    return float(sum(abs(p[b].sum(dtype=float) - right[b].sum()) for b in bins) / len(p))


def by_hand(model: Joint, X: sp.csr_matrix, k: int) -> list[list[tuple[int, float]]]:
    """`predict_topk` of a model with shortlists, in dense numpy and one point at a time."""
    parts: Any = model.parts_
    mixture, place = model.mixture_, model._tie_place
    chosen, vote_part = model._ensemble.searched, parts["vote"]
    points, Y = model.train_features_.toarray().astype(float), model.train_labels_.toarray()
    weights = parts["linear"].head.weights.toarray()
    frequency = np.log((1 + Y.sum(axis=0)) / (1 + len(Y)))
    searched = points * chosen
    searched /= np.maximum(np.linalg.norm(searched, axis=1, keepdims=True), 1e-30)
    ranked = []
    for x in X.toarray().astype(float):
        x = x / np.linalg.norm(x)
        query = x * chosen
        cosines = searched @ (query / max(np.linalg.norm(query), 1e-30))
        near = np.argsort(-cosines, kind="stable")[: model.n_candidates]
        near = near[cosines[near] > 1e-12]
        named = Y[near].any(axis=0)
        first = cosines[near] ** 2 @ Y[near]
        order = sorted(np.flatnonzero(named), key=lambda label: (-first[label], place[label]))
        order = order or np.argsort(place).tolist()  # nobody near: the most frequent
        shortlist = np.array(order[: model.n_candidates])
        if "wide" in parts:
            wide = parts["wide"].head
            hidden = np.maximum(wide.inner @ x + wide.inner_bias, 0)
            logits = wide.outer @ hidden + wide.outer_bias
            if (query**2).sum() < WELL_COMPARED:
                shortlist = np.union1d(shortlist, np.argsort(-logits)[:PROPOSED])
        voters = near[: vote_part.n_neighbors]
        share = cosines[voters] ** vote_part.power
        vote = (share @ Y[voters] / max(share.sum(), 1e-30))[shortlist]
        odds = np.clip(vote, 0.005, 0.995)
        columns = {
            "frequency": [frequency[shortlist]],
            "linear": [weights[shortlist] @ x - 1],
            "vote": [vote, np.log(odds / (1 - odds))],
        }
        if "wide" in parts:
            columns["wide"] = [logits[shortlist]]
        assert set(columns) == set(mixture.weights)
        common = np.clip(frequency[shortlist], *mixture.span)
        mixed = mixture.bias + sum(
            (weight + more * common) * column
            for name, own in columns.items()
            for weight, more, column in zip(
                mixture.weights[name],
                mixture.interactions.get(name, np.zeros(len(own))),
                own,
                strict=True,
            )
        )
        best = np.argsort(-mixed)[:k]
        group = np.searchsorted(RANKS, 1 + np.arange(len(best)))  # of ranks 1, 2, 3, 4 and 5, …
        lines = [mixture.by_rank[each] for each in group]
        z = mixed[best]
        familiarity: Any = mixture.familiarity
        log = np.clip(np.log1p(np.count_nonzero(x)), *familiarity.span)
        z[0] += familiarity.worth * (log - familiarity.middle)
        p = [np.interp(own, *line) for own, line in zip(z, lines, strict=True)]
        p = np.minimum.accumulate(p)
        ranked.append(list(zip(shortlist[best].tolist(), p.tolist(), strict=True)))
    return ranked


@pytest.mark.parametrize("width", [0, 16])
def test_the_ranking_by_hand(width: int, small: tuple[Dataset, Dataset]) -> None:
    train, test = small
    settings = NEAREST | {"width": width, "epochs": 2, "n_candidates": 12}
    model = Joint(**settings).fit(train.X, train.Y)
    assert not model.plan_.every_label
    wide = {"wide"} if width else set()
    assert set(model.plan_.parts) == {"frequency", "vote", "linear"} | wide
    if width:
        assert model.plan_.parts["wide"]["width"] == width
        assert model.plan_.parts["wide"]["epochs"] == 2 == len(model.history_)
    ranking, expected = model.predict_topk(test.X, 4), by_hand(model, test.X, 4)
    same = 0
    for row, wanted in zip(ranking.rows(), expected, strict=True):
        same += [label for label, _ in row] == [label for label, _ in wanted]
        np.testing.assert_allclose([p for _, p in row], [p for _, p in wanted], atol=1e-4)
    assert same >= 98  # rounding may swap near equals


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_hundred_measurements(classes: int, scale: float) -> None:
    """Too few points to hold a fifth out once: probabilities must still mean something."""
    rng = np.random.default_rng(4)
    group = rng.integers(0, classes, 400)
    X = scale * (rng.standard_normal((classes, 6))[group] * 1.5 + rng.standard_normal((400, 6)) + 9)
    Y = np.eye(classes, dtype=bool)[group]
    model = Joint(device="cpu").fit(X[:100], Y[:100])
    right = model.score(X[100:], Y[100:])
    assert right > 0.85
    assert abs(model.predict_topk(X[100:], 1).scores.mean() - right) < 0.06
    named = model.predict(X[100:])
    assert named.sum() / 300 < 1.2, "a point has one label"
    assert (named == Y[100:]).all(axis=1).mean() > 0.75


@pytest.mark.parametrize("dense", [False, True])
def test_one_point_a_label(dense: bool) -> None:
    """Whatever point is held out, its label goes with it: that says nothing about the parts."""
    rng = np.random.default_rng(0)
    places = rng.standard_normal((120, 20)) if dense else rng.random((120, 200)) < 0.05
    X = places + 0.2 * rng.standard_normal(places.shape) * (places != 0)
    again = places + 0.2 * rng.standard_normal(places.shape) * (places != 0)
    model = Joint(device="cpu").fit(sp.csr_matrix(X), np.eye(120, dtype=bool))
    assert model.score(sp.csr_matrix(again), np.eye(120, dtype=bool)) > 0.9


def test_probabilities_stay_when_more_of_the_same_is_learnt() -> None:
    """Labels then have more points each, and are no more frequent than before."""
    rng = np.random.default_rng(1)
    group = rng.integers(0, 2, 1300)
    X = rng.standard_normal((1300, 5)) + 2 * group[:, None]
    Y = np.eye(2, dtype=bool)[group]
    model = Joint(device="cpu").fit(X[:400], Y[:400])
    before = model.predict_topk(X[1000:], 1).scores.mean()
    after = model.partial_fit(X[400:1000], Y[400:1000]).predict_topk(X[1000:], 1).scores.mean()
    right = model.score(X[1000:], Y[1000:])
    assert abs(before - right) < 0.03 and abs(after - right) < 0.03


def test_a_label_without_points_comes_last() -> None:
    train, _ = noisy()
    none = sp.csr_matrix((train.Y.shape[0], 1), dtype=bool)
    model = Joint(**ALL).fit(train.X, sp.hstack([none, train.Y], format="csr"))
    ranking = model.predict_topk(train.X, model.n_labels_)
    assert (ranking.indices[:, -1] == 0).all() and (ranking.scores[:, -1] < 0.01).all()


@pytest.mark.parametrize("settings", [NEAREST, ALL], ids=["nearest", "all"])
def test_probabilities_are_calibrated(settings: dict[str, Any]) -> None:
    train, test = noisy()
    model = Joint(**settings).fit(train.X, train.Y)
    ranking = model.predict_topk(test.X, 5)
    assert calibration_error(ranking, test.Y) < 0.04
    assert (np.diff(ranking.scores, axis=1) <= 0).all()
    assert 0 <= ranking.scores.min() and ranking.scores.max() <= 1
    assert ranking.scores.std() > 0.1  # the base rate alone would be calibrated too
    assert precision_at_k(test.Y, ranking, 1)[0] > 0.5


def test_a_point_without_features_gets_the_most_frequent_labels(fitted: Joint) -> None:
    X = sp.vstack([sp.csr_matrix((1, 150)), sp.csr_matrix(np.eye(1, 150)), sp.csr_matrix((1, 150))])
    ranking = fitted.predict_topk(X, 25)
    most = np.argsort(-fitted.label_frequency_, kind="stable")
    for row in (0, 2):
        assert ranking.indices[row].tolist() == most.tolist()
        shares = fitted.label_frequency_[most] / 300
        np.testing.assert_allclose(ranking.scores[row], shares, rtol=1e-6)
    assert ranking.indices[1, :3].tolist() != most[:3].tolist()
    assert fitted.predict(X[[0]])[0, most[0]]


def test_k_or_threshold(fitted: Joint, small: tuple[Dataset, Dataset]) -> None:
    X = small[1].X
    ranking = fitted.predict_topk(X, 25)
    for threshold in (0.0, 0.2, 0.7, 1.01):
        expected = [sorted(i for i, p in row if p >= threshold) for row in ranking.rows()]
        found = fitted.predict(X, threshold=threshold)
        assert found.dtype == bool and found.shape == (100, 25)
        assert [found[i].indices.tolist() for i in range(100)] == expected
    assert fitted.predict(X, threshold=1.01).nnz == 0
    assert fitted.predict(X, 3).sum(axis=1).max() == 3
    with pytest.raises(ParameterError, match="give one of k, threshold, precision and recall"):
        fitted.predict(X, 3, threshold=0.5)


def test_a_point_gets_as_many_labels_as_it_should_have(
    fitted: Joint, small: tuple[Dataset, Dataset]
) -> None:
    test = small[1]
    found = fitted.predict(test.X)
    for i, row in enumerate(fitted.predict_topk(test.X, 25).rows()):
        p = [score for _, score in row]
        gains = [2 * sum(p[:m]) / (m + sum(p)) for m in range(1, len(p) + 1)]
        number = int(np.argmax(gains)) + 1
        assert sorted(label for label, _ in row[:number]) == found[i].indices.tolist()

    def f1(named: sp.csr_matrix) -> float:
        return 2 * named.multiply(test.Y).sum() / (named.sum() + test.Y.sum())

    assert len(set(np.diff(found.indptr).tolist())) > 2
    assert f1(found) > f1(fitted.predict(test.X, 2)) - 0.01
    names = [[f"label {label:02d}" for label in row.indices] for row in small[0].Y]
    named = Joint(**fitted.get_params()).fit(small[0].X, names).predict(test.X)
    assert [sorted(row) for row in named] == [
        [f"label {label:02d}" for label in row.indices] for row in found
    ]


@pytest.mark.parametrize("settings", [NEAREST, ALL], ids=["nearest", "all"])
def test_points_with_many_labels_get_many(settings: dict[str, Any]) -> None:
    """Fourteen labels of a point are more than the ten that are weighed."""
    data = make_planted(600, 400, 60, 14, 80, random_state=0)
    model = Joint(**settings).fit(data.X[:500], data.Y[:500])
    found, truth = model.predict(data.X[500:]), data.Y[500:]
    assert found.sum() == pytest.approx(truth.sum(), rel=0.15)
    assert 2 * found.multiply(truth).sum() / (found.sum() + truth.sum()) > 0.8


@pytest.mark.parametrize("settings", [NEAREST, ALL], ids=["nearest", "all"])
def test_nearly_every_point_has_every_label(settings: dict[str, Any]) -> None:
    data = make_planted(200, 100, 12, random_state=0)
    Y = np.ones((200, 12), dtype=bool)
    Y[:9, 0] = False
    model = Joint(**settings).fit(data.X, Y)
    assert model.predict(data.X)[:, 1:].mean() > 0.95


@pytest.mark.parametrize("n", [1, 2, LEAST_POINTS - 1])
@pytest.mark.parametrize("settings", [NEAREST, ALL], ids=["nearest", "all"])
def test_with_few_points_nothing_is_held_out(settings: dict[str, Any], n: int) -> None:
    data = make_planted(n, 30, 6, 1.5, 5, noise=0, random_state=0)
    model = Joint(**settings | {"width": 8, "epochs": 1}).fit(data.X, data.Y)
    names = {"nearest": ("linear", "vote", "wide"), "all": ("kernel", "linear", "vote", "wide")}
    defaults = {"kernel": [8, 0], "linear": [2], "vote": [3, 0], "wide": [0.5], "frequency": [0]}
    weights = {name: values.tolist() for name, values in model.mixture_.weights.items()}
    there = (*names[settings["candidates"]], "frequency")
    assert weights == {name: defaults[name] for name in there}
    assert model.score(data.X, data.Y) > 0.7
    assert (model.predict(data.X).sum(axis=1) >= 1).all()


def test_little_memory_is_enough_for_a_linear_head(small: tuple[Dataset, Dataset]) -> None:
    train, test = small
    rich = Joint(candidates="all", device="cpu").fit(train.X, train.Y)
    poor = Joint(candidates="all", device="cpu", memory_gb=1e-4).fit(train.X, train.Y)
    assert "kernel" in rich.plan_.parts and "kernel" in rich.parts_
    assert poor.plan_.every_label
    assert set(poor.plan_.parts) == set(poor.parts_) == {"frequency", "vote", "linear"}
    assert poor.score(test.X, test.Y) > 0.7


@pytest.mark.parametrize("settings", [NEAREST, ALL], ids=["nearest", "all"])
def test_eight_bits_lose_little_and_take_less(settings: dict[str, Any], tmp_path: Path) -> None:
    train, test = noisy(800)
    quality, size = {}, {}
    for precision in ("float32", "float16", "int8"):
        model = Joint(**settings | {"precision": precision, "width": 64, "epochs": 3})
        model.fit(train.X, train.Y).save(tmp_path / precision)
        quality[precision] = precision_at_k(test.Y, model.predict_topk(test.X, 5), 5)
        size[precision] = sum(file.stat().st_size for file in (tmp_path / precision).iterdir())
    assert np.abs(quality["int8"] - quality["float32"]).max() < 0.02
    assert np.abs(quality["float16"] - quality["float32"]).max() < 0.005
    assert size["int8"] < 0.95 * size["float16"] < 0.95 * 0.8 * size["float32"]
    again = load_model(tmp_path / "int8")
    assert again.plan_ == model.plan_  # type: ignore[attr-defined]
    ours, theirs = model.predict_topk(test.X, 5), again.predict_topk(test.X, 5)
    assert np.array_equal(ours.indices, theirs.indices)
    assert np.array_equal(ours.scores, theirs.scores)


def test_rows_are_ranked_in_blocks(
    small: tuple[Dataset, Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    train, test = small
    model = Joint(**ALL).fit(train.X, train.Y)
    whole = model.predict_topk(test.X, 5)
    monkeypatch.setattr("dxml.joint._answering.PAIRS", 7 * 25)
    parts = model.predict_topk(test.X, 5)
    assert np.array_equal(parts.indices, whole.indices)
    np.testing.assert_allclose(parts.scores, whole.scores, atol=1e-5)


@pytest.mark.parametrize("settings", [NEAREST, ALL], ids=["nearest", "all"])
def test_measurements(settings: dict[str, Any]) -> None:
    """Dense columns of any scale: standardised, a row of zeros being a point like any other."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, 500)
    scale = 10.0 ** rng.integers(-3, 4, 12)
    X = (2 * rng.standard_normal((4, 12))[group] + rng.standard_normal((500, 12)) + 5) * scale
    Y = np.eye(4, dtype=bool)[group]
    model = Joint(**settings).fit(X[:400], Y[:400])
    assert model.score(X[400:], Y[400:]) > 0.9
    squares = np.asarray(model.train_features_.power(2).sum(axis=1))
    assert squares.mean() == pytest.approx(1, rel=0.01) and squares.std() > 0.01
    nothing = model.predict_topk(np.zeros((1, 12)), 4)
    assert not np.allclose(nothing.scores[0], np.sort(Y[:400].mean(axis=0))[::-1], atol=1e-3)


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_unscaled_features_of_any_size(size: float, small: tuple[Dataset, Dataset]) -> None:
    train, test = small
    model = Joint(**ALL | {"scaling": "none"}).fit(train.X * size, train.Y)
    ranking = model.predict_topk(test.X * size, 5)
    assert np.isfinite(ranking.scores).all()
    assert precision_at_k(test.Y, ranking, 1)[0] > 0.7


def stored_scores(experiment: str, dataset: str) -> dict[str, float]:
    """Joint's by defaults on a CPU, in per cent."""
    path = Path(__file__).parents[2] / "benchmarks" / "results" / f"{experiment}.json"
    [row] = (
        row
        for row in json.loads(path.read_text("utf-8"))["rows"]
        if (row["dataset"], row["method"], row["part"], row["study"])
        == (dataset, "joint", "test", None)
        and row["parameters"] == {"device": "cpu"}
    )
    return {name: each["mean"] for name, each in row["scores"].items()}


@pytest.mark.thorough
@pytest.mark.real
def test_eurlex(tmp_path: Path) -> None:
    train, test = load_dataset("eurlex-4k", "train"), load_dataset("eurlex-4k", "test")
    model = Joint(device="cpu").fit(train.X, train.Y)
    assert not model.plan_.every_label
    assert set(model.plan_.parts) == {"frequency", "vote", "linear"}
    ranking = model.predict_topk(test.X, 5)
    found = precision_at_k(test.Y, ranking, 5)
    stored = stored_scores("peers", "eurlex-4k")
    assert (100 * found[[0, 2, 4]] >= np.array([stored[f"P@{k}"] for k in (1, 3, 5)]) - 0.3).all()
    assert calibration_error(ranking, test.Y) <= 0.025
    for k in (1, 5):
        assert 100 * metrics.calibration_error(test.Y, ranking, k) <= stored[f"ECE@{k}"] + 0.5
    model.save(tmp_path / "model")
    size = sum(file.stat().st_size for file in (tmp_path / "model").iterdir())
    assert size <= 60_000_000


def test_promised_precision_and_recall(
    fitted: Joint, small: tuple[Dataset, Dataset], tmp_path: Path
) -> None:
    X = small[1].X
    again = Joint.load(fitted.save(tmp_path / "m"))
    for promise in ({"precision": 0.7}, {"recall": 0.6}):
        threshold = fitted.threshold_for(**promise)
        expected = fitted.predict(X, threshold=threshold)
        assert 0 < expected.nnz < expected.shape[0] * expected.shape[1]
        assert (fitted.predict(X, **promise) != expected).nnz == 0
        assert again.threshold_for(**promise) == threshold
    with pytest.raises(ParameterError, match="give one of k, threshold, precision and recall"):
        fitted.predict(X, 3, precision=0.5)
    few = Joint(width=0).fit(small[0].X[:15], small[0].Y[:15])
    with pytest.raises(ParameterError, match="trained on too few points, or by an older version"):
        few.predict(X, precision=0.5)


@pytest.mark.parametrize("n", [30, 300, 1000])
def test_one_text_with_two_labels_is_as_unsure_as_it_is(n: int) -> None:
    """The same point n times, with one label or with another: both are as probable as frequent."""
    which = np.random.default_rng(n).random(n) < 0.4
    X = sp.csr_matrix(np.tile(np.array([[1, 1, 0, 0]], np.float32), (n, 1)))
    model = Joint().fit(X, np.stack([which, ~which], axis=1))
    found = dict(model.predict_topk(X[:1], 2).row(0))
    off = 3 * np.sqrt(0.25 / n)
    assert abs(found[0] - which.mean()) < off and abs(found[1] - (~which).mean()) < off
