"""Every measured number that a page quotes is in a stored result."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = sorted(
    [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "benchmarks" / "README.md",
        RESULTS / "notes.md",
        *RESULTS.glob("*/README.md"),
    ]
)
UNITS = r"(?: ?(?:s|ms|ns|h|MB|GB|TB|GiB)\b| ?%| seconds| minutes| hours| per cent| times| million)"
QUOTED = re.compile(rf"(?<![\w.,@/=#-])(\d{{1,3}}(?:,\d{{3}})+|\d+)(\.\d+)?(?![\d,]*\d)({UNITS})?")
TRIPLE = re.compile(r"\d+\.\d+ / \d+\.\d+ / \d+\.\d+")


def prose(text: str) -> str:
    """Without code, addresses, targets of links, figures that are filled in, and comments."""
    text = re.sub(r"```.*?```|~~~.*?~~~|<!--.*?-->|\[\[.*?\]\]", " ", text, flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not line.startswith("    ")]
    text = "\n".join(lines)
    return re.sub(r"`[^`]*`|<?https?://\S+|\]\([^)]*\)|\d+\.\d+\.\d[\d.]*|§[\d.]+", " ", text)


def quoted(text: str) -> Iterator[tuple[str, float, int, str]]:
    """Numbers with a decimal point or a unit: as written, their value, decimals shown, the unit."""
    for found in QUOTED.finditer(prose(text)):
        whole, decimals, unit = found.groups()
        if decimals or unit:
            digits = len(decimals or ".") - 1
            value = float(whole.replace(",", "") + (decimals or ""))
            yield found[0].strip(), value, digits, (unit or "").strip()


SOURCES = {
    "docs/guide/deep.md": (
        "deep.json",
        "deep-dxml.json",
        "joint.json",
        "deep-names.jsonl",
        "deep-scale.jsonl",
        "deep-experiments/speed.txt",
    ),
    "docs/guide/annif.md": ("annif-beside.json",),
    "docs/guide/large.md": (
        *("large-twins.jsonl", "memory.json", "scale.json", "contents-paths.json", "growth.json"),
    ),
    "docs/guide/tagging.md": ("teaching.json", "teaching-choices.json", "suggest-next.json"),
    "docs/guide/cluster.md": ("ray-scaling.json", "cluster-plan.json"),
    "docs/reliability.md": ("checkpoints.json", "soak.json"),
    "docs/what-holds.md": ("opening.json",),
    "docs/how-it-works.md": ("incremental.jsonl",),
    "docs/guide/probabilities.md": ("calibration.jsonl",),
    "benchmarks/results/joint-experiments/README.md": (
        *("short-texts.json", "peers.json", "contents-paths.json", "parts-worth.jsonl"),
    ),
    "benchmarks/results/deep-experiments/README.md": ("deep-experiments/encoder-alone.jsonl",),
}
"""Where the numbers of a page come from; a page that is not here quotes none."""
SCORES = {
    "README.md": ("deep.json", "joint.json", "peers.json", "paper-eurlex.json", "baselines.json"),
    "docs/twins.md": (
        *("twins.json", "peers.json", "baselines.json", "scale.json"),
        "../../src/dxml/bench/published.toml",
    ),
}
"""Where P@1 / P@3 / P@5 of a page come from that quotes no other numbers."""
NOT_RESULTS = {
    "README.md": {"3.11"},
    "docs/guide/annif.md": {"0.8"},
    "docs/guide/cluster.md": {"16 MB", "64 MB", "100 million", "10 million"},
    "docs/guide/plots.md": {"70 %"},
    "docs/guide/data.md": {"57 MB"},
    "docs/guide/deep.md": {"16 MB", "22 million"},
    "docs/guide/large.md": {"350 MB"},
    "docs/guide/probabilities.md": {"0.9", "95 %", "70 %"},
    "docs/guide/serving.md": {"1 GiB", "10 s", "30 s", "60 s", "30 seconds"},
    "docs/guide/tagging.md": {"70 %", "95 %"},
    "docs/how-it-works.md": {"0.015", "0.9", "0.0005", "0.2"},
    "docs/joint.md": {"16.8 million", "0.3", "15 %"},
    "docs/reliability.md": {"200 times", "256 MB", "8 million", "0.0001", "0.002"},
    "docs/what-holds.md": {
        "0.0001",
        "0.002",
        "0.05",
        "1 MB",
        "2.4 GB",
        "7.5 GB",
        "8 GB",
        "0.13 GB",
    },
    "benchmarks/results/notes.md": {"0.1", "0.3", "0.01", "255 s"},  # settings and a limit
}
"""Settings, limits and sizes of what is fetched: nothing that was measured."""
GENERATED = re.compile(
    r"<!-- (?:[^>]*made by benchmarks/\w+\.py|large twins|table|names|rare labels|scale|test scores"
    r"|in dxml|figures: begin) -->.*?<!-- (?:end[^>]*|figures: end) -->",
    re.DOTALL,
)
"""What scripts write into a page. Tests compare it with what they would write."""
WRITTEN_AND_TESTED = {"docs/benchmarks.md", "docs/board.md", "docs/results.md"}
"""Pages that a command writes, and that tests/bench compares with the stored results as a whole."""
FACTORS = {
    "": (1, 100),
    "s": (1, 1e-3),
    "seconds": (1, 1e-3),
    "ms": (1, 1e3),
    "ns": (1, 1e9),
    "minutes": (1, 1 / 60),
    "h": (1, 1 / 3600),
    "hours": (1, 1 / 3600),
    "MB": (1, 1e-6, 1e-3, 2**-20),
    "GB": (1, 1e-9, 1e-3),
    "TB": (1, 1e-12, 1e-3),
    "GiB": (1, 2**-30),
    "%": (1, 100),
    "per cent": (1, 100),
    "times": (1,),
    "million": (1e-6,),
}
"""By its unit, what may stand between a stored number and a quoted one."""


SECONDS = re.compile(r"second|stages|_s\b|\bs\b|train|predict|time|millisec", re.IGNORECASE)
BYTES = re.compile(r"byte|[_ ][mg]b|gib|memory|_mb|shared|sent|received|flight|rss", re.IGNORECASE)
NO_SCORES = re.compile(SECONDS.pattern + "|" + BYTES.pattern + "|std|labels/mean", re.IGNORECASE)
"""In the names under which a number is stored: what it is not, if it stands without a unit."""
NEVER = ("machine", "machines", "versions", "commit", "commits", "rankings", "date", "dates")


def fits(unit: str, names: str) -> bool:
    """Whether a number of that unit may be one that is stored under these names."""
    if names.startswith("text"):
        return True
    if unit in ("s", "ms", "ns", "h", "seconds", "minutes", "hours"):
        return bool(SECONDS.search(names))
    if unit in ("MB", "GB", "TB", "GiB"):
        return bool(BYTES.search(names))
    return unit not in ("", "%", "per cent") or not NO_SCORES.search(names)


def numbers_in(value: Any, names: str = "") -> Iterator[tuple[str, float]]:
    """Every number in JSON with the names that it is stored under; of texts, those in them."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in NEVER:
                yield from numbers_in(each, f"{names}/{key}")
    elif isinstance(value, list):
        for each in value:
            yield from numbers_in(each, names)
    elif isinstance(value, str):
        yield from (("text", float(each)) for each in re.findall(r"\d+\.?\d*", value)[:200])
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield names, float(value)


