"""The page from planted summaries: cells, differences, reasons, figures."""

from __future__ import annotations

import copy
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from dxml.bench import plots
from dxml.bench.published import load_published
from dxml.bench.report import render, write_report
from dxml.bench.summary import Row
from dxml.plots.style import MissingExtraError

MACHINE = "Some CPU, 2 cores, 8 GiB"


def spread(mean: float, std: float | None = None) -> dict[str, float | None]:
    return {"mean": mean, "std": std}


def row(dataset: str, method: str, p1: float, **changes: Any) -> dict[str, Any]:
    scores = {}
    for measure in ("P", "nDCG", "PSP"):
        for k, share in ((1, 1.0), (3, 0.6), (5, 0.4)):
            scores[f"{measure}@{k}"] = spread(p1 * share, 0.5)
    band = {"labels": spread(10), "occurrences": spread(99), "found@5": spread(p1 / 2)}
    return {
        "dataset": dataset,
        "part": "test",
        "label": method,
        "method": method,
        "parameters": {},
        "study": None,
        "planned": 10,
        "runs": 10,
        "splits": list(range(1, 11)),
        "seeds": [0],
        "failed": [],
        "scores": scores,
        "bands": {"head": band, "torso": band, "tail": band},
        "seconds": {"train": spread(35.3), "predict": spread(0.21)},
        "stages": {"graph": spread(1.5), "encoder": spread(30.0)},
        "ms_per_point": spread(0.125),
        "peak_bytes": spread(2.5e8),
        "model_bytes": spread(1.5e6),
        "chosen": {},
        "machines": [MACHINE],
        "threads": [2],
        "devices": ["cpu"],
        **changes,
    }


def not_run(dataset: str, method: str, error: str | None = None, **changes: Any) -> dict[str, Any]:
    failed = [{"split": 1, "seed": 0, "error": error}] if error else []
    empty = {"scores": {}, "bands": {}, "seconds": {}, "stages": {}, "runs": 0, "failed": failed}
    nothing = dict.fromkeys(("ms_per_point", "peak_bytes", "model_bytes"))
    return row(dataset, method, 0.0, **empty, **nothing, machines=[], devices=[], **changes)


def study(
    name: str, value: Any, p1: float, dataset: str = "bibtex", **changes: Any
) -> dict[str, Any]:
    label = f"dxml ({name}={value})"
    return row(dataset, "dxml", p1, label=label, study=name, parameters={name: value}, **changes)


def summary(*rows: dict[str, Any]) -> dict[str, Any]:
    data = {"train": 4880, "test": 2515, "features": 1836, "labels": 159}
    data |= {"points_per_label": 111.7, "labels_per_point": 2.4}
    return {
        "format": 1,
        "experiment": "paper-small",
        "description": "An example.",
        "data": {"bibtex": data},
        "rows": list(rows),
        "machines": [MACHINE],
        "versions": {},
        "commits": ["abc"],
        "dates": ["2026-01-02"],
    }


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


def section(page: str, heading: str) -> str:
    start = page.index(heading)
    end = page.find("\n## ", start + 1)
    return page[start : end if end > 0 else None]


def test_ours_stands_beside_the_papers_with_the_difference() -> None:
    page = render([FULL])
    table = section(page, "## Table 2 of the paper")
    assert (
        "| DXML | 66.03 | 60.00 ± 0.50 | −6.03 | 40.21 | 36.00 ± 0.50 | −4.21 | "
        "27.51 | 24.00 ± 0.50 | −3.51 |" in table
    )
    assert "| omikuji (Parabel) | – | 63.00 ± 0.50 | – |" in table
    assert "| DXML | 66.03 | 60.00 ± 0.50 | −6.03 | 60.71 |" in section(page, "## Table 4")
    assert "| SLEEC | 79.26 | 80.00 ± 0.50 | +0.74 |" in section(page, "## Eurlex-4K")
    assert "| SLEEC | 34.25 | 80.00 ± 0.50 | +45.75 |" in section(page, "## PSP@k")
    assert "| Bibtex | measured, label_vectors=random | 62.50 ± 0.50 |" in page
    assert "| Bibtex | measured, activation=linear | 61.00 ± 0.50 |" in page


def test_cells_that_could_not_be_measured_say_why() -> None:
    page = render([FULL])
    table = section(page, "## Table 2 of the paper").partition("**Delicious**")[0]
    marks = dict(re.findall(r"- \[(\w)\] (.*)", table))
    sleec = re.search(r"\| SLEEC \| 65.08 \| – \[(\w)\] \| – \|", table)
    leml = re.search(r"\| LEML \| 62.54 \| – \[(\w)\]", table)
    wsabie = re.search(r"\| WSABIE \| 54.78 \| – \[(\w)\]", table)
    assert sleec and marks[sleec[1]] == "MemoryError: too much"
    assert leml and marks[leml[1]] == "planned, not run yet"
    assert wsabie and marks[wsabie[1]] == "no run of this method on this data is stored"
    large = section(page, "## Table 3 of the paper")
    assert large.count("the files could not be obtained") == 3
    assert "| Bibtex | 1 | SLEEC | MemoryError: too much |" in section(page, "## Runs that failed")


def test_every_cell_of_the_paper_is_on_the_page() -> None:
    page = render([FULL])
    for (source, dataset, _), measures in load_published().scores.items():
        numbers = {"P": ("2", "3"), "nDCG": ("4", "5")}
        if source == "paper":
            for measure, tables in numbers.items():
                small = dataset in ("bibtex", "delicious", "mediamill")
                text = section(page, f"## Table {tables[0 if small else 1]} of the paper")
                assert all(f" {value:.2f} |" in text for value in measures[measure])


