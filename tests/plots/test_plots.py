"""What the pictures show, by the numbers that are drawn and not by their pixels."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml import DXML, Joint, load_model, make_planted
from dxml.baselines.knn import KNN
from dxml.exceptions import ParameterError
from dxml.metrics import calibration_error
from dxml.plots import (
    NothingToDrawError,
    Plot,
    TrainingPlot,
    frequency_plot,
    reliability_plot,
    save,
    training_plot,
)
from dxml.plots.style import MissingExtraError, pyplot
from dxml.topk import TopK

OLD_MODEL = Path(__file__).parents[1] / "models" / "format-1-dxml"
DATA = make_planted(200, 80, 8, random_state=0)
DXML_SMALL = {"epochs": 4, "dim": 8, "hidden": 16, "n_partitions": 1, "n_neighbors": 5}


@pytest.fixture(name="plt")
def _plt() -> Iterator[Any]:
    with pyplot() as plt:
        yield plt
        plt.close("all")


def check_words(canvas: Any) -> None:
    """A figure has a title, and every panel names its axes."""
    assert canvas.get_suptitle()
    for axis in canvas.axes:
        assert axis.get_xlabel() or axis.get_shared_x_axes().get_siblings(axis) != [axis]
        assert axis.get_ylabel() or axis.get_yticklabels()[0].get_text()


# ---------------------------------------------------------------- training


def test_losses_and_seconds_are_kept_in_the_folder(tmp_path: Path, plt: Any) -> None:
    model = DXML(**DXML_SMALL, device="cpu").fit(DATA.X, DATA.Y)
    assert list(model.seconds_)[-1] == "other"
    assert {"walks", "skip-gram", "encoder", "partitions"} <= set(model.seconds_)
    plot = training_plot(load_model(model.save(tmp_path / "m")))
    assert plot.history == tuple(model.history_) and len(plot.history) == 4
    assert plot.seconds == pytest.approx(model.seconds_, abs=1e-4)
    assert plot.title == "Training of dxml: 200 points, 8 labels"
    canvas = plot.paint(plt)
    curve, stages = canvas.axes
    assert list(curve.lines[0].get_xdata()) == [1, 2, 3, 4]
    assert tuple(curve.lines[0].get_ydata()) == plot.history
    assert (curve.get_xlabel(), curve.get_ylabel()) == ("epoch", plot.value)
    assert [bar.get_width() for bar in stages.patches] == list(plot.seconds.values())
    assert [tick.get_text() for tick in stages.get_yticklabels()] == list(plot.seconds)
    check_words(canvas)


def test_a_joint_model_has_the_losses_of_its_wide_layer(tmp_path: Path, plt: Any) -> None:
    wide = Joint(candidates="all", width=32, epochs=3, device="cpu").fit(DATA.X, DATA.Y)
    folder = wide.save(tmp_path / "wide")
    state = json.loads((folder / "config.json").read_text())["state"]
    assert state["parts"]["wide"]["history"] == wide.history_
    assert len(training_plot(load_model(folder)).history) == 3
    flat = Joint(candidates="nearest", width=0, device="cpu").fit(DATA.X, DATA.Y)
    plot = training_plot(load_model(flat.save(tmp_path / "flat")))
    assert plot.history == () and {"neighbours", "linear head", "other"} <= set(plot.seconds)
    assert plot.numbers()["curve"] is None
    (stages,) = plot.paint(plt).axes
    assert len(stages.patches) == len(plot.seconds)


def test_another_fit_starts_another_record() -> None:
    model = Joint(candidates="all", width=32, epochs=3, device="cpu").fit(DATA.X, DATA.Y)
    model.set_params(width=0).fit(DATA.X, DATA.Y)
    assert training_plot(model).history == ()


def test_older_folders_show_what_they_have(tmp_path: Path, plt: Any) -> None:
    old = training_plot(load_model(OLD_MODEL))
    assert old.seconds == {} and old.history
    assert len(old.paint(plt).axes) == 1
    folder = KNN(n_neighbors=3).fit(DATA.X, DATA.Y).save(tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    del config["seconds"]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(NothingToDrawError, match="neither the losses nor the seconds .* older"):
        training_plot(load_model(folder))


def test_losses_over_several_powers_of_ten_get_a_logarithmic_axis(plt: Any) -> None:
    steep = TrainingPlot("t", "turn", "J", (1000.0, 10.0, 1.0), {})
    flat = TrainingPlot("t", "turn", "J", (3.0, 2.0, 1.0), {})
    assert steep.paint(plt).axes[0].get_yscale() == "log"
    axis = flat.paint(plt).axes[0]
    assert axis.get_yscale() == "linear" and axis.get_ylim()[0] == 0


# ---------------------------------------------------------------- reliability


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


# ---------------------------------------------------------------- frequency


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


# ---------------------------------------------------------------- files


def test_files_are_of_their_kind_and_the_same_every_time(tmp_path: Path) -> None:
    plot: Plot = TrainingPlot("t", "epoch", "loss", (2.0, 1.0), {"walks": 1.0})
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "PNG": b"\x89PNG"}
    for kind, start in starts.items():
        first, second = (save(plot, tmp_path / name / f"p.{kind}") for name in ("a", "b"))
        assert first.read_bytes().startswith(start), kind
        assert first.read_bytes() == second.read_bytes(), kind
    assert "epoch" in (tmp_path / "a" / "p.svg").read_text("utf-8")
    with pytest.raises(ParameterError, match="written as .png, .svg or .pdf, got 'p.gif'"):
        save(plot, tmp_path / "p.gif")
    assert not (tmp_path / "p.gif").exists()


def test_without_matplotlib_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"install with: pip install 'dxml\[plot\]'\.$"):
        save(TrainingPlot("t", "epoch", "loss", (2.0, 1.0), {}), tmp_path / "p.png")