@cache
def contents(name: str) -> Any:
    """A file of results; of a text, its lines."""
    text = (RESULTS / name).read_text("utf-8")
    if name.endswith(".json"):
        return json.loads(text)
    if name.endswith(".toml"):
        return tomllib.loads(text)
    return [json.loads(x) if name.endswith(".jsonl") else x for x in text.splitlines()]


def triples_in(value: Any) -> Iterator[tuple[float, ...]]:
    """Scores at 1, 3 and 5 that were stored together."""
    if isinstance(value, dict):
        plain = {k: v.get("mean") if isinstance(v, dict) else v for k, v in value.items()}
        for name in plain:
            if name.endswith("@1"):
                yield tuple(plain.get(f"{name[:-1]}{k}") or 0.0 for k in (1, 3, 5))
        value = list(value.values())
    if isinstance(value, list):
        if len(value) >= 3 and all(isinstance(x, int | float) for x in value[:3]):
            yield tuple(value[:3])
        for each in value:
            yield from triples_in(each)


def near(said: str) -> Callable[[tuple[float, ...]], bool]:
    """Whether three stored scores are those that are written so, rounded up or down."""
    half = 0.5 * 10.0 ** -len(said.partition(".")[2].partition(" ")[0]) + 1e-9
    values = [float(each) for each in said.split(" / ")]
    return lambda stored: all(abs(a - b) <= half for a, b in zip(values, stored, strict=True))


