"""The page from planted summaries: cells, differences, reasons, figures."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest

from dxml.bench import _tables as tables
from dxml.bench._markdown import replace_between
from dxml.bench._published import load_published
from dxml.bench._report import render, write_report

from .made_up import MACHINE, not_run, row, section, spread, study, summary

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


def test_ours_stands_beside_the_papers_with_the_difference() -> None:
    page = render([FULL])
    table = section(page, "## Table 2 of the paper")
    assert (
        "| DXML | 66.03 | 60.00 ± 0.50 | −6.03 | 40.21 | 36.00 ± 0.50 | −4.21 | "
        "27.51 | 24.00 ± 0.50 | −3.51 |" in table
    )
    assert "| omikuji (Parabel) (7 splits) | – | 63.00 ± 0.50 | – |" in table
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


def test_large_data_stands_as_its_twin() -> None:
    slow = "took longer than the limit of 7200 s"
    twins = summary(
        row("twin:wiki10-31k", "dxml", 80.0, devices=["cuda"]),
        not_run("twin:wiki10-31k", "sleec", slow),
        row("twin:wiki10-31k", "knn", 75.0),
        row("twin:wiki10-31k,share=0.1", "leml", 70.0),
        study("activation", "linear", 44.0, dataset="twin:wiki10-31k"),
    )
    twins["data"] = {"twin:wiki10-31k": twins["data"]["bibtex"]}
    page = render([twins])
    table = section(page, "## Table 3 of the paper")
    assert "never a number with the paper's" in table
    whole, smaller, _ = re.split(r"\*\*Wiki10-31K; ours: its twin, share 0.1\*\*|\*\*Delic", table)
    assert "| LEML | 73.47 | 70.00 |" in smaller and "LEML" not in whole and "KNN" not in smaller
    assert "**Wiki10-31K; ours: its twin**" in table and "**Delicious-200K**" in table
    assert "| DXML | 86.45 | 80.00 | 70.88 | 48.00 | 61.31 | 32.00 |" in table
    assert "| KNN | – | 75.00 |" in table
    assert "| SLEEC | 85.88 | – [a] |" in table and f"- [a] {slow}" in table
    assert "| DXML | 86.45 | 80.00 | 76.32 | 48.00 |" in section(page, "## Table 5 of the paper")
    times = section(page, "## Table 6")
    assert "| Wiki10-31K, twin | DXML | 3,047.0 | 35.30 | 16.3 | 0.21 (GPU) | A, cuda" in times
    assert slow in times
    assert "| Wiki10-31K, twin, ours | 4,880 |" in section(page, "## Table 1")
    ablation = section(page, "## The paper's ablation")
    assert "| Wiki10-31K, twin | test | `linear` | 44.00" in ablation
    real = render([twins, summary(row("wiki10-31k", "dxml", 81.0))])
    assert "| DXML | 86.45 | 81.00 ± 0.50 | −5.45 |" in section(real, "## Table 3 of the paper")


def test_seconds_to_predict_are_those_of_a_cpu() -> None:
    seconds = {"train": spread(35.3), "predict": spread(0.21), "predict_cpu": spread(4.5)}
    page = render([summary(row("bibtex", "dxml", 60.0, devices=["cuda"], seconds=seconds))])
    assert "| Bibtex | DXML | 353.0 | 35.30 | 2.1 | 4.50 | A, cuda" in section(page, "## Table 6")


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


def test_the_made_part_of_a_page_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before <a> old <b> after", "utf-8")
    replace_between(page, ("<a>", "<b>"), " new ")
    assert page.read_text("utf-8") == "before <a> new <b> after"
    for marks in (("<a>", "<c>"), ("<c>", "<b>"), ("<b>", "<a>")):
        said = rf"must have '{marks[0]}' once, and next '{marks[1]}'"
        with pytest.raises(ValueError, match=said):
            replace_between(page, marks, "")
    assert page.read_text("utf-8") == "before <a> new <b> after"
    two = "<!-- a --> old <!-- end --> <!-- b --> old <!-- end -->"
    page.write_text(two, "utf-8")
    replace_between(page, ("<!-- b -->", "<!-- end -->"), " new ")
    assert page.read_text("utf-8") == two[:-16] + "new <!-- end -->"
    for wrong in (two.replace("<!-- end -->", "", 1), two + two):
        page.write_text(wrong, "utf-8")
        with pytest.raises(ValueError, match="once, and next"):
            replace_between(page, ("<!-- a -->", "<!-- end -->"), "")
        assert page.read_text("utf-8") == wrong


def test_a_smaller_twin_says_how_small() -> None:
    assert tables.title_of("twin:amazon-670k") == "Amazon-670K, twin"
    assert tables.title_of("twin:amazon-670k,share=0.05") == "Amazon-670K, twin, share 0.05"
    assert tables.title_of("planted:made,n_samples=3") == "`planted:made,n_samples=3`"


def test_a_study_of_several_methods_says_whose_a_line_is() -> None:
    rows = [study("C", 0.3, p1, part="validation") for p1 in (40.0, 50.0)]
    rows[1] |= {"method": "peer:pecos", "label": "PECOS (C=0.3)"}
    page = render([summary(*rows)])
    assert "| Bibtex, PECOS | validation | `0.3` | 50.00" in section(
        page, "## Effect of one parameter"
    )
