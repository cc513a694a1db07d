"""First labels are surer where more of a point is known: by hand, as planted, and in a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml.joint import Joint
from dxml.joint._calibration import LEAST_RANKED, lines_by_rank, logistic_line
from dxml.joint._familiarity import LEAST_SLOPE, Familiarity, learn_familiarity
from dxml.joint._mixture import Mixture, Opinion, fit_mixture
from dxml.methods import load_model

WORDS, LABELS = 400, 8


def logistic(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def drawn(n: int, seed: int = 0, worth: float = 1.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of known features, scores of first labels, and which of these are right."""
    rng = np.random.default_rng(seed)
    known, z = rng.integers(1, 20, n), rng.normal(0, 1, n)
    odds = z + worth * (np.log1p(known) - np.log1p(np.arange(1, 20)).mean())
    return known, z.astype(np.float32), rng.random(n) < logistic(odds)


def texts(n: int, seed: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """One to thirty words, any of which tells the label; words of the other half tell nothing."""
    rng = np.random.default_rng(seed)
    label, length = rng.integers(0, LABELS, n), rng.choice([1, 2, 30], n)
    rows = []
    for own, size in zip(label, length, strict=True):
        told = rng.random(size) < 0.4
        telling = own + LABELS * rng.integers(0, WORDS // 2 // LABELS, size)
        rows.append(np.unique(np.where(told, telling, rng.integers(WORDS // 2, WORDS, size))))
    ends = np.cumsum([0, *map(len, rows)])
    ids = np.concatenate(rows).astype(np.int32)
    X = sp.csr_matrix((np.ones(len(ids), np.float32), ids, ends), (n, WORDS))
    return X, sp.csr_matrix(np.eye(LABELS, dtype=bool)[label])


def gap(said: np.ndarray, right: np.ndarray, number: np.ndarray) -> float:
    """The mean gap between few, some and many known features."""
    part = np.searchsorted(np.quantile(number, [1 / 3, 2 / 3]), number)
    return float(np.abs(np.bincount(part, said - right)).sum() / len(said))


def test_shifts_by_hand() -> None:
    """One and a half for each unit of log(1 + n), from 3 known features on; 1 and 15 are ends."""
    found = Familiarity(1.5, float(np.log(4)), (float(np.log(2)), float(np.log(16))))
    shift = found.shift(np.array([3, 7, 15, 1000, 1, 0]))
    expected = 1.5 * np.log(2) * np.array([0, 1, 2, 2, -1, -1])
    np.testing.assert_allclose(shift, expected, atol=1e-6)
    assert shift.dtype == np.float32
    back = Familiarity.from_arrays(Arrays(found.arrays()))
    assert back == found
    assert Familiarity.from_arrays(Arrays({})) is None


def test_a_planted_worth_is_found() -> None:
    known, z, right = drawn(20_000)
    found = learn_familiarity(known, z, right)
    assert found is not None
    assert found.worth == pytest.approx(1.5, abs=0.12)
    assert found.middle == pytest.approx(np.log1p(known).mean())
    assert found.span == pytest.approx((np.log(2), np.log(20)))


def test_few_points_are_not_believed_much() -> None:
    """Worths of twenty points in which the number counts for nothing: near it, on average."""
    worths = []
    for seed in range(50):
        found = learn_familiarity(*drawn(20, seed, worth=0.0))
        assert found is not None
        worths.append(found.worth)
    assert np.abs(worths).mean() < 0.35 and abs(np.mean(worths)) < 0.1


def test_a_score_that_tells_nothing_makes_no_huge_shift() -> None:
    known, z, right = drawn(20_000)
    found = learn_familiarity(known, np.random.default_rng(1).permutation(100 * z), right)
    assert found is not None
    assert abs(found.worth) < 2 / LEAST_SLOPE


def test_points_that_do_not_differ_teach_nothing() -> None:
    """Nor do those without a known feature, all of which are wrong here."""
    known, z, right = drawn(500)
    assert learn_familiarity(np.full(500, 7), z, right) is None
    assert learn_familiarity(np.zeros(500, int), z, right) is None
    more = [np.concatenate(each) for each in ((known, np.zeros(99, int)), (z, z[:99]))]
    wrong = np.concatenate([right, np.zeros(99, bool)])
    assert learn_familiarity(*more, wrong) == learn_familiarity(known, z, right)


@pytest.mark.parametrize("n", [LEAST_RANKED - 1, LEAST_RANKED])
def test_only_first_ranks_are_shifted(n: int) -> None:
    """A point of no pair lies between; what is first stays it, however far it is shifted."""
    rng = np.random.default_rng(0)
    mixed = np.sort(rng.normal(size=(n, 2)), axis=1)[:, ::-1].astype(np.float32)
    right = rng.random((n, 2)) < logistic(mixed - 1)
    ends = 2 * np.concatenate([np.arange(n // 2 + 1), np.arange(n // 2, n + 1)])
    ids = np.tile(np.int32([0, 1]), n)
    pairs = sp.csr_matrix((np.ones(2 * n, bool), ids, ends), (n + 1, 2))
    shift = np.insert(rng.normal(0, 3, n), n // 2, 99.0).astype(np.float32)
    every = np.ones(2 * n, bool)
    [first, second] = lines_by_rank(pairs, mixed.ravel(), right.ravel(), every, shift)
    [alone] = lines_by_rank(
        sp.csr_matrix(np.ones((n, 1), bool)),
        mixed[:, 0] + np.delete(shift, n // 2),
        right[:, 0],
        every[:n],
    )
    [_, plain] = lines_by_rank(pairs, mixed.ravel(), right.ravel(), every)
    if n < LEAST_RANKED:  # these help one another out
        assert np.abs(np.interp(0, *first) - np.interp(0, *alone)) < 0.05
    else:
        np.testing.assert_array_equal(first, alone)
        np.testing.assert_array_equal(second, plain)


@pytest.mark.parametrize("n", [300, 3000])
def test_probabilities_follow_the_number_as_planted(n: int) -> None:
    """By the logistic lines of few points and by the bins of many."""
    opinions, off = {"linear": Opinion(1.0)}, []
    for seed in range(10):
        known, z, right = drawn(n, seed)
        said = {"linear": z}
        pairs, truth = sp.csr_matrix(np.ones((n, 1), bool)), sp.csr_matrix(right[:, None])
        fresh, scores, hit = drawn(5000, 1000 + seed)
        told = []
        for number in (None, known):
            mixture = fit_mixture(said, opinions, pairs, truth, n_features=number)
            mixed = mixture.mix({"linear": scores})[:, None]
            told.append(gap(mixture.ranked(mixed, fresh)[:, 0], hit, fresh))
            assert (mixture.familiarity is None) == (number is None)
        off.append(told)
    plain, shifted = np.mean(off, axis=0)
    assert plain > 0.1 and shifted < (0.06 if n < LEAST_RANKED else 0.03)


def test_probabilities_never_rise_in_a_row_and_later_ones_stay() -> None:
    line = logistic_line()
    plain = Mixture({}, 0.0, *line, by_rank=(line, line, line))
    shifted = replace(plain, familiarity=Familiarity(2.0, 1.0, (0.0, 9.0)))
    mixed = np.float32([[1.0, 0.5, -1.0]] * 3)
    found = shifted.ranked(mixed, np.array([0, 2, 50]))
    assert (np.diff(found, axis=1) < 0).all()
    assert found[0, 0] < plain.ranked(mixed)[0, 0] < found[2, 0]
    np.testing.assert_array_equal(found[1:, 1:], plain.ranked(mixed)[1:, 1:])
    np.testing.assert_array_equal(shifted.ranked(mixed), plain.ranked(mixed))
    uncalibrated = replace(shifted, by_rank=())
    np.testing.assert_array_equal(
        uncalibrated.ranked(mixed, np.array([0, 2, 50])), plain.ranked(mixed)
    )


@pytest.mark.parametrize("n", [300, 1500])
def test_a_model_of_texts(n: int, tmp_path: Path) -> None:
    """First labels are as probable as they are right, whether one word is known or thirty."""
    model, (X, Y) = Joint(device="cpu").fit(*texts(n, 0)), texts(3000, 1)
    assert model.mixture_.familiarity is not None and model.mixture_.familiarity.worth > 0
    ranking = model.predict_topk(X, 3)
    right = np.asarray(Y[np.arange(3000), ranking.indices[:, 0]]).ravel()
    number = np.diff(X.indptr)
    off = gap(ranking.scores[:, 0], right, number)
    assert (np.diff(ranking.scores, axis=1) <= 0).all()
    for row in (0, 7, 2999):
        alone = model.predict_topk(X[row], 3)
        np.testing.assert_array_equal(alone.scores[0], ranking.scores[row])
    model.save(tmp_path / "m")
    opened = load_model(tmp_path / "m")
    again = opened.predict_topk(X, 3)
    np.testing.assert_array_equal(again.scores, ranking.scores)
    assert model.held_out_ is not None and model.promises_ is not None
    model.mixture_ = replace(model.mixture_, familiarity=None)
    plain = model.predict_topk(X, 3)
    np.testing.assert_array_equal(plain.indices, ranking.indices)
    assert off < 0.06 and off < gap(plain.scores[:, 0], right, number) - 0.02


def test_promises_and_the_threshold_curve_are_of_shifted_probabilities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Held-out points are told of with their known features, as many as their fold knows."""
    told, ranked = [], Mixture.ranked

    def heard(self: Mixture, mixed: Any, n_features: Any = None) -> Any:
        told.append(n_features)
        return ranked(self, mixed, n_features)

    monkeypatch.setattr(Mixture, "ranked", heard)
    X, Y = texts(300, 0)
    Joint(device="cpu").fit(X, Y)
    assert len(told) == 2
    for n_features in told:
        assert len(n_features) == 300
        assert 0 < X.nnz - n_features.sum() < 0.1 * X.nnz


def test_points_without_a_known_feature_are_answered_as_before() -> None:
    X, Y = texts(300, 0)
    model = Joint(device="cpu").fit(X, Y)
    nothing = sp.csr_matrix((1, WORDS), dtype=np.float32)
    before = model.predict_topk(nothing, 3)
    model.mixture_ = replace(model.mixture_, familiarity=None)
    np.testing.assert_array_equal(model.predict_topk(nothing, 3).scores, before.scores)


@pytest.mark.parametrize("scaling", ["auto", "rows", "none"])
def test_dense_data_are_calibrated_as_before(scaling: Any) -> None:
    """Zeros among measurements are no features that a point lacks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 12)).astype(np.float32)
    X[rng.random(X.shape) < 0.2] = 0
    Y = np.stack([X[:, 0] > 0, X[:, 1] > X[:, 2]], axis=1)
    model = Joint(device="cpu", scaling=scaling).fit(X, Y)
    assert model.mixture_.by_rank and model.mixture_.familiarity is None
    assert not any("familiarity" in name for name in model.mixture_.arrays())


def test_standardised_columns_have_no_unknown_features() -> None:
    """A value that is its column's mean becomes 0, as all of a column that never changes do."""
    X = np.zeros((400, 12), np.float32)
    X[:200, :4] = np.random.default_rng(0).integers(-1, 2, (200, 4))
    X[200:] = -X[:200]
    Y = np.stack([X[:, 0] > 0, X[:, 1] > X[:, 2]], axis=1)
    model = Joint(device="cpu", scaling="columns").fit(X, Y)
    assert model.mixture_.by_rank and model.mixture_.familiarity is None


def test_models_of_before_shift_nothing() -> None:
    """A mixture without the array answers as if it were told of no numbers."""
    line = logistic_line()
    mixture = Mixture({"a": np.float32([1])}, 0.0, *line, by_rank=(line,))
    opened = Mixture.from_arrays(Arrays(mixture.arrays()), {"a": Opinion(1.0)})
    assert opened.familiarity is None
    mixed = np.float32([[0.3, -0.2], [2.0, 1.0]])
    found = opened.ranked(mixed, np.array([1, 400]))
    np.testing.assert_array_equal(found, mixture.ranked(mixed))
