"""The tables of docs/results.md, and the README's, are those of the stored results."""

from __future__ import annotations

import json
import re
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
RESULTS = (ROOT / "docs" / "results.md").read_text("utf-8")
TITLES = {
    "Bibtex": "bibtex",
    "Delicious": "delicious",
    "Mediamill": "mediamill",
    "Eurlex-4K": "eurlex-4k",
    "PubMed-MeSH": "pubmed-mesh",
    "TIBKAT-GND": "tibkat-gnd",
}
BESIDE = ("eurlex-4k", "pubmed-mesh", "tibkat-gnd")
JOINT = {"joint (GPU)": "joint", "joint": "joint"}
GPU_ROWS = ("joint with an encoder", "joint", "joint (GPU)", "dxml")


def stored() -> dict[tuple[str, str], dict[str, Any]]:
    """(label, data set) → row, read without any code of the report."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name in ("deep", "deep-dxml", "joint", "peers", "paper-small", "paper-eurlex", "ablation"):
        text = (ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8")
        for row in json.loads(text)["rows"]:
            if row["scores"] and row["study"] is None:
                assert found.setdefault((row["label"], row["dataset"]), row)["scores"]
    return found


def tables(shown: str = RESULTS) -> list[list[list[str]]]:
    """Cells of a page's tables, the rule under the header left out."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", shown, re.MULTILINE)
    lines = [[row for row in block.splitlines() if "---" not in row] for block in blocks]
    return [[[cell.strip() for cell in row[1:-1].split("|")] for row in table] for table in lines]


def mean(row: dict[str, Any], measure: str) -> float:
    return float(row["scores"][measure]["mean"])


def three(row: dict[str, Any]) -> str:
    return " / ".join(f"{mean(row, f'P@{k}'):.1f}" for k in (1, 3, 5))


def has(row: dict[str, Any], where: str) -> bool:
    """Whether cores, threads and GPU of a stored row are among those a page gives."""
    threads = "/".join(map(str, row["threads"]))
    cores = sorted({int(re.findall(r"(\d+) cores", name)[0]) for name in row["machines"]})
    (kind,) = {"AMD EPYC" if name.startswith("AMD") else "Intel Xeon" for name in row["machines"]}
    noun = "thread" if threads == "1" else "threads"
    said = f"{threads} {noun} of {'/'.join(map(str, cores))} cores, {kind}"
    return said in [one.removesuffix(", NVIDIA H200") for one in where.split("; ")]


def best_of(method: str) -> set[str]:
    """Labels that are the best of their method at some k on some data of the first table."""
    rows = {key: row for key, row in stored().items() if key[1] in BESIDE}
    found = set()
    for data in BESIDE:
        own = {label: row for (label, d), row in rows.items() if d == data}
        own = {label: row for label, row in own.items() if row["method"] == method}
        for k in (1, 3, 5):
            most = max((mean(row, f"P@{k}") for row in own.values()), default=0)
            found |= {label for label, row in own.items() if mean(row, f"P@{k}") == most}
    return found


def test_the_readme_is_one_screen_with_the_strongest_of_each_library() -> None:
    assert len(README.splitlines()) <= 90
    (short,), whole = tables(README), tables()[0]
    assert short == [row for row in whole if row in short], "the same lines in the same order"
    shown = {row[0] for row in short[1:]}
    every = {row[0] for row in whole[1:]}
    assert {name for name in every if name.startswith("joint")} <= shown
    methods = {row["method"] for (label, _), row in stored().items() if label in every}
    peers = {method for method in methods if method.startswith("peer:")}
    assert len(peers) == 4
    strongest = set().union(*(best_of(method) for method in peers))
    assert strongest == {name for name in shown if name != "one-vs-all" and name[:5] != "joint"}


def test_scores_seconds_and_threads_are_those_stored() -> None:
    rows, checked = stored(), 0
    beside, _, paper, _ = tables()
    for table in (beside, paper):
        datasets = [TITLES[title] for title in table[0][1:-1]]
        for name, *cells, where in table[1:]:
            assert ("H200" in where) == (name in GPU_ROWS)
            for dataset, cell in zip(datasets, cells, strict=True):
                row = rows.get((JOINT.get(name, name), dataset))
                if row is None:
                    assert cell == "–", f"{name} on {dataset}"
                    continue
                assert cell.startswith(three(row)), f"{name} on {dataset}"
                assert has(row, where), f"{name} on {dataset}: {row['threads']} threads"
                if table is beside:
                    seconds = f"{row['seconds']['train']['mean']:.0f} s"
                    assert cell.split(", ")[1].rstrip("¹") == seconds
                checked += 1
    assert checked >= 60


