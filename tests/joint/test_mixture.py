"""Opinions → probabilities: by hand, on planted probabilities, and where there is little to fit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml.joint import Joint
from dxml.joint import _mixture as module
from dxml.joint._calibration import logistic_line
from dxml.joint._mixture import (
    RANKS,
    Mixture,
    Opinion,
    default_mixture,
    expected_number,
    fit_mixture,
)
from dxml.topk import TopK

OPINIONS = {
    "frequency": Opinion(0.0, least_spread=3.0),
    "kernel": Opinion(8.0, is_share=True),
    "linear": Opinion(2.0),
    "vote": Opinion(3.0, is_share=True),
    "wide": Opinion(0.5),
}


def logistic(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def full_pairs(n: int, n_labels: int) -> sp.csr_matrix:
    return sp.csr_matrix(np.ones((n, n_labels), dtype=bool))


def planted(n: int, n_labels: int, seed: int, shift: float = -1.0, noise: bool = True):  # type: ignore[no-untyped-def]
    """Pairs whose log-odds of being right are 2·linear + wide + `shift`; wide also has a scale."""
    rng = np.random.default_rng(seed)
    linear, wide = rng.standard_normal((2, n * n_labels))
    odds = 2 * linear + wide + shift
    right = rng.random(len(odds)) < logistic(odds) if noise else odds > 0
    parts = {
        "linear": linear.astype(np.float32),
        "wide": (50 * wide).astype(np.float32),
        "frequency": np.zeros(len(odds), np.float32),
    }
    truth = sp.csr_matrix(right.reshape(n, n_labels))
    return parts, truth, logistic(odds)


def calibration_error(p: np.ndarray, right: np.ndarray, n_bins: int = 15) -> float:
    """Mean gap between probability and share of right ones, over bins of equal size."""
    bins = np.array_split(np.argsort(p, kind="stable"), n_bins)
    gaps = [abs(p[part].mean() - right[part].mean()) * len(part) for part in bins]
    return float(sum(gaps) / len(p))


def fit(parts, truth, known=None, opinions=OPINIONS, **how):  # type: ignore[no-untyped-def]
    """A mixture of what is said of every pair."""
    return fit_mixture(parts, opinions, full_pairs(*truth.shape), truth, known, **how)


def test_columns_by_hand() -> None:
    said = {
        "vote": np.float32([0, 0.5, 1]),
        "linear": np.float32([-1, 0, 1]),
        "frequency": np.float32([3, 4, 5]),
        "kernel": np.float32([0.8, -0.2, 1.3]),
    }
    found = module._columns(said, {name: OPINIONS[name].size for name in said})
    end = np.log(0.995 / 0.005)
    expected = [
        [3, 0.8, np.log(4), -1, 0, -end],
        [4, -0.2, -end, 0, 0.5, 0],
        [5, 1.3, end, 1, 1, end],
    ]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_mix_and_probability_by_hand() -> None:
    knots, shares = np.float32([-1, 1, 2]), np.float32([0.1, 0.5, 0.9])
    mixture = Mixture({"a": np.float32([2]), "b": np.float32([-1])}, 0.5, knots, shares)
    mixed = mixture.mix({"a": np.float32([1, 0]), "b": np.float32([1, 3])})
    assert mixed.tolist() == [1.5, -2.5]
    found = mixture.probability(np.float32([-2.5, 0, 1.5, 7]))
    np.testing.assert_allclose(found, [0.1, 0.3, 0.7, 0.9], rtol=1e-6)
    assert found.dtype == np.float32


def test_terms_by_hand() -> None:
    """Each part's alone; with the bias they add up to the mixed score."""
    weights = {"vote": np.float32([2, 0.5]), "a": np.float32([-1])}
    mixture = Mixture(weights, 0.25, np.float32([0, 1]), np.float32([0, 1]))
    said = {"a": np.float32([4, 1]), "vote": np.float32([0.5, 0.9])}
    terms = mixture.terms(said)
    assert sorted(terms) == ["a", "vote"]
    np.testing.assert_allclose(terms["a"], [-4, -1])
    np.testing.assert_allclose(terms["vote"], [1, 1.8 + 0.5 * np.log(9)], rtol=1e-5)
    np.testing.assert_allclose(terms["a"] + terms["vote"] + 0.25, mixture.mix(said), rtol=1e-6)


