"""The script that makes a data set of Debian's Contents index."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import contents_paths

from .scripts import load_script


def test_a_line_is_a_path_and_its_packages() -> None:
    lines = [
        "usr/bin/a file with blanks          utils/one,universe/admin/two\n",
        "etc/one.conf\tutils/one\n".replace("\t", "   "),
        "\n",
    ]
    assert list(contents_paths.entries(lines)) == [
        ("usr/bin/a file with blanks", ["one", "two"]),
        ("etc/one.conf", ["one"]),
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            "usr/lib/x86_64-linux-gnu/libQt5Core.so.5",
            "usr lib x 86 64 linux gnu lib qt 5 core so 5",
        ),
        ("usr/share/HTMLParser/readMe.txt", "usr share html parser read me txt"),
        ("usr/share/straße/日本", "usr share straße 日本"),
    ],
)
def test_the_words_of_a_path(path: str, expected: str) -> None:
    assert contents_paths.words(path) == expected


def lines_of(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def test_no_directory_stands_on_both_sides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"usr/share/d{i % 50}/f{i}.txt   misc/p{i % 7}\n" for i in range(1000)]
    with gzip.open(tmp_path / "Contents.gz", "wt") as file:
        file.writelines(lines)
    contents_paths.make(tmp_path / "made", [tmp_path / "Contents.gz"], None, 1_000_000)
    parts = {}
    for part in ("train", "test"):
        rows = [json.loads(line) for line in lines_of(tmp_path / "made" / f"{part}.jsonl")]
        parts[part] = {row["text"].split(" f ")[0] for row in rows}
        assert all(row["labels"] == [f"p{int(row['text'].split()[-2]) % 7}"] for row in rows)
    assert not parts["train"] & parts["test"] and len(parts["train"] | parts["test"]) == 50
    held = tmp_path / "held out"
    contents_paths.make(held, [tmp_path / "Contents.gz"], None, 1_000_000, "validation")
    sides = [
        {json.loads(line)["text"].split(" f ")[0] for line in lines_of(held / f"{part}.jsonl")}
        for part in ("train", "test")
    ]
    assert not sides[0] & sides[1] and sides[0] | sides[1] == parts["train"]
    assert 1 <= len(parts["test"]) <= 15
    assert "1,000 paths in the lists" in capsys.readouterr().out
    contents_paths.make(tmp_path / "few", [tmp_path / "Contents.gz"], 300, 1_000_000)
    rows = [json.loads(line) for line in lines_of(tmp_path / "few" / "train.jsonl")]
    kept = {label for row in rows for label in row["labels"]}
    assert 0 < len(kept) < 7, "some packages are taken, others left out"


def run(method: str, train: int, **more: Any) -> dict[str, Any]:
    """A stored run, with made-up numbers."""
    scores = {"P@1": 95.39, "P@3": 32.21, "P@5": 19.36}
    seconds = {"features": 4.1, "train": 1041.2, "predict": 2.0}
    sizes = {"train": train, "test": 1000, "packages": 2495}
    known = {"method": method, "part": "test", "scores": scores, "seconds": seconds, "peak_gb": 9.0}
    return {**known, **sizes, "machine": "a machine", "commit": "0123456789ab", **more}


def test_a_run_is_a_line_of_the_page() -> None:
    page = load_script("contents_page")
    old = (
        "| 334,403 | 2,495 | 1,000, test | joint | 95.4 / 32.2 / 19.4 | 1,041 |  | 2.00 | 9.0 |  |"
    )
    assert page.line(run("joint", 334_403)) == f"{old} 0123456 |"
    cpu = {"train": 500.4, "predict": 3.0}
    row = run("knn", 2_000, part="validation", cpu_seconds=cpu, own_gb=7.26, load=[11.6, 3.2])
    assert "1,000, training | k-NN |" in page.line(row)
    assert "| 1,041 | 500 | 3.00 | 7.3 | 12 to 3 |" in page.line(row)


def test_growth_is_that_of_processors_seconds() -> None:
    page = load_script("contents_page")
    small = run("joint", 1_000, cpu_seconds={"train": 10.0})
    large = run("joint", 100_000, cpu_seconds={"train": 10_000.0})
    other = (
        run("knn", 1_900, cpu_seconds={"train": 1.0}),
        run("knn", 1_000, cpu_seconds={"train": 1.0}),
    )
    old = run("joint", 10)
    found = page.growth([large, old, small, *other])
    assert found == {"joint": (pytest.approx(1.5), 1_000, 100_000)}


def test_a_measured_row_says_what_it_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"text": f"word{i % 8} more{i}", "labels": [f"package{i % 8}"]} for i in range(80)]
    lines = [json.dumps(row) + "\n" for row in rows]
    (tmp_path / "train.jsonl").write_text("".join(lines))
    (tmp_path / "test.jsonl").write_text("".join(lines[:8]))
    (tmp_path / "part.txt").write_text("validation")
    monkeypatch.setattr(os, "getloadavg", lambda: (1.25, 0.0, 0.0))
    row = contents_paths.measure(tmp_path, "knn", None)
    assert row["scores"]["P@1"] == 100
    assert (row["train"], row["test"], row["packages"]) == (80, 8, 8)
    laps = ["reading", "features", "train", "predict"]
    assert list(row["seconds"]) == list(row["cpu_seconds"]) == laps
    assert row["load"] == [1.2, 1.2] and 0 < row["own_gb"] and row["part"] == "validation"
    assert row["command"].startswith("python") and row["commit"] and row["memory"] is None
    assert {"reading", "features", "validation"} <= set(row["stages_cpu_seconds"])
