"""The script that makes a data set of Debian's Contents index."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import contents_paths


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