def test_the_order_in_which_parts_speak_does_not_matter() -> None:
    parts, truth, _ = planted(200, 8, seed=3)
    backwards = {name: parts[name] for name in sorted(parts, reverse=True)}
    one, other = fit(parts, truth), fit(backwards, truth)
    assert np.array_equal(one.mix(parts), other.mix(backwards))
    assert {name: one.weights[name].tolist() for name in parts} == {
        name: other.weights[name].tolist() for name in parts
    }


@pytest.mark.parametrize("frequency", [0.0, 7.7])
def test_a_planted_model_is_recovered(frequency: float) -> None:
    """Beside an opinion that is the same of every pair, as where all labels are as frequent."""
    parts, truth, _ = planted(400, 12, seed=0)
    parts["frequency"] += np.float32(frequency)
    mixture = fit(parts, truth)
    assert sorted(mixture.weights) == ["frequency", "linear", "wide"]
    assert mixture.weights["linear"] == pytest.approx(2, rel=0.15)
    assert 50 * mixture.weights["wide"] == pytest.approx(1, rel=0.15)
    fresh, _, p = planted(50, 12, seed=9)
    fresh["frequency"] += np.float32(frequency)
    mixed = mixture.mix(fresh)
    ranks = [np.argsort(np.argsort(scores)) for scores in (mixed, p)]
    assert np.corrcoef(*ranks)[0, 1] > 0.99
    assert np.abs(mixture.probability(mixed) - p).mean() < 0.05


def test_an_opinion_worth_nothing_gets_no_weight() -> None:
    parts, truth, _ = planted(400, 12, seed=0)
    parts["vote"] = np.random.default_rng(5).random(4800).astype(np.float32)
    weights = fit(parts, truth).weights
    share = np.clip(parts["vote"], 0.005, 0.995)
    vote, odds = weights["vote"] * [share.std(), np.log(share / (1 - share)).std()]
    assert max(abs(vote), abs(odds)) < 0.3 * abs(weights["wide"][0]) * parts["wide"].std()


@pytest.mark.parametrize("shift", [-3.0, 0.0, 2.0])
def test_probabilities_are_calibrated(shift: float) -> None:
    parts, truth, _ = planted(600, 10, seed=1, shift=shift)
    mixture = fit(parts, truth)
    fresh, right, p = planted(2_000, 10, seed=2, shift=shift)
    found = mixture.probability(mixture.mix(fresh))
    assert calibration_error(found, right.toarray().ravel()) < 0.03
    assert np.abs(found - p).mean() < 0.04


def test_a_higher_score_never_has_a_lower_probability() -> None:
    for seed in range(3):
        parts, truth, _ = planted(60, 10, seed=seed)
        mixture = fit(parts, truth)
        assert (np.diff(mixture.knots) > 0).all()
        p = mixture.probability(np.linspace(-50, 50, 2_000, dtype=np.float32))
        assert (np.diff(p) >= 0).all() and p.min() >= 0 and p.max() <= 1
        assert p[-1] > p[0] + 0.5


def test_only_the_pairs_near_the_top_are_weighed() -> None:
    """Below the ten best, the second opinion lies; a fit on all pairs would believe the lie."""
    rng = np.random.default_rng(0)
    n, n_labels = 200, 60
    linear = np.where(np.arange(n_labels) < 10, 3.0, -3.0) + rng.random((n, n_labels))
    right = rng.random((n, n_labels)) < np.where(linear > 0, 0.5, 0.1)
    wide = np.where(linear > 0, 2.0 * right, -2.0 * right) + rng.standard_normal((n, n_labels))
    parts = {"linear": linear.ravel().astype(np.float32), "wide": wide.ravel().astype(np.float32)}
    assert fit(parts, sp.csr_matrix(right)).weights["wide"] > 1


