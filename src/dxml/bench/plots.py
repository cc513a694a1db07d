"""The figures of the page, from summaries alone; PNG to look at, SVG to print.

Colours are those of Okabe and Ito, which the colour-blind can tell apart; methods also differ by
marker, and bars by hatching.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from dxml.bench.published import TITLES
from dxml.bench.scoring import BANDS, KS
from dxml.bench.summary import Row
from dxml.bench.tables import find, name_of
from dxml.exceptions import DxmlError

__all__ = ["Figure", "MissingExtraError", "draw", "figures"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKERS = "osD^vPX*<>hd"
HATCHES = ("", "//", "..", "xx", "\\\\")
STUDIES = {
    "n_partitions": "cells m",
    "n_probe": "cells searched n_probe",
    "n_neighbors": "neighbours k",
    "dim": "size ℓ of a label vector",
    "walk_length": "labels in a walk",
    "window": "skip-gram window",
    "init_scale": "spread of the first layer's outputs at the start",
}
"""Studies of a number, and what the axis is called."""
TIMED = ("n_negatives", "n_trees")
"""Studies of what more training time buys."""


class MissingExtraError(DxmlError, ImportError):
    """An optional dependency is not installed."""


@dataclass(frozen=True)
class Figure:
    """A figure that the rows have the data for.

    Attributes
    ----------
    name : str
        Of the files, without suffix.
    caption : str
        What to see in it, for the page.
    paint : callable
        Draws it with matplotlib's pyplot and returns the figure.
    """

    name: str
    caption: str
    paint: Callable[[Any], Any]


def figures(rows: Sequence[Row]) -> list[Figure]:
    """Every figure that there is data for, in the page's order."""
    return [
        *_two_ways(
            rows, "activation", "ReLU against linear: P@k of DXML with and without the ReLU."
        ),
        *_two_ways(rows, "label_vectors", "DeepWalk against random label vectors: P@k of DXML."),
        *_time_curves(rows),
        *_tradeoffs(rows),
        *_band_bars(rows),
        *_sweeps(rows),
    ]


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write every figure as PNG and SVG; returns the files."""
    try:
        import_module("matplotlib").use("Agg")
    except ImportError as error:
        raise MissingExtraError(
            "figures need matplotlib: install with: pip install 'dxml[plot]' "
            "(or leave them out: --no-plots)."
        ) from error
    plt: Any = import_module("matplotlib.pyplot")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    style = {"font.size": 10, "axes.grid": True, "grid.alpha": 0.3, "svg.hashsalt": "dxml"}
    with plt.rc_context(style):
        for figure in figures(rows):
            canvas = figure.paint(plt)
            for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
                path = folder / f"{figure.name}.{suffix}"
                canvas.savefig(path, dpi=120, bbox_inches="tight", metadata=metadata)
                written.append(path)
            plt.close(canvas)
    return written


def _title(dataset: str) -> str:
    kind, generated, rest = dataset.partition(":")
    if generated:
        return f"twin of {rest.partition(',')[0]}" if kind == "twin" else f"{kind} data"
    return TITLES.get(dataset, dataset)


def _panels(
    plt: Any, count: int, width: float = 4.0, height: float = 3.4, margin: float = 0.0
) -> tuple[Any, list[Any]]:
    """A figure of `count` panels in up to three columns, `margin` inches wider than they need."""
    columns = 2 if count == 4 else min(count, 3)
    lines = -(-count // columns)
    size = (width * columns + margin, height * lines)
    canvas, axes = plt.subplots(lines, columns, figsize=size, squeeze=False, layout="constrained")
    flat = list(axes.ravel())
    for unused in flat[count:]:
        unused.set_visible(False)
    return canvas, flat[:count]


def _heading(canvas: Any, text: str) -> None:
    canvas.suptitle(text, x=0.01, ha="left", fontweight="bold")


def _log_scale(axis: Any) -> None:
    """A logarithmic axis with plain numbers at 1, 2 and 5 times the powers of ten."""
    ticker: Any = import_module("matplotlib.ticker")
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter(ticker.NullFormatter())


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in text.lower()).strip("-")


def _bars(axis: Any, groups: Sequence[str], series: dict[str, list[tuple[float, float]]]) -> None:
    """Grouped bars: name → (height, deviation) for each group."""
    width = 0.8 / max(len(series), 1)
    for i, (name, values) in enumerate(series.items()):
        places = [g + (i - (len(series) - 1) / 2) * width for g in range(len(groups))]
        heights, errors = [v[0] for v in values], [v[1] for v in values]
        axis.bar(
            places,
            heights,
            width * 0.92,
            yerr=errors if any(errors) else None,
            label=name,
            color=COLOURS[i % len(COLOURS)],
            hatch=HATCHES[i % len(HATCHES)],
            edgecolor="white",
            error_kw={"elinewidth": 1, "capsize": 2},
        )
    axis.set_xticks(range(len(groups)), groups)
    axis.set_ylim(bottom=0)
    axis.grid(axis="x", visible=False)


def _two_ways(rows: Sequence[Row], study: str, caption: str) -> list[Figure]:
    mine = [row for row in rows if row.study == study and row.measured]
    datasets = list(dict.fromkeys(row.dataset for row in mine))
    if not mine:
        return []

    def paint(plt: Any) -> Any:
        canvas, axes = _panels(plt, len(datasets))
        for axis, dataset in zip(axes, datasets, strict=True):
            series = {
                str(row.parameters.get(study, "default")): [
                    (row.mean(f"P@{k}") or 0.0, row.deviation(f"P@{k}") or 0.0) for k in KS
                ]
                for row in mine
                if row.dataset == dataset
            }
            _bars(axis, [f"P@{k}" for k in KS], series)
            axis.set_title(_title(dataset))
            axis.set_ylabel("precision (%)")
        axes[0].legend(title=study, loc="upper right")
        _heading(canvas, caption.partition(":")[0])
        return canvas

    return [Figure(f"study-{_slug(study)}", caption, paint)]


def _time_curves(rows: Sequence[Row]) -> list[Figure]:
    """What more training time buys: rows of one label that a study varies, on the test part."""
    mine = [row for row in rows if row.measured and row.part == "test" and row.study in TIMED]
    if not mine:
        return []

    def paint(plt: Any) -> Any:
        datasets = list(dict.fromkeys(row.dataset for row in mine))
        labels = list(dict.fromkeys(row.label for row in mine))
        canvas, axes = _panels(plt, len(datasets), margin=1.5)
        for axis, dataset in zip(axes, datasets, strict=True):
            for i, label in enumerate(labels):
                points = sorted(
                    (row.second("train") or 0.0, row.mean("P@1"), row.mean("P@5"))
                    for row in mine
                    if (row.dataset, row.label) == (dataset, label)
                )
                for column, style, measure in ((1, "-", "P@1"), (2, "--", "P@5")):
                    axis.plot(
                        [point[0] for point in points],
                        [point[column] for point in points],
                        style,
                        color=COLOURS[i % len(COLOURS)],
                        marker=MARKERS[i % len(MARKERS)],
                        label=f"{label}, {measure}",
                    )
            _log_scale(axis)
            axis.set_xlabel("training time (s)")
            axis.set_ylabel("P@1 and P@5 (%)")
            axis.set_title(_title(dataset))
        handles, names = axes[0].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside right center")
        _heading(canvas, "What more training time buys on two cores")
        return canvas

    caption = "Accuracy against training time on the same cores, as each method is given more."
    return [Figure("time-curves", caption, paint)]


def _tradeoffs(rows: Sequence[Row]) -> list[Figure]:
    datasets = [
        name
        for name in dict.fromkeys(row.dataset for row in rows)
        if any(row.measured for row in find(rows, name))
    ]
    if not datasets:
        return []
    seconds = Figure(
        "accuracy-time",
        "Accuracy against training time: P@1 of each method; up and to the left is better.",
        lambda plt: _scatter(plt, rows, datasets, "training time (s)", lambda r: r.second("train")),
    )
    memory = Figure(
        "accuracy-memory",
        "Accuracy against memory: P@1 and the most memory the process held, data included.",
        lambda plt: _scatter(
            plt, rows, datasets, "peak memory (MB)", lambda r: (r.number("peak_bytes") or 0.0) / 1e6
        ),
    )
    return [seconds, memory]


def _scatter(
    plt: Any,
    rows: Sequence[Row],
    datasets: Sequence[str],
    unit: str,
    place: Callable[[Row], float | None],
) -> Any:
    names = list(dict.fromkeys(name_of(r) for d in datasets for r in find(rows, d) if r.measured))
    canvas, axes = _panels(plt, len(datasets), height=3.6, margin=2.0)
    handles: dict[str, Any] = {}
    for axis, dataset in zip(axes, datasets, strict=True):
        for row in find(rows, dataset):
            if not row.measured:
                continue
            name = name_of(row)
            i = names.index(name)
            at, mean, deviation = [place(row)], [row.mean("P@1")], row.deviation("P@1")
            colour = COLOURS[i % len(COLOURS)]
            if deviation:
                axis.errorbar(at, mean, yerr=[deviation], color=colour, elinewidth=1, capsize=2)
            handles[name] = axis.plot(
                at,
                mean,
                MARKERS[i % len(MARKERS)],
                color=colour,
                markersize=9,
                markeredgecolor="black",
                markeredgewidth=0.6,
            )[0]
        _log_scale(axis)
        axis.set_xlabel(unit)
        axis.set_ylabel("P@1 (%)")
        axis.set_title(_title(dataset))
    _heading(canvas, f"Accuracy against {unit.partition(' (')[0]}")
    canvas.legend(handles.values(), handles, loc="outside right center", title="method")
    return canvas


def _band_bars(rows: Sequence[Row]) -> list[Figure]:
    datasets = [
        name
        for name in dict.fromkeys(row.dataset for row in rows)
        if any(row.measured and row.bands for row in find(rows, name))
    ]
    if not datasets:
        return []

    def paint(plt: Any) -> Any:
        tallest = max(len(find(rows, name)) for name in datasets)
        canvas, axes = _panels(plt, len(datasets), width=4.2, height=1.2 + 0.42 * tallest)
        for axis, dataset in zip(axes, datasets, strict=True):
            _band_panel(axis, [row for row in find(rows, dataset) if row.measured])
            axis.set_title(_title(dataset))
        handles, names = axes[0].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside lower center", ncols=3, title="labels")
        _heading(canvas, "Labels found, by how frequent they are")
        return canvas

    caption = (
        "Scores by label frequency: head, torso and tail labels each make up a third of all label "
        "occurrences in the training data; the bar is the share found in the first five places."
    )
    return [Figure("label-frequency", caption, paint)]


def _band_panel(axis: Any, rows: Sequence[Row]) -> None:
    height = 0.8 / len(BANDS)
    for i, band in enumerate(BANDS):
        shares = [(row.bands[band].get("found@5") or {"mean": 0.0})["mean"] for row in rows]
        axis.barh(
            [place + (i - 1) * height for place in range(len(rows))],
            shares,
            height * 0.92,
            label=band,
            color=COLOURS[i],
            hatch=HATCHES[i],
            edgecolor="white",
        )
    axis.set_yticks(range(len(rows)), [name_of(row) for row in rows])
    axis.invert_yaxis()
    axis.set_xlabel("found in the first 5 places (%)")
    axis.grid(axis="y", visible=False)


def _sweeps(rows: Sequence[Row]) -> list[Figure]:
    present = [s for s in STUDIES if any(row.study == s and row.measured for row in rows)]
    if not present:
        return []

    def paint(plt: Any) -> Any:
        mine = [row for row in rows if row.study in present and row.measured]
        datasets = list(dict.fromkeys(row.dataset for row in mine))
        canvas, axes = _panels(plt, len(present))
        for axis, study in zip(axes, present, strict=True):
            for i, dataset in enumerate(datasets):
                _curve(
                    axis, [r for r in mine if (r.study, r.dataset) == (study, dataset)], study, i
                )
            axis.set_xlabel(STUDIES[study])
            axis.set_ylabel("P@1 on held-out points (%)")
            axis.set_title(study)
        axes[0].legend(title="data", loc="best")
        _heading(canvas, "Effect of one parameter of DXML, the others fixed")
        return canvas

    caption = "Effect of one parameter at a time, the others fixed."
    return [Figure("sweeps", caption, paint)]


def _curve(axis: Any, rows: Sequence[Row], study: str, i: int) -> None:
    points = sorted(
        (row.parameters[study], row.mean("P@1"), row.deviation("P@1") or 0.0)
        for row in rows
        if isinstance(row.parameters.get(study), int | float)
    )
    if not points:
        return
    values, means, errors = zip(*points, strict=True)
    axis.errorbar(
        values,
        means,
        yerr=errors if any(errors) else None,
        label=_title(rows[0].dataset),
        color=COLOURS[i % len(COLOURS)],
        marker=MARKERS[i % len(MARKERS)],
        capsize=2,
    )
    if min(values) > 0 and max(values) / min(values) >= 8:
        axis.set_xscale("log", base=2)
        axis.set_xticks(values, [f"{value:g}" for value in values])
        axis.minorticks_off()
    else:
        axis.set_xticks(values)
