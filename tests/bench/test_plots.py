"""Figures of the benchmark page."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dxml.bench import _plots as plots
from dxml.bench._summary import Row
from dxml.plots._style import MissingExtraError

from .made_up import not_run, row, spread, study, summary, timed

FULL = summary(
    row("bibtex", "dxml", 60.0, chosen={"n_neighbors_": [10, 20, 10]}),
    row("bibtex", "peer:omikuji", 63.0, label="omikuji (Parabel)", runs=7),
    not_run("bibtex", "sleec", "MemoryError: too much"),
    not_run("bibtex", "leml"),
    row("eurlex-4k", "sleec", 80.0),
    study("activation", "relu", 60.0),
    study("activation", "linear", 61.0),
    study("label_vectors", "deepwalk", 60.0),
    study("label_vectors", "random", 62.5),
    *(study("n_probe", n, 50.0 + n, part="validation") for n in (1, 2, 16)),
)


def test_figures_have_titles_axes_and_legends() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    found = plots.figures([Row("e", values) for values in FULL["rows"]])
    names = [figure.name for figure in found]
    assert names == [
        "study-activation",
        "study-label-vectors",
        "accuracy-time",
        "accuracy-memory",
        "label-frequency",
        "sweeps",
    ]
    for figure in found:
        canvas = figure.paint(plt)
        assert canvas.get_suptitle()
        shown = [axis for axis in canvas.axes if axis.get_visible()]
        assert canvas.legends or any(axis.get_legend() for axis in shown), figure.name
        for axis in shown:
            assert axis.get_title(), figure.name
            assert "%" in axis.get_ylabel() + axis.get_xlabel(), figure.name
        plt.close(canvas)
    assert plots.figures([]) == []


def test_without_matplotlib_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"install with: pip install 'dxml\[plot\]'"):
        plots.draw([], tmp_path)


def test_curves_of_time_are_drawn_where_there_are_studies_of_it(tmp_path: Path) -> None:
    rows = [timed("joint", "joint (CPU)", "n_negatives", n, 70.0 + n) for n in (1, 2, 4)]
    rows += [timed("peer:omikuji", "omikuji", "n_trees", n, 60.0 + n) for n in (1, 2)]
    drawn = {each.name: each for each in plots.figures([Row("e", values) for values in rows])}
    assert "parsing and saving" in drawn["time-curves"].caption, "omikuji's have no stage save"
    apart = [{**values, "stages": {"save": spread(1.0)}} for values in rows]
    drawn = {each.name: each for each in plots.figures([Row("e", values) for values in apart])}
    assert "saving" not in drawn["time-curves"].caption
    written = plots.draw([Row("e", values) for values in rows], tmp_path)
    svg = (tmp_path / "time-curves.svg").read_text("utf-8")
    assert tmp_path / "time-curves.png" in written and "training time" in svg


def test_a_study_is_drawn_from_two_values_on_and_fewer_splits_are_hollow() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [study("window", n, 50.0 + n, part="validation") for n in (1, 2)]
    rows += [study("n_probe", 4, 50.0, part="validation")]
    rows[1] |= {"runs": 1}
    rows[0] |= {"runs": 4}
    (sweeps,) = [
        figure
        for figure in plots.figures([Row("e", values) for values in rows])
        if figure.name == "sweeps"
    ]
    canvas = sweeps.paint(plt)
    (axis,) = [axis for axis in canvas.axes if axis.get_visible()]
    assert axis.get_title() == "window"
    hollow = [line for line in axis.lines if line.get_markerfacecolor() == "white"]
    assert [list(line.get_xdata()) for line in hollow] == [[2]]
    plt.close(canvas)