def unbacked(page: str, text: str) -> list[str]:
    """What a page quotes and no result of its own has."""
    sources, allowed = SOURCES.get(page, ()), NOT_RESULTS.get(page, ())
    known = [each for name in sources for each in numbers_in(contents(name))]
    triples = [each for name in SCORES.get(page, sources) for each in triples_in(contents(name))]
    wrong = [
        found
        for found in TRIPLE.findall(prose(text))
        if found not in allowed and not any(map(near(found), triples))
    ]
    text = TRIPLE.sub(" ", GENERATED.sub(" ", text))
    shown: dict[tuple[int, str], set[float]] = {}
    for said, value, digits, unit in quoted(text):
        key = digits, unit
        if key not in shown:
            fitting = [number for names, number in known if fits(unit, names)]
            shown[key] = {
                round(one * factor, digits) for one in fitting for factor in FACTORS[unit]
            }
        if value not in shown[key] and said not in allowed:
            wrong.append(said)
    return wrong


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_numbers_are_those_of_stored_results(path: Path) -> None:
    page = path.relative_to(ROOT).as_posix()
    if page not in WRITTEN_AND_TESTED:
        assert unbacked(page, path.read_text("utf-8")) == []


def test_a_number_that_nobody_measured_is_noticed() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    first = re.findall(r"\d+\.\d / \d+\.\d / \d+\.\d", text)[0]
    wrong = " / ".join(reversed(first.split(" / ")))  # numbers that were measured, at other ranks
    assert unbacked("README.md", text.replace(first, wrong, 1)) == [wrong]
    assert unbacked("README.md", text + "\nTraining takes 4.321 s.") == ["4.321 s"]
    assert unbacked("docs/what-holds.md", "A model of 465 MB opens in 46,470 s.") == ["46,470 s"]
    assert unbacked("docs/joint.md", "It reaches 91.2 on Bibtex, in 12 s.") == ["91.2", "12 s"]


def test_code_settings_and_addresses_are_no_results() -> None:
    text = "`C=1.5` [a](b-2.5.md) http://127.0.0.1:8000\n\n    dxml x --y 3.5\n\n```\n4.5\n```\n"
    assert list(quoted(text)) == []
    assert [said for said, *_ in quoted("P@1 of 3,456.5 in 7 s, 8 points")] == ["3,456.5", "7 s"]


def test_the_lists_are_not_longer_than_they_need_be() -> None:
    """No page that there is not, and nothing allowed that no page says."""
    pages = {path.relative_to(ROOT).as_posix(): path for path in PAGES}
    assert (
        not (SOURCES.keys() | SCORES.keys() | NOT_RESULTS.keys() | WRITTEN_AND_TESTED)
        - pages.keys()
    )
    for page, allowed in NOT_RESULTS.items():
        text = pages[page].read_text("utf-8")
        said = {each for each, *_ in quoted(GENERATED.sub(" ", text))} | set(
            TRIPLE.findall(prose(text))
        )
        assert not allowed - said, page