def test_times_data_and_costs() -> None:
    page = render([FULL])
    times = section(page, "## Table 6")
    assert "| Bibtex | DXML | 353.0 | 35.30 | 2.1 | 0.21 | A, cpu, 2 threads |" in times
    data = section(page, "## Table 1")
    assert "| Bibtex, ours | 4,880 | 2,515 | 1,836 | 159 | 111.70 | 2.40 |" in data
    assert "| difference | +0 | +0 | +0 | +0 | −0.01 | +0.00 |" in data
    costs = section(page, "## Time, memory")
    assert (
        "| DXML | 60.00 ± 0.50 | 35.30 | 0.125 | 250.0 MB | 1.5 MB | 10 | A, cpu, 2 threads |"
        in costs
    )
    assert "| 7 of 10 | A, cpu, 2 threads |" in costs
    assert "| Bibtex | DXML | 1.50 | 30.00 |" in section(page, "## Where DXML's seconds go")
    chosen = section(page, "## What training chose")
    assert "| Bibtex | DXML | `n_neighbors_` | 10 (2×), 20 (1×) |" in chosen
    bands = section(page, "## Scores by label frequency")
    assert "head, 10 labels" in bands and "| DXML | 30.00 | 30.00 | 30.00 |" in bands
    assert f"- machine A: {MACHINE}" in page and "Measured 2026-01-02." in page


def test_studies() -> None:
    page = render([FULL])
    assert "| Bibtex | test | `linear` | 61.00 ± 0.50 |" in section(page, "## The paper's ablation")
    assert "prints no numbers" in section(page, "## The paper's ablation")
    assert "| Bibtex | test | `random` | 62.50 ± 0.50 |" in section(page, "## DeepWalk against")
    assert "| Bibtex | validation | `16` | 66.00 ± 0.50 |" in section(page, "## Effect of one")
    lost = summary(
        not_run("bibtex", "dxml", "Boom", study="activation", parameters={"activation": 1})
    )
    assert "– (Boom)" in section(render([lost]), "## The paper's ablation")


def test_the_page_is_the_same_for_the_same_summaries() -> None:
    assert render([copy.deepcopy(FULL)], "Words.\n") == render([FULL], "Words.\n")
    assert "\n\nWords.\n\n## What" in render([FULL], "Words.\n")
    empty = render([])
    assert "No run is stored yet" in empty and "![" not in empty


def test_a_page_with_its_figures(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "paper-small.json").write_text(json.dumps(FULL), "utf-8")
    (results / "notes.md").write_text("What we found.\n", "utf-8")
    page = write_report(results, tmp_path / "docs")
    text = page.read_text("utf-8")
    assert "What we found." in text
    linked = set(re.findall(r"\]\((benchmarks/[^)]+)\)", text))
    assert len(linked) == 12
    for name in linked:
        content = (page.parent / name).read_bytes()
        assert content.startswith(b"\x89PNG") if name.endswith("png") else b"<svg" in content
    svg = (page.parent / "benchmarks" / "sweeps.svg").read_bytes()
    assert write_report(results, tmp_path / "docs").read_text("utf-8") == text
    assert (page.parent / "benchmarks" / "sweeps.svg").read_bytes() == svg
    bare = write_report(results, tmp_path / "bare", with_plots=False)
    assert bare.read_text("utf-8") == text and not (tmp_path / "bare" / "benchmarks").exists()


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


def timed(method: str, label: str, name: str, value: int, p1: float) -> dict[str, Any]:
    seconds = {"train": spread(float(value)), "predict": spread(0.1)}
    given = {name: value}
    return row("eurlex-4k", method, p1, label=label, study=name, parameters=given, seconds=seconds)


def test_the_joint_method_stands_beside_the_others() -> None:
    joint = row("eurlex-4k", "joint", 84.0)
    joint["scores"] |= {"ECE@1": spread(3.5), "ECE@5": spread(1.25)}
    cpu = row("eurlex-4k", "joint", 83.0, label="joint (CPU)", parameters={"device": "cpu"})
    others = [row("eurlex-4k", "peer:omikuji", 81.0, label="omikuji"), row("eurlex-4k", "knn", 78)]
    page = render([summary(*others, cpu, joint, joint)])
    table = section(page, "## The joint method beside the others")
    lines = [line for line in table.splitlines() if re.match(r"\| [jo]", line)]
    assert [line.split(" | ")[0] for line in lines] == ["| joint (CPU)", "| joint", "| omikuji"]
    assert (
        "| 84.00 | 50.40 | 33.60 | 84.00 | 50.40 | 33.60 | 3.50 | 1.25 | 35.30 | 0.125 |"
        in lines[1]
    )
    assert "## The joint method" not in render([FULL])


def test_curves_of_time_are_drawn_where_there_are_studies_of_it(tmp_path: Path) -> None:
    rows = [timed("joint", "joint (CPU)", "n_negatives", n, 70.0 + n) for n in (1, 2, 4)]
    rows += [timed("peer:omikuji", "omikuji", "n_trees", n, 60.0 + n) for n in (1, 2)]
    names = [figure.name for figure in plots.figures([Row("e", values) for values in rows])]
    assert "time-curves" in names
    written = plots.draw([Row("e", values) for values in rows], tmp_path)
    svg = (tmp_path / "time-curves.svg").read_text("utf-8")
    assert tmp_path / "time-curves.png" in written and "training time" in svg
