"""Training curves, by the numbers that are drawn and not by their pixels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dxml import DXML, Joint, load_model, make_planted
from dxml._core.storage import read_config, sealed
from dxml.baselines.knn import KNN
from dxml.plots import NothingToDrawError, TrainingPlot, training_plot

from .words import check_numbers_inside, check_words

OLD_MODEL = Path(__file__).parents[1] / "models" / "format-1-dxml"
DATA = make_planted(200, 80, 8, random_state=0)
DXML_SMALL = {"epochs": 4, "dim": 8, "hidden": 16, "n_partitions": 1, "n_neighbors": 5}


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
    left_out = ("seconds", "sha256")
    config = {name: value for name, value in read_config(folder).items() if name not in left_out}
    (folder / "config.json").write_bytes(sealed(config))
    with pytest.raises(NothingToDrawError, match="neither the losses nor the seconds .* older"):
        training_plot(load_model(folder))


def test_losses_over_several_powers_of_ten_get_a_logarithmic_axis(plt: Any) -> None:
    steep = TrainingPlot("t", "turn", "J", (1000.0, 10.0, 1.0), {})
    flat = TrainingPlot("t", "turn", "J", (3.0, 2.0, 1.0), {})
    assert steep.paint(plt).axes[0].get_yscale() == "log"
    axis = flat.paint(plt).axes[0]
    assert axis.get_yscale() == "linear" and axis.get_ylim()[0] == 0


@pytest.mark.parametrize("history", [(), (3.0, 2.0)])
def test_the_number_of_the_longest_bar_stays_in_the_frame(
    plt: Any, history: tuple[float, ...]
) -> None:
    for seconds in ({"a": 3.2}, {"encoder (validation), of many texts": 123456.7, "b": 3.0}):
        canvas = TrainingPlot("t", "epoch", "loss", history, seconds).paint(plt)
        check_numbers_inside(canvas, canvas.axes[-1])
