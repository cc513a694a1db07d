"""Weights by held-out points: the quality by hand, and a ladder climbed step by step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.joint._calibration import logistic_line
from dxml.joint._ensemble import with_candidates
from dxml.joint._held_out import HeldOut
from dxml.joint._mixture import Mixture, Opinion
from dxml.joint._points import FeatureSpace, Known, Near, tie_order_of
from dxml.joint._weighing import Attempt, Weighing, climb
from dxml.joint.parts.protocol import Data, Options, Part, Query, Settings, Task, Trial

NO_MIXTURE = Mixture({}, 0.0, np.float32([0]), np.float32([0]))


@dataclass(frozen=True, eq=False)
class Says(Part):
    """A part that says what it is told to, of every pair of the held-out points."""

    name: ClassVar[str] = "says"
    opinion: ClassVar[Opinion] = Opinion(default_weight=1.0)

    scored: Any

    @classmethod
    def plan(cls, *_: Any) -> Settings | None:
        return {}

    @classmethod
    def fit(cls, task: Task, settings: Settings, start: Part | None = None) -> Any:
        raise AssertionError("it is given as it is")

    def scores(self, query: Query) -> Any:
        return self.scored[: query.X.shape[0]].ravel().astype(np.float32)

    def state(self, precision: Any) -> Any:
        return {}, {}

    @classmethod
    def restore(cls, *_: Any) -> Any:
        raise AssertionError("it is not saved")


def trial(Y: sp.csr_matrix, held: Any, options: Options, **parts: Part) -> Trial:
    X = sp.csr_matrix(np.ones((Y.shape[0], 2), dtype=np.float32))
    task = Task(Data(X, Y), options, ~held)
    known = Known(X, Y, tie_order_of(Y), FeatureSpace(X, np.ones(2, bool)))
    n = int(held.sum())
    near = Near(np.full((n, 1), -1, np.int32), np.zeros((n, 1), np.float32))
    return Trial(task, X[held], Y[held], known, near, parts)


def of_every_label(trials: list[Trial], **opinions: Opinion) -> Weighing:
    queries = [with_candidates(each.query(True), each.parts, 1) for each in trials]
    return Weighing(trials, queries, opinions)


def test_quality_by_hand(options: Options) -> None:
    """Labels 0 and 1 are told rightly. Label 2 is praised most, but only a held-out point has it.

    So it comes last: P@1 is 1, and of 30 · 3 places 29 points fill one rightly and one point two.
    """
    group = np.arange(60) % 2
    Y = np.eye(3, dtype=bool)[group]
    Y[0, 2] = True
    held = np.arange(60) < 30
    said = np.where(Y[held], 5.0, -5.0)
    said[:, 2] = 9.0
    weighing = of_every_label(
        [trial(sp.csr_matrix(Y), held, options, says=Says(said))], says=Says.opinion
    )
    quality, mixture = weighing.mixture()
    assert quality == pytest.approx((1 + 31 / 90) / 2)
    assert mixture.weights["says"] > 0
    kept, judged, _ = weighing.finished(mixture, {})
    assert kept == mixture, "so few points have one weight a part"
    assert replace(judged, curve=None) == HeldOut(30, {1: 100.0, 3: round(3100 / 90, 2)})
    assert judged.curve is not None and judged.curve.carried == 31
    assert (judged.curve.given[0], judged.curve.right[0]) == (90, 31), "from 0 on, all is given"
    best = judged.curve.best()
    assert (best.precision, best.recall) == (1, 30 / 31), "all but the label of one point alone"


def test_weights_depend_on_the_frequency_where_that_ranks_better(options: Options) -> None:
    """One part tells rare labels, one frequent ones; each is noise for the others."""
    rng = np.random.default_rng(0)
    n, n_labels = 2400, 10
    share = np.linspace(-8, -2, n_labels)
    one, other = rng.standard_normal((2, n, n_labels))
    odds = 4 * np.where(share < -5, one, other) - 2
    Y = rng.random(odds.shape) < 1 / (1 + np.exp(-odds))
    held = np.arange(n) < 1200
    parts = {"one": Says(one[held]), "other": Says(other[held])}
    parts["frequency"] = Says(np.tile(share, (1200, 1)))
    opinions = dict.fromkeys(parts, Says.opinion)
    weighing = of_every_label([trial(sp.csr_matrix(Y), held, options, **parts)], **opinions)
    quality, mixture = weighing.mixture()
    assert not mixture.interactions
    kept, judged, _ = weighing.finished(mixture, {})
    assert kept.interactions
    assert np.mean(list(judged.precision.values())) / 100 > quality + 0.1


def test_weights_that_rank_worse_by_frequency_are_not_kept(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A regression that turns the weights around where they may depend on the frequency."""

    def turned(said: Any, *given: Any, by_frequency: bool = False, **how: Any) -> Mixture:
        sign = -1.0 if by_frequency else 1.0
        return Mixture({name: np.float32([sign]) for name in said}, 0.0, *logistic_line())

    monkeypatch.setattr("dxml.joint._weighing.fit_mixture", turned)
    Y = np.eye(4, dtype=bool)[np.arange(60) % 4]
    held = np.arange(60) < 30
    says = Says(np.where(Y[held], 5.0, -5.0))
    weighing = of_every_label(
        [trial(sp.csr_matrix(Y), held, options, says=says)], says=Says.opinion
    )
    _, mixture = weighing.mixture()
    kept, judged, _ = weighing.finished(mixture, {})
    assert kept.weights["says"] == 1 and judged.precision[1] == 100