def test_pairs_are_matched_with_the_truth() -> None:
    """Ragged rows, in any order, some empty; a true label off the list is nobody's loss."""
    pairs = sp.csr_matrix((np.ones(4, bool), np.int32([2, 0, 1, 0]), [0, 2, 2, 4]), shape=(3, 4))
    truth = sp.csr_matrix(np.array([[1, 0, 0, 1], [1, 1, 1, 1], [0, 1, 0, 0]], dtype=bool))
    assert module._is_right(pairs, truth).tolist() == [False, True, True, False]
    mixed = np.float32([5, 1, 2, 9])
    assert sorted(module._shown(pairs, mixed, 1).tolist()) == [0, 3]
    assert sorted(module._shown(pairs, mixed, 7).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("case", ["few right", "none", "all right", "all wrong"])
def test_with_nothing_to_fit_the_defaults_hold(case: str) -> None:
    """What they come to as probabilities, held-out points say nevertheless, if there are any."""
    n = 0 if case == "none" else 50
    right = np.full((n, 3), case == "all right")
    if case == "few right":
        right[: module.LEAST_POSITIVE - 1, 0] = True
    parts = {name: np.linspace(0, 1, 3 * n, dtype=np.float32) for name in OPINIONS}
    mixture = fit(parts, sp.csr_matrix(right))
    defaults = {"frequency": [0], "kernel": [8, 0], "linear": [2], "vote": [3, 0], "wide": [0.5]}
    for found in (mixture, default_mixture(OPINIONS)):
        assert {name: weights.tolist() for name, weights in found.weights.items()} == defaults
        assert found.bias == -1
    z = np.float32([-3, 0.1, 4])
    if case == "none":
        np.testing.assert_allclose(mixture.probability(z), logistic(z), atol=0.01)
    if case.startswith("all"):
        first = mixture.ranked(np.full((1, 3), 4.0, np.float32))
        assert (first > 0.98).all() if case == "all right" else (first < 0.1).all()


def test_labels_that_were_never_right_on_held_out_points_are_not_likely() -> None:
    """Forty points with a label each that no other has, and new points with others again."""
    rng = np.random.default_rng(0)
    X = sp.csr_matrix((rng.random((80, 60)) < 0.15).astype(np.float32))
    Y = sp.csr_matrix(np.eye(80, dtype=bool))
    likely = Joint(device="cpu").fit(X[:40], Y[:40]).predict_topk(X[40:], 3).scores
    assert 0 < likely.min() and likely.max() < 0.05


@pytest.mark.parametrize("top", [True, False], ids=["right", "wrong"])
def test_a_top_that_is_all_alike(top: bool) -> None:
    """Of twelve labels the ten best are all right, or all wrong: the other two are the lesson."""
    linear = np.tile(np.float32([5] * 10 + [-5] * 2), 500)
    right = np.tile(np.array([top] * 10 + [not top] * 2), 500)
    mixture = fit({"linear": linear}, sp.csr_matrix(right.reshape(500, 12)))
    high, low = mixture.mix({"linear": np.float32([5, -5])})
    assert (high > low) == top
    p = mixture.probability(np.float32([high, low]))
    assert (p[0] > p[1] + 0.5) if top else (p[1] > p[0] + 0.5)


def test_few_points_never_hold_a_high_score_against_a_label() -> None:
    """One text with two labels: the more of a fold carry one, the fewer of the others do."""
    rng = np.random.default_rng(0)
    which = rng.permutation(40) < 20
    fold = np.arange(40) // 8
    share = np.array([which[fold != each].mean() for each in range(5)])[fold]
    linear = np.stack([share, 1 - share], axis=1).astype(np.float32).ravel()
    mixture = fit({"linear": linear}, sp.csr_matrix(np.stack([which, ~which], axis=1)))
    assert mixture.weights["linear"][0] == 0
    p = mixture.probability(mixture.mix({"linear": np.float32([0.3, 0.7])}))
    np.testing.assert_allclose(p, 0.5, atol=0.05)


def test_points_with_many_labels_are_calibrated_below_the_top() -> None:
    """25 of 60 labels right: far more than are weighed."""
    parts, truth, _ = planted(300, 60, seed=4, shift=-0.7, noise=False)
    mixture = fit(parts, truth)
    p = mixture.probability(mixture.mix(parts))
    assert calibration_error(p, truth.toarray().ravel()) < 0.03
    assert p.sum() / 300 == pytest.approx(truth.nnz / 300, rel=0.1)


def test_expected_number_by_brute_force() -> None:
    rng = np.random.default_rng(0)
    scores = -np.sort(-(rng.random((200, 8)) ** rng.choice([0.3, 1, 4], (200, 1))), axis=1)
    ids = np.tile(np.arange(8, dtype=np.int32), (200, 1))
    ids[:50, 5:] = -1
    ids[:3] = -1
    numbers = expected_number(TopK(ids, scores.astype(np.float32)))
    for i in range(200):
        p = [float(s) for s, label in zip(scores[i], ids[i], strict=True) if label >= 0]
        gains = [2 * sum(p[:m]) / (m + sum(p)) for m in range(1, len(p) + 1)]
        assert numbers[i] == (int(np.argmax(gains)) + 1 if gains else 1)
    assert len(set(numbers.tolist())) > 4


def test_saved_and_restored() -> None:
    parts, truth, _ = planted(100, 10, seed=0)
    mixture = fit(parts, truth)
    again = Mixture.from_arrays(Arrays(mixture.arrays()), {name: OPINIONS[name] for name in parts})
    assert np.array_equal(again.mix(parts), mixture.mix(parts))
    assert set(again.weights) == {"frequency", "linear", "wide"}
    z = np.linspace(-9, 9, 50, dtype=np.float32)
    assert np.array_equal(again.probability(z), mixture.probability(z))


def test_labels_that_only_held_out_points_carry_teach_nothing() -> None:
    """Of label 0 the parts say the opposite of what is right: were it learnt from, they lost."""
    parts, truth, _ = planted(2000, 8, seed=5)
    known = np.tile(np.arange(8) >= 4, 2000)
    wrong = {**parts, "linear": np.where(known, parts["linear"], -parts["linear"])}
    taken_in, spared = (fit(wrong, truth, each) for each in (None, known))
    assert taken_in.weights["linear"] < 0.5
    assert spared.weights["linear"] == pytest.approx(2, abs=0.15)
    assert spared.bias == pytest.approx(-1, abs=0.15)
    none = fit(wrong, truth, np.zeros(len(known), dtype=bool))
    found = {name: weights.tolist() for name, weights in none.weights.items()}
    assert found == {"frequency": [0], "linear": [2], "wide": [0.5]}


@pytest.mark.parametrize("n", [40, 120, 199])
def test_few_pairs_are_calibrated_by_the_regression(n: int) -> None:
    parts, truth, _ = planted(n, 4, seed=6)
    fitted = fit(parts, truth)
    fresh, _, odds = planted(3000, 4, seed=7)
    p = fitted.probability(fitted.mix(fresh))
    assert np.abs(p - odds).mean() < 0.08
    assert p.min() < 0.01 and p.max() > 0.99


def test_equally_frequent_labels_are_hardly_told_apart_by_it() -> None:
    """A label of three points has two left where one is held out, and the others three."""
    parts, truth, _ = planted(300, 8, seed=8)
    right = truth.toarray().ravel()
    parts["frequency"] = np.where(right, np.log(3 / 301), np.log(4 / 301)).astype(np.float32)
    assert -8 < fit(parts, truth).weights["frequency"] < 0
    free = OPINIONS | {"frequency": Opinion(0.0, least_spread=0.0)}
    assert fit(parts, truth, opinions=free).weights["frequency"] < -24


def test_the_first_label_is_right_more_often_than_its_score_says() -> None:
    """Exactly one label a point is right: a pooled line underrates first labels of low score."""
    rng = np.random.default_rng(0)
    n, n_labels = 3000, 10
    scores = rng.normal(size=(n, n_labels)).astype(np.float32)
    odds = np.exp(2 * scores)
    right = [rng.choice(n_labels, p=row / row.sum()) for row in odds]
    truth = sp.csr_matrix(np.arange(n_labels) == np.array(right)[:, None])
    mixture = fit({"linear": scores.ravel()}, truth)
    assert len(mixture.by_rank) == len(RANKS)
    mixed = mixture.mix({"linear": scores.ravel()}).reshape(n, n_labels)
    order = np.argsort(-mixed, axis=1)
    best = np.take_along_axis(mixed, order, axis=1)
    hit = np.take_along_axis(truth.toarray(), order, axis=1)
    unsure = best[:, 0] < np.quantile(best[:, 0], 0.2)
    share = hit[unsure, 0].mean()
    assert abs(mixture.ranked(best)[unsure, 0].mean() - share) < 0.03
    assert abs(mixture.probability(best)[unsure, 0].mean() - share) > 0.06
    assert (np.diff(mixture.ranked(best), axis=1) <= 0).all()
    again = Mixture.from_arrays(Arrays(mixture.arrays()), {"linear": OPINIONS["linear"]})
    assert np.array_equal(again.ranked(best), mixture.ranked(best))


def one_right(n: int, n_labels: int, seed: int) -> tuple[np.ndarray, sp.csr_matrix]:
    """Scores, and exactly one right label a point, drawn by them."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, n_labels)).astype(np.float32)
    odds = np.exp(2 * scores)
    right = [rng.choice(n_labels, p=row / row.sum()) for row in odds]
    return scores, sp.csr_matrix(np.arange(n_labels) == np.array(right)[:, None])


@pytest.mark.parametrize("n", [15, 40, 200])
def test_few_points_are_calibrated_by_rank_too(n: int) -> None:
    """Over many draws: the first label is as probable as it is right; one line for all is off."""
    fresh, truth = one_right(2000, 10, 1000)
    hit = np.take_along_axis(truth.toarray(), np.argsort(-fresh, axis=1), axis=1)[:, 0].mean()
    said, pooled = [], []
    for seed in range(40):
        scores, own = one_right(n, 10, seed)
        mixture = fit({"linear": scores.ravel()}, own)
        mixed = mixture.mix({"linear": fresh.ravel()}).reshape(fresh.shape)
        best = np.sort(mixed, axis=1)[:, ::-1]
        said.append(mixture.ranked(best)[:, 0].mean())
        pooled.append(mixture.probability(best)[:, 0].mean())
    assert abs(np.mean(said) - hit) < 0.04
    assert abs(np.mean(pooled) - hit) > 0.06


def test_parts_that_say_nothing_are_not_trusted_on_few_points() -> None:
    """Thirty random opinions on forty points: by the points that a regression saw, it knows."""
    off = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        names = [f"part{i:02}" for i in range(30)]
        said = {name: rng.normal(size=160).astype(np.float32) for name in names}
        truth = sp.csr_matrix(rng.random((40, 4)) < 0.3)
        mixture = fit(said, truth, opinions={name: Opinion(1.0) for name in names})
        fresh = {name: rng.normal(size=4000).astype(np.float32) for name in names}
        off.append(mixture.probability(mixture.mix(fresh)).std())
    assert np.mean(off) < 0.15


def by_frequency(n: int, n_labels: int, seed: int):  # type: ignore[no-untyped-def]
    """One part tells frequent labels, another rare ones; each is noise for the others."""
    rng = np.random.default_rng(seed)
    log_share = np.linspace(-8, -2, n_labels)
    linear, wide = rng.standard_normal((2, n, n_labels))
    rare = log_share < -5
    odds = 4 * np.where(rare, wide, linear) - 2
    right = rng.random(odds.shape) < logistic(odds)
    parts = {
        "linear": linear.ravel().astype(np.float32),
        "wide": wide.ravel().astype(np.float32),
        "frequency": np.tile(log_share, n).astype(np.float32),
    }
    return parts, sp.csr_matrix(right)


def test_weights_depend_on_the_frequency_of_a_label() -> None:
    parts, truth = by_frequency(800, 12, seed=1)
    mixture = fit(parts, truth, by_frequency=True)
    low, high = mixture.span
    assert (low, high) == pytest.approx((-8, -2))
    weight = {
        name: [
            float(mixture.weights[name][0] + f * mixture.interactions[name][0]) for f in (-8, -2)
        ]
        for name in ("linear", "wide")
    }
    assert weight["linear"][0] < 0.6 < 2.5 < weight["linear"][1]
    assert weight["wide"][1] < 0.6 < 2.5 < weight["wide"][0]
    fresh, asked = by_frequency(800, 12, seed=2)
    right = asked.toarray().ravel()

    def ranked_right(mixture: Mixture) -> float:
        best = np.argmax(mixture.mix(fresh).reshape(800, 12), axis=1)
        return float(right.reshape(800, 12)[np.arange(800), best].mean())

    plain = Mixture({name: np.float32([1]) for name in fresh}, 0.0, *logistic_line())
    assert ranked_right(mixture) > ranked_right(plain) + 0.05
    assert calibration_error(mixture.probability(mixture.mix(fresh)), right) < 0.03


def test_weights_stay_what_they_are_beyond_the_frequencies_seen() -> None:
    parts, truth = by_frequency(800, 12, seed=1)
    mixture = fit(parts, truth, by_frequency=True)
    one = {"linear": np.float32([1, 1, 1]), "wide": np.float32([2, 2, 2])}
    mixed = mixture.mix(one | {"frequency": np.float32([-20, -8, -2])})
    own = mixture.weights["frequency"][0] * np.float32([-20, -8, -2])
    assert mixed[0] - own[0] == pytest.approx(mixed[1] - own[1], abs=1e-4)
    assert abs((mixed[2] - own[2]) - (mixed[1] - own[1])) > 1
    terms = mixture.terms(one | {"frequency": np.float32([-20, -8, -2])})
    np.testing.assert_allclose(sum(terms.values()) + mixture.bias, mixed, rtol=1e-4)


def test_few_right_pairs_have_one_weight_a_part() -> None:
    parts, truth = by_frequency(40, 12, seed=1)
    assert fit(parts, truth, by_frequency=True).interactions == {}


def test_interactions_are_stored() -> None:
    parts, truth = by_frequency(800, 12, seed=1)
    mixture = fit(parts, truth, by_frequency=True)
    opened = Mixture.from_arrays(Arrays(mixture.arrays()), {name: OPINIONS[name] for name in parts})
    assert opened.span == mixture.span
    np.testing.assert_array_equal(opened.mix(parts), mixture.mix(parts))


def test_a_part_may_give_several_scores() -> None:
    """The second of them tells what the first one leaves open."""
    parts, truth, p = planted(600, 8, seed=3)
    both = {
        "wide": np.stack([parts["linear"], parts["wide"]], axis=1),
        "frequency": parts["frequency"],
    }
    opinions = OPINIONS | {"wide": Opinion(0.5, n_scores=2)}
    mixture = fit(both, truth, opinions=opinions)
    first, second = mixture.weights["wide"].tolist()
    assert first == pytest.approx(2, abs=0.2) and 50 * second == pytest.approx(1, abs=0.15)
    assert calibration_error(mixture.probability(mixture.mix(both)), p) < 0.03
    assert mixture.terms(both)["wide"].shape == (600 * 8,)
    assert default_mixture({"wide": opinions["wide"]}).weights["wide"].tolist() == [0.5, 0.0]


def test_the_first_label_is_the_most_probable_one() -> None:
    """The second rank's line says more than the first one's: what it says is cut off."""
    low, high = (
        (np.float32([-1, 1]), np.float32([0.2, 0.4])),
        (np.float32([-1, 1]), np.float32([0.6, 0.8])),
    )
    mixture = Mixture({}, 0.0, *low, by_rank=(low, high))
    [[first, second]] = mixture.ranked(np.float32([[0.5, 0.0]]))
    assert first == pytest.approx(0.35) and first - 1e-5 < second < first


def test_a_pair_has_the_same_score_alone_and_among_others() -> None:
    rng = np.random.default_rng(0)
    said = {name: rng.standard_normal(40).astype(np.float32) for name in "abcde"}
    weights = {name: rng.standard_normal(1).astype(np.float32) for name in said}
    mixture = Mixture(weights, 0.3, *logistic_line())
    whole = mixture.mix(said)
    for first in range(40):
        for last in range(first + 1, 41):
            some = {name: scores[first:last] for name, scores in said.items()}
            np.testing.assert_array_equal(mixture.mix(some), whole[first:last])
