"""Promised precision and recall: counts by hand, bounds by formula, and kept on fresh points."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dxml import Joint
from dxml._core.arrays import Arrays
from dxml.data import make_planted
from dxml.exceptions import ParameterError, command_line_advice
from dxml.joint import _promises as module
from dxml.joint._promises import Promises, count_promises
from dxml.metrics import at_threshold
from dxml.topk import TopK

N_LABELS = 20


def drawn(n: int, seed: int, alike: float) -> tuple[sp.csr_matrix, TopK]:
    """Points whose labels are right or wrong together, by `alike`, with a score for each label."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(-1.5, 1.5, (n, N_LABELS))
    shared = rng.normal(0, alike, (n, 1))
    right = rng.random((n, N_LABELS)) < 1 / (1 + np.exp(-odds - shared))
    scores = 1 / (1 + np.exp(-odds))
    order = np.argsort(-scores, axis=1)
    ranked = np.take_along_axis(scores, order, axis=1)
    return sp.csr_matrix(right), TopK(order.astype(np.int32), ranked.astype(np.float32))


def test_counts_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three points; at 0.5 they are given 2, 1 and 0 labels, of which 1, 1 and 0 are right."""
    monkeypatch.setattr(module, "FIRST", 1)
    truth = sp.csr_matrix([[1, 0, 1], [0, 1, 0], [1, 0, 0]], dtype=bool)
    indices = np.array([[0, 1], [1, 2], [1, 0]], dtype=np.int32)
    scores = np.array([[0.9, 0.6], [0.8, 0.2], [0.4, 0.1]], dtype=np.float32)
    found = count_promises(truth, TopK(indices, scores))
    assert (found.points, found.true, found.true_squared) == (3, 4, 6)
    place = found.thresholds.tolist().index(np.float32(0.6))
    assert found.counts[place].tolist() == [3, 2, 5, 2, 3, 3]
    assert found.counts[-1].tolist() == [6, 3, 12, 3, 6, 4]
    assert (np.diff(found.thresholds) < 0).all()


def test_one_label_a_point_has_the_bound_of_clopper_and_pearson() -> None:
    """The largest share q for which 90 or more of 100 come with a chance of at most 5 %."""
    from scipy.stats import binom

    counts = [np.array([value], dtype=float) for value in (90, 100, 90, 100, 90)]
    [bound] = module._bounds(*counts, points=100, risk=0.05)
    assert binom.sf(89, 100, bound) == pytest.approx(0.05, rel=0.05)


def test_labels_that_go_together_are_worth_less() -> None:
    """Ten labels a point, all right or all wrong, are worth as much as one."""
    points, right = 100.0, 90.0
    alone = module._bounds(*(np.array([v]) for v in (90.0, 100.0, 90.0, 100.0, 90.0)), points, 0.05)
    sums = (10 * right, 10 * points, 100 * right, 100 * points, 100 * right)
    together = module._bounds(*(np.array([v]) for v in sums), points, 0.05)
    np.testing.assert_allclose(together, alone, atol=0.003)


@pytest.mark.parametrize("alike", [0.0, 2.0])
@pytest.mark.parametrize(("what", "promised"), [("precision", 0.5), ("recall", 0.8)])
def test_a_promise_is_kept_on_fresh_points(what: str, promised: float, alike: float) -> None:
    """By 95 of 100 draws of held-out points at least, and without giving much away."""
    fresh, kept = drawn(20_000, 10_000, alike), []
    for seed in range(100):
        threshold = count_promises(*drawn(400, seed, alike)).threshold(**{what: promised})
        kept.append(getattr(at_threshold(*fresh, threshold), what))
    assert np.mean(np.array(kept) >= promised) >= 0.95
    assert np.mean(kept) < promised + 0.08


def test_a_joint_model_keeps_its_promise() -> None:
    """On new points of ten data sets; thresholds chosen without a bound miss it in half of them."""
    missed = refused = 0
    for seed in range(10):
        data = make_planted(2300, 300, 30, 2.0, 8, noise=0.4, random_state=seed)
        model = Joint(candidates="nearest", width=0).fit(data.X[:300], data.Y[:300])
        ranking = model.predict_topk(data.X[300:], 30)
        for what, promised in (("precision", 0.7), ("recall", 0.7)):
            threshold = model.threshold_for(**{what: promised})
            found = getattr(at_threshold(data.Y[300:], ranking, threshold), what)
            missed += found < promised
            refused += found > promised + 0.15
    assert missed <= 2 and refused == 0


def test_a_higher_promise_gives_fewer_or_more_labels() -> None:
    promises = count_promises(*drawn(2000, 0, 1.0))
    by_precision = [promises.threshold(precision=each) for each in (0.4, 0.6, 0.8)]
    by_recall = [promises.threshold(recall=each) for each in (0.4, 0.6, 0.8)]
    assert sorted(by_precision) == by_precision and len(set(by_precision)) == 3
    assert sorted(by_recall, reverse=True) == by_recall and len(set(by_recall)) == 3


def test_what_held_out_points_do_not_allow_is_refused() -> None:
    promises = count_promises(*drawn(400, 0, 2.0))
    most = promises.most("precision")
    assert 0.3 < most < 0.99
    promises.threshold(precision=most)
    with pytest.raises(ParameterError, match=rf"400 held-out points.*the most is {most:g}\."):
        promises.threshold(precision=0.99)
    with pytest.raises(ParameterError, match="30 points were held out in training, and 50 are"):
        count_promises(*drawn(30, 0, 0.0)).threshold(recall=0.5)
    with pytest.raises(ParameterError, match=r"precision must be between 0 and 1, got 90\."):
        promises.threshold(precision=90)
    with (
        command_line_advice(),
        pytest.raises(ParameterError, match="give --precision or --recall, one of both"),
    ):
        promises.threshold(precision=0.5, recall=0.5)
    nothing = TopK(np.full((60, 2), -1, np.int32), np.zeros((60, 2), np.float32))
    with pytest.raises(ParameterError, match="none can be promised"):
        count_promises(sp.csr_matrix((60, 5), dtype=bool), nothing).threshold(precision=0.5)


def test_arrays_and_back() -> None:
    promises = count_promises(*drawn(200, 0, 1.0))
    back = Promises.from_arrays(Arrays(promises.arrays()))
    assert back is not None
    assert back.threshold(recall=0.6) == promises.threshold(recall=0.6)
    assert back.threshold(precision=0.4) == promises.threshold(precision=0.4)
    assert Promises.from_arrays(Arrays({})) is None