@pytest.mark.parametrize(
    ("plain", "by_frequency", "kept"),
    [(True, True, 2), (True, False, 1), (False, False, 2), (False, True, 2)],
)
def test_weights_by_frequency_that_swing_are_not_kept_beside_steady_ones(
    options: Options,
    monkeypatch: pytest.MonkeyPatch,
    plain: bool,
    by_frequency: bool,
    kept: float,
) -> None:
    """Weights by frequency rank better: they are kept if they settle, or if no weights do."""

    def fitted(said: Any, *given: Any, by_frequency: bool = False, **how: Any) -> Mixture:
        weights = {"says": np.array([2.0 if by_frequency else -1.0], dtype=np.float32)}
        return Mixture(weights, 0.0, *logistic_line(), settled=settles[by_frequency])

    settles = {False: plain, True: by_frequency}
    monkeypatch.setattr("dxml.joint._weighing.fit_mixture", fitted)
    monkeypatch.setattr("dxml.joint._weighing.LEAST_RANKED", 10)
    Y = np.eye(4, dtype=bool)[np.arange(60) % 4]
    held = np.arange(60) < 30
    says = Says(np.where(Y[held], 5.0, -5.0))
    weighing = of_every_label(
        [trial(sp.csr_matrix(Y), held, options, says=says)], says=Says.opinion
    )
    found, _, _ = weighing.finished(weighing.mixture()[1], {})
    assert abs(found.weights["says"][0]) == kept


def test_more_parts_are_weighed_with_the_others(options: Options) -> None:
    """One part knows nothing, the other everything; each trial has its own."""
    rng = np.random.default_rng(0)
    Y = sp.csr_matrix(np.eye(4, dtype=bool)[rng.integers(0, 4, 80)])
    folds = [np.arange(80) % 2 == which for which in (0, 1)]
    noise = rng.standard_normal((40, 4))
    trials = [trial(Y, held, options, noise=Says(noise)) for held in folds]
    weighing = of_every_label(trials, noise=Says.opinion, truth=Opinion(0.0))
    alone, _ = weighing.mixture()
    right = [Says(2.0 * each.Y.toarray() - 1) for each in trials]
    together, mixture = weighing.mixture({"truth": right})
    assert alone < 0.5 < together == pytest.approx((1 + 1 / 3) / 2)  # four labels: P@1 and P@3
    assert mixture.weights["truth"] > 5 * abs(mixture.weights["noise"])
    swapped, _ = weighing.mixture({"truth": right[::-1]})
    assert swapped < together
    assert weighing.mixture()[0] == alone, "what was added is gone again"


def climbed(
    qualities: list[float], first_steps: tuple[int, int], worth: float = 0.5
) -> tuple[Any, Any, list[tuple[Any, Any]]]:
    """The best step, the last one, and (step, the step before) of every attempt after the first."""
    asked = []

    def attempt(settings: Settings, before: Attempt | None = None) -> Attempt:
        if before is not None:
            asked.append((settings["step"], before.settings["step"]))
        return Attempt(qualities[settings["step"]], NO_MIXTURE, settings, [])

    ladder = [{"step": step} for step in range(len(qualities))]
    low = attempt(ladder[first_steps[0]])
    best, last = climb(ladder, first_steps, worth, low, attempt)
    return best.settings["step"], last.settings["step"], asked


def test_up_until_it_gets_worse() -> None:
    """Steps 1 and 2 first; 3 gains 1, the top is there, and 4 loses."""
    assert climbed([-3, -2, -1, 0, -1], (1, 2)) == (3, 4, [(2, 1), (3, 2), (4, 3)])


def test_up_until_too_little_is_gained() -> None:
    """Step 3 gains 0.4, less than is worth a further try, and is the best all the same."""
    assert climbed([0, 1, 2, 2.4, 9], (1, 2)) == (3, 3, [(2, 1), (3, 2)])


def test_down_where_the_lower_is_better() -> None:
    """The attempt after the two first goes on from the last of them, not from the best."""
    assert climbed([4, 3, 2, 1, 0], (2, 3)) == (0, 0, [(3, 2), (1, 3), (0, 1)])


def test_nowhere_where_the_two_are_alike() -> None:
    assert climbed([9, 0, 0.4, 9], (1, 2)) == (2, 2, [(2, 1)])
    assert climbed([9, 0.4, 0, 9], (1, 2)) == (1, 2, [(2, 1)])
    assert climbed([9, 1, 1, 9], (1, 2)) == (1, 2, [(2, 1)])  # the first of equals


def test_the_end_of_the_ladder() -> None:
    assert climbed([0, 1], (0, 1)) == (1, 1, [(1, 0)])
    assert climbed([1, 0], (0, 1)) == (0, 1, [(1, 0)])