def test_every_stored_peer_of_eurlex_is_shown() -> None:
    peers = {
        label
        for label, d in stored()
        if d == "eurlex-4k" and stored()[label, d]["method"][:5] == "peer:"
    }
    assert peers and peers <= {row[0] for row in tables()[0][1:]}


def test_which_rows_share_a_clock_is_what_was_stored_with_them() -> None:
    passage = " ".join(RESULTS.split("How far to trust")[1].split("Repeat it")[0].split())
    alike = passage.split("On one clock are ")[1].split(": on one machine")[0]
    kept = passage.split("models saved and")[1].split("opened again")[0]
    after = passage.split("before they predict.")[1]
    saving = re.findall(r"The seconds of (.*?) include saving the model, which", after)
    older = re.findall(r"(?:^|\. )([^.]*) are older runs of another machine", after)
    lists = {"alike": alike, "saving": "".join(saving), "older": "".join(older)}
    rows, threads_of = stored(), (["AMD EPYC, 2 cores, 24 GiB"], [2])
    for name, *_ in tables()[0][1:]:
        mine = [rows[name, d] for d in TITLES.values() if (name, d) in rows and d in BESIDE]
        if mine and name not in GPU_ROWS:
            here = all((r["machines"], r["threads"]) == threads_of for r in mine)
            apart = all(r["stages"].keys() >= {"read", "save", "predict"} for r in mine)
            where = "older" if not here else "alike" if apart else "saving"
            named = {kind: names_in(words) for kind, words in lists.items()}
            assert [kind for kind in named if name in named[kind]] == [where], name
            if where == "alike":
                opened = all("load" in r["stages"] for r in mine)
                assert opened == (name not in names_in(kept)), name


def test_which_cells_are_means_of_runs_is_what_was_stored() -> None:
    passage = " ".join(RESULTS.split("How far to trust the comparison: ")[1].split())
    rows, deviations, repeated = stored(), [0.0], set()
    for name, *_ in tables()[0][1:]:
        keys = [(JOINT.get(name, name), data) for data in BESIDE]
        mine = [rows[key] for key in keys if key in rows]
        if min(row["runs"] for row in mine) > 1:
            repeated.add(name)
            deviations += [row["scores"]["P@1"]["std"] for row in mine]
            assert {row["runs"] for row in mine} == {3}
    if repeated:
        assert names_in(passage.split("cells of ")[1].split(" are means of 3 runs")[0]) == repeated
        assert f"has a standard deviation of {max(deviations):.1f} at most. Every" in passage
    else:
        assert passage.startswith("each cell is one run, and omikuji")


def names_in(words: str) -> set[str]:
    """Names may have commas in brackets."""
    return set(re.split(r", (?![^(]*\))| and |those of ", words.strip(" ,")))


def test_every_joint_that_finds_fewer_frequent_labels_is_named() -> None:
    rows = stored()
    short = {"joint with an encoder": "encoder", "joint": "GPU", "joint (CPU)": "CPU"}
    short["joint (CPU, kernel)"] = "CPU with a kernel"
    (sentence,) = re.findall(r"^Of the most frequent labels.*$", RESULTS, re.MULTILINE)
    shown = {row[0] for row in tables()[0][1:]} - short.keys()
    for title, data in TITLES.items():
        found = {
            name: row["bands"]["head"]["found@5"]["mean"]
            for (name, d), row in rows.items()
            if d == data and (name in shown or name in short)
        }
        if data in BESIDE:
            most = max(value for name, value in found.items() if name in shown)
            for name in short.keys() & found.keys():
                words = rf"{title}[^;]* {found[name]:.1f} \({short[name]}\)"
                assert bool(re.search(words, sentence)) == (found[name] < most), (title, name)


def test_a_model_without_a_gpu_part_is_marked() -> None:
    beside = {row[0]: row for row in tables()[0]}
    for title, cell in zip(beside["method"][1:-1], beside["joint (GPU)"][1:-1], strict=True):
        stages = stored()["joint", TITLES[title]]["stages"]
        on_gpu = any(name.startswith(("wide layer", "kernel", "linear head")) for name in stages)
        assert ("¹" in cell) != on_gpu, title


def test_who_is_ahead_of_joint_is_said() -> None:
    rows = stored()
    lines = ("joint (GPU)", "joint (CPU)", "joint (CPU, kernel)")
    for page, ours, title in product((RESULTS, README), lines, TITLES):
        if (mine := rows.get((JOINT.get(ours, ours), TITLES[title]))) and TITLES[title] in BESIDE:
            sentence = re.search(
                rf"{title}, {re.escape(ours)}: ahead of it are (.*?)\.(?: |\n)", page
            )
            for name, *_ in tables(page)[0][1:]:
                other = rows.get((name, TITLES[title]))
                if other is None or name.startswith("joint"):
                    continue
                at = [f"P@{k}" for k in (1, 3, 5) if mean(other, f"P@{k}") > mean(mine, f"P@{k}")]
                said = f"{name} ({', '.join(at)})" in (sentence[1] if sentence else "")
                assert said == bool(at), f"{title}: {name} against {ours}"


