"""Reliability, by the numbers that are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.metrics import calibration_error
from dxml.plots import NothingToDrawError, reliability_plot
from dxml.topk import TopK

from .words import check_words


def planted_probabilities(n: int = 100) -> tuple[sp.csr_matrix, TopK]:
    """Two labels a point, given with 0.9 and 0.2; right 90 and 40 times in 100."""
    truth = np.zeros((n, 2), dtype=bool)
    truth[: n * 9 // 10, 0] = True
    truth[: n * 4 // 10, 1] = True
    indices = np.tile(np.array([0, 1], dtype=np.int32), (n, 1))
    return sp.csr_matrix(truth), TopK(indices, np.tile(np.float32([0.9, 0.2]), (n, 1)))


def test_reliability_by_hand(plt: Any) -> None:
    Y, ranking = planted_probabilities()
    plot = reliability_plot(Y, ranking, title="Reliability of x")
    assert plot.k == 2
    low, high = plot.groups
    assert (low.probability, low.right, low.predictions) == (pytest.approx(0.2), 0.4, 100)
    assert (high.probability, high.right, high.predictions) == (pytest.approx(0.9), 0.9, 100)
    assert (low.low, low.high) == pytest.approx((0.3094, 0.4980), abs=1e-3)  # Wilson's, n = 100
    assert plot.error == pytest.approx(0.1) == calibration_error(Y, ranking, 2)
    assert plot.counts == tuple(100 if i in (3, 13) else 0 for i in range(15))  # 0.2 · 15, 0.9 · 15
    assert plot.numbers()["ECE@2"] == pytest.approx(10.0) and plot.numbers()["predictions"] == 200
    canvas = plot.paint(plt)
    curve, below = canvas.axes
    diagonal, points = curve.lines[0], curve.containers[0].lines[0]
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 1]
    assert list(points.get_xdata()) == [low.probability, high.probability]
    assert list(points.get_ydata()) == [0.4, 0.9]
    assert tuple(below.patches[0].get_data().values) == plot.counts
    assert canvas.get_suptitle() == "Reliability of x: calibration error 10.0 %"
    assert len(curve.get_legend().get_texts()) == 2
    check_words(canvas)


def test_groups_are_of_equal_size_and_places_without_a_label_do_not_count() -> None:
    rng = np.random.default_rng(1)
    scores = np.sort(rng.random((400, 3)).astype(np.float32), axis=1)[:, ::-1].copy()
    indices = np.tile(np.arange(3, dtype=np.int32), (400, 1))
    indices[:100, 2], scores[:100, 2] = -1, 0
    Y = sp.csr_matrix(rng.random((400, 3)) < scores)
    plot = reliability_plot(Y, TopK(indices, scores))
    sizes = [group.predictions for group in plot.groups]
    assert len(sizes) == 15 and sum(sizes) == 1100 and max(sizes) - min(sizes) <= 1
    assert plot.error == calibration_error(Y, TopK(indices, scores), 3)
    for group in plot.groups:  # drawn from their own probabilities
        assert abs(group.probability - group.right) < 0.2


def test_scores_that_are_no_probabilities_are_refused() -> None:
    Y, ranking = planted_probabilities()
    wrong = TopK(ranking.indices, 3 * ranking.scores - 1)
    with pytest.raises(NothingToDrawError) as stop:
        reliability_plot(Y, wrong, method="one-vs-all")
    assert str(stop.value) == (
        "the scores of one-vs-all are no probabilities, they range from -0.4 to 1.7: there is no "
        "reliability to draw. Those of joint are."
    )
