"""The page: stored summaries and published numbers → Markdown and figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dxml.bench import _markdown as md
from dxml.bench import _plots as plots
from dxml.bench import _tables as tables
from dxml.bench._board import write_board
from dxml.bench._published import LARGE, SMALL, Published, load_published
from dxml.bench._quotes import fill_in
from dxml.bench._scoring import KS
from dxml.bench._summary import Row, load_rows, load_summaries

__all__ = ["render", "write_report"]

PAGE = "benchmarks.md"
FIGURES = "benchmarks"
"""Folder of the figures, beside the page."""
NOTES = "notes.md"
"""Words for the top of the page, beside the summaries."""
_REPOSITORY = (*SMALL, "eurlex-4k")
_TWINS = (
    "The real files could not be obtained. A *twin* is generated data of the same shape: compare "
    "methods with each other on it, never a number with the paper's. How difficult it is, is not "
    "settled, and even the order of methods need not be that on the real data: "
    "[how twins were made](twins.md)."
)


def write_report(
    results: Path, output: Path, *, experiment: str | None = None, with_plots: bool = True
) -> Path:
    """Write the page, its figures and the board, from the summaries in `results` alone.

    Parameters
    ----------
    results : Path
        Folder of ``NAME.json`` files, and perhaps of ``notes.md``.
    output : Path
        Folder for ``benchmarks.md`` and the figures in ``benchmarks/``.
    experiment : str, optional
        Only this one's summary.
    with_plots : bool
        False leaves the figures as they are; the page is the same.
    """
    summaries = load_summaries(results, experiment)
    output.mkdir(parents=True, exist_ok=True)
    if with_plots:
        plots.draw(load_rows(summaries), output / FIGURES)
    notes = results / NOTES
    text = render(summaries, notes.read_text("utf-8") if notes.is_file() else "")
    page = output / PAGE
    page.write_text(text, "utf-8")
    if experiment is None:
        write_board(summaries, output)
    return page


def render(summaries: list[dict[str, Any]], notes: str = "") -> str:
    """The page's text; the same for the same summaries."""
    rows, published = load_rows(summaries), load_published()
    machines = _machines(summaries)
    data = {name: values for s in summaries for name, values in s["data"].items()}
    pictures = {figure.name: figure for figure in plots.figures(rows)}
    sections = [
        "# Benchmarks",
        "<!-- Made by `dxml bench report` from benchmarks/results: do not edit by hand. -->",
        _how_to_read(summaries, machines),
        fill_in(notes.strip(), rows, published),
        _headline(rows, published),
        *_paper_tables(rows, data, published, machines),
        *_ablation(rows, published, pictures),
        *_beyond(rows, published, machines, pictures),
        *_end(rows, published, summaries),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _machines(summaries: list[dict[str, Any]]) -> dict[str, str]:
    """Machine → letter."""
    names = sorted({name for summary in summaries for name in summary["machines"]})
    return {name: chr(ord("A") + i) for i, name in enumerate(names)}


def _how_to_read(summaries: list[dict[str, Any]], machines: dict[str, str]) -> str:
    days = sorted({day for summary in summaries for day in summary["dates"]})
    period = f" Measured {' to '.join(dict.fromkeys((days[0], days[-1])))}." if days else ""
    lines = [
        "Scores are percentages, the higher the better; `±` is the standard deviation over splits. "
        "*Difference* is ours less theirs. Cells without a number say why below their table. "
        "Settings are the methods' defaults, unless the name of a row says others. *Where* is the "
        "machine, what computed, and how many threads it had; two letters are two machines, each "
        "with some of the splits. Compare seconds only where all of it is the same. What the "
        f"defaults were chosen on, and how all is measured: `benchmarks/README.md`.{period}"
    ]
    lines += [f"- machine {letter}: {name}" for name, letter in machines.items()]
    return "\n".join([lines[0], "", *lines[1:]]) if machines else lines[0]


def _headline(rows: Sequence[Row], published: Published) -> str:
    """The paper's method, as shipped and varied, next to what the paper claims."""
    lines = []
    for dataset in SMALL:
        claimed = published.values("paper", dataset, "dxml", "P")
        if claimed is None:
            continue
        title = tables.title_of(dataset)
        lines.append([title, "the paper's DXML", *map(md.number, claimed), md.MISSING])
        for row in [*tables.find(rows, dataset, "dxml"), *_variants(rows, dataset)]:
            if row.measured and row.part == "test":
                cells = [md.with_deviation(row.mean(f"P@{k}"), row.deviation(f"P@{k}")) for k in KS]
                given = ", ".join(f"{k}={v}" for k, v in row.parameters.items()) or "defaults"
                difference = md.change(row.mean("P@1"), claimed[0])
                few = tables.fewer_splits(row, rows)
                lines.append([title, f"measured, {given}{few}", *cells, difference])
    header = ["data", "DXML", *(f"P@{k}" for k in KS), "difference at 1"]
    unique = list(dict.fromkeys(map(tuple, lines)))
    return "## What the paper's method reaches, next to what the paper claims\n\n" + md.table(
        header, unique, left=2
    )


def _variants(rows: Sequence[Row], dataset: str) -> list[Row]:
    """The two ablations' other halves."""
    wanted = {("activation", "linear"), ("label_vectors", "random")}
    return [
        row
        for row in rows
        if row.dataset == dataset and (row.study, row.parameters.get(row.study)) in wanted
    ]


def _paper_tables(
    rows: Sequence[Row], data: dict[str, Any], published: Published, machines: dict[str, str]
) -> list[str]:
    def scores(number: int, title: str, datasets: Sequence[str], measure: str) -> str:
        body = tables.paper_scores(rows, datasets, measure, published)
        twins = f"{_TWINS}\n\n" if "; ours: its twin" in body else ""
        return f"## Table {number} of the paper: {title}\n\n{twins}{body}"

    return [
        "## Table 1 of the paper: the data\n\n" + tables.statistics(data, published),
        scores(2, "P@k, small data", SMALL, "P"),
        scores(3, "P@k, large data", LARGE, "P"),
        scores(4, "nDCG@k, small data", SMALL, "nDCG"),
        scores(5, "nDCG@k, large data", LARGE, "nDCG"),
        "## Table 6 of the paper: seconds\n\n"
        "Seconds to train, and to predict the whole test part. The paper trained DXML on a GPU of "
        "2017 and predicted on six cores; ours was trained on the device that is named and "
        "predicts on a CPU, unless (GPU) is beside the number. Where it was trained on a GPU, that "
        "is reckoned from 1,000 points, and in rows of before 2026-11-19 loading and compiling are "
        "in it. No ratio is given, as the machines differ.\n\n"
        + tables.paper_seconds(rows, published, machines),
    ]


def _picture(pictures: dict[str, plots.Figure], name: str) -> str:
    if name not in pictures:
        return ""
    caption = pictures[name].caption
    return f"![{caption}]({FIGURES}/{name}.png)\n\n*{caption}* ([SVG]({FIGURES}/{name}.svg))"


def _study(rows: Sequence[Row], pictures: dict[str, plots.Figure], study: str) -> str:
    if not any(row.study == study for row in rows):
        return "No run is stored yet: `dxml bench run ablation`."
    return "\n\n".join(
        filter(
            None,
            [tables.studies(rows, study), _picture(pictures, f"study-{study.replace('_', '-')}")],
        )
    )


def _ablation(
    rows: Sequence[Row], published: Published, pictures: dict[str, plots.Figure]
) -> list[str]:
    return [
        "## The paper's ablation: ReLU against linear\n\n"
        + " ".join(published.ablation["note"].split())
        + "\n\n"
        + _study(rows, pictures, "activation"),
        "## DeepWalk against random label vectors\n\n"
        "Look at *where* before comparing seconds: the rows were made on different devices.\n\n"
        + _study(rows, pictures, "label_vectors"),
    ]


def _beyond(
    rows: Sequence[Row],
    published: Published,
    machines: dict[str, str],
    pictures: dict[str, plots.Figure],
) -> list[str]:
    """What the paper lacks."""
    eurlex = [
        f"**{measure}@k**\n\n" + tables.against_repository(rows, "eurlex-4k", measure, published)
        for measure in ("P", "nDCG")
    ]
    sections = [
        *_joint(rows, machines, pictures),
        "## Eurlex-4K, which the paper leaves out\n\n" + "\n\n".join(eurlex),
        "## PSP@k: hits weighted by how rare the label is\n\n"
        + tables.propensity(rows, _REPOSITORY, published),
    ]
    ran = [
        d
        for d in dict.fromkeys(r.dataset for r in rows)
        if any(r.measured for r in tables.find(rows, d))
    ]
    if ran:
        sections += [
            "## Scores by label frequency\n\n" + _by_data(ran, lambda d: tables.bands(rows, d)),
            _picture(pictures, "label-frequency"),
            "## Time, memory and size\n\n"
            + _by_data(ran, lambda d: tables.costs(rows, d, machines)),
            _picture(pictures, "accuracy-time"),
            _picture(pictures, "accuracy-memory"),
        ]
        if any(row.method == "dxml" and row.measured and row.study is None for row in rows):
            sections.append(
                "## Where DXML's seconds go\n\n"
                "Machines, devices and threads are those of *Time, memory and size*.\n\n"
                + tables.stages(rows)
            )
    if found := tables.chosen(rows):
        sections.append("## What training chose by itself\n\nTimes over splits.\n\n" + found)
    held_out = dict.fromkeys(row.study for row in rows if row.part == "validation" and row.study)
    others = [study for study in held_out if study not in plots.STUDIES]
    swept = [study for study in plots.STUDIES if study in held_out] + others
    if swept:
        sections += [
            "## Effect of one parameter\n\nScored on points held out of the training part, but for "
            "rows whose *scored on* says test.\n\n"
            + "\n\n".join(f"**{study}**\n\n" + tables.studies(rows, study) for study in swept),
            _picture(pictures, "sweeps"),
        ]
    return sections


def _joint(
    rows: Sequence[Row], machines: dict[str, str], pictures: dict[str, plots.Figure]
) -> list[str]:
    """The joint method beside the others, and what time buys."""
    ran = [
        name
        for name in dict.fromkeys(row.dataset for row in rows)
        if any(row.measured for row in tables.find(rows, name, "joint"))
    ]
    if not ran:
        return []
    return [
        "## The joint method beside the others\n\n"
        "ECE@1 and ECE@5 are the expected calibration errors of the first and of the first five "
        "scores, in points, of the methods whose scores lie between 0 and 1; the lower the "
        "better.\n\n" + _by_data(ran, lambda name: tables.side_by_side(rows, name, machines)),
        _picture(pictures, "time-curves"),
    ]


def _by_data(datasets: Sequence[str], body: Any) -> str:
    return "\n\n".join(f"**{tables.title_of(name)}**\n\n{body(name)}" for name in datasets)


def _end(rows: Sequence[Row], published: Published, summaries: list[dict[str, Any]]) -> list[str]:
    failed = tables.failures(rows)
    sources = "\n".join(
        f"- **{source['title']}.** {' '.join(source['note'].split())}"
        for source in published.sources.values()
    )
    notes = "\n".join(f"- {note}" for note in published.notes)
    made = [
        f"- `{s['experiment']}`: {s['description']} Commit {', '.join(s['commits']) or md.MISSING}."
        for s in summaries
    ]
    return [
        f"## Runs that failed\n\n{failed}" if failed else "",
        f"## Sources of the published numbers\n\n{sources}\n{notes}",
        "## Experiments on this page\n\n" + ("\n".join(made) or "None is stored yet."),
    ]
