"""The figures of the page, from summaries alone; PNG to look at, SVG to print."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dxml.bench._scoring import KS
from dxml.bench._summary import Row
from dxml.bench._tables import find, name_of, title_of
from dxml.metrics._bands import BANDS
from dxml.plots._style import (
    COLOURS,
    HATCHES,
    MARKERS,
    bars,
    heading,
    log_scale,
    panels,
    pyplot,
    write,
)

__all__ = ["Figure", "draw", "figures"]

STUDIES = {
    "n_partitions": "cells m",
    "n_probe": "cells searched n_probe",
    "n_neighbors": "neighbours k",
    "dim": "size ℓ of a label vector",
    "walk_length": "labels in a walk",
    "window": "skip-gram window",
    "init_scale": "spread of the first layer's outputs at the start",
    "epochs": "epochs of the encoder",
    "batch_size": "points a step of the encoder",
    "dropout": "share of the hidden units dropped",
    "spectrum": "power of the label vectors' singular values",
}
"""Studies of a number, and what the axis is called."""
TIMED = ("n_negatives", "n_trees")
"""Studies of what more training time buys."""
WHISKERS = "Whiskers are 95 % intervals of the mean, where several splits are stored."


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
            rows,
            "activation",
            f"ReLU against linear: P@k of DXML with and without the ReLU. {WHISKERS}",
        ),
        *_two_ways(
            rows,
            "label_vectors",
            f"DeepWalk against random label vectors: P@k of DXML. {WHISKERS}",
        ),
        *_time_curves(rows),
        *_tradeoffs(rows),
        *_band_bars(rows),
        *_sweeps(rows),
    ]


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write every figure as PNG and SVG; returns the files."""
    written = []
    with pyplot(" (or leave them out: --no-plots)") as plt:
        folder.mkdir(parents=True, exist_ok=True)
        for figure in figures(rows):
            canvas = figure.paint(plt)
            written += [write(canvas, folder / f"{figure.name}.{kind}") for kind in ("png", "svg")]
            plt.close(canvas)
    return written


def _title(dataset: str) -> str:
    kind, generated, _ = dataset.partition(":")
    return f"{kind} data" if generated and kind != "twin" else title_of(dataset)


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in text.lower()).strip("-")


def _two_ways(rows: Sequence[Row], study: str, caption: str) -> list[Figure]:
    mine = [row for row in rows if row.study == study and row.measured]
    datasets = list(dict.fromkeys(row.dataset for row in mine))
    if not mine:
        return []

    def paint(plt: Any) -> Any:
        canvas, axes = panels(plt, len(datasets))
        for axis, dataset in zip(axes, datasets, strict=True):
            series = {
                str(row.parameters.get(study, "default")): [
                    (row.mean(f"P@{k}") or 0.0, row.interval(f"P@{k}") or 0.0) for k in KS
                ]
                for row in mine
                if row.dataset == dataset
            }
            bars(axis, [f"P@{k}" for k in KS], series)
            axis.set_title(_title(dataset))
            axis.set_ylabel("precision (%)")
        axes[0].legend(title=study, loc="upper right")
        heading(canvas, caption.partition(":")[0])
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
        canvas, axes = panels(plt, len(datasets), margin=1.5)
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
            log_scale(axis)
            axis.set_xlabel("training time (s)")
            axis.set_ylabel("P@1 and P@5 (%)")
            axis.set_title(_title(dataset))
        handles, names = axes[0].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside right center")
        heading(canvas, "What more training time buys on two cores")
        return canvas

    caption = "Accuracy against training time on the same cores, as each method is given more."
    peers = [row for row in mine if row.method.startswith("peer:")]
    if any("save" not in row.stages for row in peers):
        caption += " Seconds of other libraries have parsing and saving in them, ours do not."
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
        "Accuracy against training time: P@1 of each method; up and to the left is better. "
        "Machines and threads differ, as in the tables above.",
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
    canvas, axes = panels(plt, len(datasets), height=3.6, margin=2.0)
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
        log_scale(axis)
        axis.set_xlabel(unit)
        axis.set_ylabel("P@1 (%)")
        axis.set_title(_title(dataset))
    heading(canvas, f"Accuracy against {unit.partition(' (')[0]}")
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
        canvas, axes = panels(plt, len(datasets), width=4.2, height=1.2 + 0.42 * tallest)
        for axis, dataset in zip(axes, datasets, strict=True):
            _band_panel(axis, [row for row in find(rows, dataset) if row.measured])
            axis.set_title(_title(dataset))
        handles, names = axes[0].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside lower center", ncols=3, title="labels")
        heading(canvas, "Labels found, by how frequent they are")
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
    tried = {s: [row for row in rows if row.study == s and row.measured] for s in STUDIES}
    present = [s for s in STUDIES if len({row.parameters.get(s) for row in tried[s]}) > 1]
    if not present:
        return []

    def paint(plt: Any) -> Any:
        mine = [row for row in rows if row.study in present and row.measured]
        datasets = list(dict.fromkeys(row.dataset for row in mine))
        canvas, axes = panels(plt, len(present))
        for axis, study in zip(axes, present, strict=True):
            for i, dataset in enumerate(datasets):
                _curve(
                    axis, [r for r in mine if (r.study, r.dataset) == (study, dataset)], study, i
                )
            axis.set_xlabel(STUDIES[study])
            axis.set_ylabel("P@1 on held-out points (%)")
            axis.set_title(study)
        axes[0].legend(title="data", loc="best")
        heading(canvas, "Effect of one parameter of DXML, the others fixed")
        return canvas

    caption = (
        f"Effect of one parameter at a time, the others fixed. {WHISKERS} Hollow points have fewer "
        "splits than others of their panel, and do not compare with them."
    )
    return [Figure("sweeps", caption, paint)]


def _curve(axis: Any, rows: Sequence[Row], study: str, i: int) -> None:
    points = sorted(
        (row.parameters[study], row.mean("P@1"), row.interval("P@1") or 0.0)
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
    fewer = [row for row in rows if row.runs < max(each.runs for each in rows)]
    axis.plot(
        [row.parameters[study] for row in fewer],
        [row.mean("P@1") for row in fewer],
        linestyle="",
        marker=MARKERS[i % len(MARKERS)],
        color=COLOURS[i % len(COLOURS)],
        markerfacecolor="white",
        zorder=3,
    )
    if min(values) > 0 and max(values) / min(values) >= 8:
        axis.set_xscale("log", base=2)
        axis.set_xticks(values, [f"{value:g}" for value in values])
        axis.minorticks_off()
    else:
        axis.set_xticks(values)
