"""Accuracy by label frequency, by the numbers that are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.plots import NothingToDrawError, frequency_plot
from dxml.topk import TopK

from .words import check_words


def test_accuracy_by_frequency_by_hand(plt: Any) -> None:
    Y = sp.csr_matrix(np.array([[1, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 0]], dtype=bool))
    ranking = TopK(np.array([[0, 1], [0, 1], [0, -1]], np.int32), np.zeros((3, 2), np.float32))
    plot = frequency_plot(Y, ranking, np.array([6, 6, 5, 1]), title="Accuracy of x")
    assert plot.ks == (1,)  # there are two places
    bands = plot.numbers()["bands"]
    assert bands["head"] == {
        "labels": 1,
        "occurrences": 2,
        "points": 2,
        "P@1": pytest.approx(66.6667),
        "R@1": 100,
    }
    assert [bands[name]["labels"] for name in ("torso", "tail")] == [1, 2]
    assert [bands[name]["R@1"] for name in ("torso", "tail")] == [0, 0]
    steps = plot.numbers()["training_points"]
    assert {name: each["labels"] for name, each in steps.items()} == {"1": 1, "4–7": 3}
    canvas = plot.paint(plt)
    found, right, below = canvas.axes
    assert [bar.get_height() for bar in found.patches] == [100, 0, 0]
    assert [bar.get_height() for bar in right.patches] == pytest.approx([200 / 3, 0, 0])
    ticks = [tick.get_text() for tick in found.get_xticklabels()]
    assert ticks[0] == "head\n1 labels\non 2 points"
    recall, precision = (line.get_ydata() for line in below.lines)
    assert recall.tolist() == [0, 50] and precision[1] == pytest.approx(200 / 3)
    assert np.isnan(precision[0])  # no label of one training point was predicted
    assert [tick.get_text() for tick in below.get_xticklabels()] == ["1\n(1)", "4\n(3)"]
    check_words(canvas)
    assert found.get_legend() and below.get_legend()


def test_without_labels_there_is_no_accuracy() -> None:
    ranking = TopK(np.zeros((2, 1), np.int32), np.zeros((2, 1), np.float32))
    with pytest.raises(NothingToDrawError, match="no point has a label, so there is no accuracy"):
        frequency_plot(sp.csr_matrix((2, 3), dtype=bool), ranking, np.array([1, 1, 1]))