def test_calibration_is_that_stored_and_the_best_other_is_named() -> None:
    rows = stored()
    for title, gpu, cpu, first, fifth in tables()[1][1:]:
        data = TITLES[title]
        for cell, label in ((gpu, "joint"), (cpu, "joint (CPU)")):
            row = rows.get((label, data))
            expected = f"{mean(row, 'ECE@1'):.1f} / {mean(row, 'ECE@5'):.1f}" if row else "–"
            if row and row["runs"] < row["planned"]:
                expected += f" ({row['runs']} of {row['planned']} splits)"
            assert cell == expected, title
        for cell, measure in ((first, "ECE@1"), (fifth, "ECE@5")):
            others = [
                (mean(row, measure), label)
                for (label, dataset), row in rows.items()
                if dataset == data and row["method"] != "joint" and measure in row["scores"]
            ]
            few = {3: " (3 splits)"}.get(rows[min(others)[1], data]["runs"], "")
            assert cell == "{:.1f}, {}".format(*min(others)) + few, title


def test_the_largest_number_of_labels_is_that_of_a_stored_run() -> None:
    results = ROOT / "benchmarks" / "results"
    paths = json.loads((results / "contents-paths.json").read_text("utf-8"))["runs"]
    real = max((run for run in paths if run["method"] == "joint"), key=lambda run: run["packages"])
    twins = json.loads((results / "scale.json").read_text("utf-8"))["data"].values()
    head = README.split("##")[0]
    assert f"{real['train']:,} paths of files" in head and f"{real['packages']:,} labels" in head
    assert f"{max(data['labels'] for data in twins):,} labels" in head
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert "million" not in project["description"] and "millions" not in README


def test_ranges_of_calibration_in_words() -> None:
    joint = [row for row in stored().values() if row["method"] == "joint"]
    ours = [row for row in joint if row["label"] == "joint (CPU)"]
    assert len(ours) == 6
    fifth, first = ([mean(row, f"ECE@{k}") for row in ours] for k in (5, 1))
    highest = {k: max(mean(row, f"ECE@{k}") for row in joint) for k in (1, 5)}
    assert round(highest[1]) == round(max(first)) and round(highest[5]) == round(max(fifth))
    words = (
        f"off by {min(fifth):.0f} to {max(fifth):.0f} points over the first five labels "
        f"and by {min(first):.0f} to {max(first):.0f} over the first"
    )
    for page in ("README.md", "docs/guide/methods.md"):
        text = " ".join((ROOT / page).read_text("utf-8").split())
        assert words in text, f"{page}: {words}"
        assert "so they are on a GPU." in text or "So they are on a GPU." in text, page


def test_how_far_probabilities_of_few_points_are_off() -> None:
    newest = {}
    text = (ROOT / "benchmarks" / "results" / "calibration.jsonl").read_text("utf-8")
    for row in map(json.loads, text.splitlines()):
        if row["calibration"] == "joint":
            few = row["learnt"] if row["learnt"] <= 50 else 0
            newest[row["data"], row["case"], few] = row["ECE@1"]
    off = [error for (*_, few), error in newest.items() if few]
    assert len(off) >= 8
    words = f"With 20 to 50 training points they were [off by {min(off):.0f} to {max(off):.0f} over"
    assert words in README
    far = [error for (_, case, _), error in newest.items() if case == "source"]
    assert len(far) >= 6
    words = f"and by up to {max(far):.0f} on clusters of texts that were not learnt from"
    assert words in " ".join(README.split())


def test_what_is_said_of_groups_that_are_sources() -> None:
    page = (ROOT / "docs" / "guide" / "probabilities.md").read_text("utf-8")
    many = tables(page.split("<!-- calibration, many")[1])[0]
    told = [row for row in many if row[1] == "whole sources, `groups` given"]
    alone = [row for row in many if row[1] == "whole sources"]
    off = [tuple(map(float, row[4].split(" / "))) for row in told]
    assert len(off) == len(alone) == 3 and all(at1 < 3 and at5 < 2 for at1, at5 in off)
    packages = [float(row[4].split(" / ")[0]) for row in alone if row[0].startswith("packages")]
    assert len(packages) == 2 and min(packages) > 3
    text = " ".join(page.split())
    assert "off by less than 3 points with `groups` given, and the first five's by less" in text
    (before,), (after,) = (
        [row[4].split(" / ")[0] for row in some if row[0].startswith("Reuters")]
        for some in (alone, told)
    )
    assert f"tables of packages, and by {before} on Reuters, which has {after} with them." in text
