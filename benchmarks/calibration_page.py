"""The tables of docs/guide/probabilities.md, from what calibration.py stored.

python benchmarks/calibration_page.py
"""

from __future__ import annotations

import re
from typing import Any

from stored_results import part_of, read_results

PAGE = "docs/guide/probabilities.md"
TITLES = {
    "same texts": "one text, two labels",
    "bibtex": "Bibtex",
    "delicious": "Delicious",
    "eurlex-4k": "Eurlex-4K",
    "mediamill": "Mediamill",
    "pubmed-mesh": "PubMed-MeSH",
    "tibkat-gnd": "TIBKAT-GND",
    "tags-train": "packages, tags",
    "section-train": "packages, sections",
    "depends-train": "packages, dependencies",
    "parents-train": "WordNet, parents",
    "topics-train": "Reuters, topics",
}
HELD = {
    "chance": "by chance",
    "source": "whole clusters",
    "groups": "whole clusters, `groups` given",
    "test": "test points",
}
OTHERS = ("temperature", "isotonic", "Venn–Abers")

Row = dict[str, Any]
Newest = dict[tuple[str, str, int], dict[str, Row]]


def newest(rows: list[Row]) -> Newest:
    """The last row of each data set, case, number of points and calibration."""
    found: Newest = {}
    for row in rows:
        learnt = row["learnt"] if row["case"] not in HELD else 0
        found.setdefault((row["data"], row["case"], learnt), {})[row["calibration"]] = row
    return found


def table_of_many(rows: Newest) -> str:
    """Data sets: Joint, what chance does to its error, and the other calibrations."""
    lines = [
        "| data | held out | learnt from | P@1 | Joint | no error | debiased | by known | "
        + " | ".join(OTHERS)
        + " |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for (data, case, _), found in sorted(rows.items(), key=_order):
        if case in HELD:
            own = found["joint"]
            cells = [_pair(own, name) for name in ("ECE", "noise", "debiased")]
            cells += [_by_known(own), *(_pair(found.get(name), "ECE") for name in OTHERS)]
            start = f"| {TITLES.get(data, data)} | {HELD[case]} | {own['learnt']:,} | "
            lines.append(start + f"{own['P@1']:.1f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table_of_few(rows: Newest) -> str:
    """Few points: Joint, the draws together, no error, and what counting would know."""
    lines = [
        "| data | learnt from | P@1 | Joint | draws together | no error | counted | by known |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for (data, case, learnt), found in sorted(rows.items(), key=_order):
        if case not in HELD:
            own = found["joint"]
            cells = [_pair(own, name) for name in ("ECE", "together", "noise", "counted")]
            cells.append(_by_known(own))
            start = f"| {TITLES.get(data, data)} | {learnt} | {own['P@1']:.1f} | "
            lines.append(start + " | ".join(cells) + " |")
    return "\n".join(lines)


def _order(item: tuple[tuple[str, str, int], Any]) -> tuple[bool, str, int, int]:
    (data, case, learnt), _ = item
    held = list(HELD).index(case) if case in HELD else len(HELD)
    return data == "same texts", TITLES.get(data, data), -learnt, held


def _pair(row: Row | None, measure: str) -> str:
    """At 1 and at the deepest rank that there is."""
    if row is None or f"{measure}@1" not in row:
        return "–"
    deep = max(int(name.partition("@")[2]) for name in row if re.fullmatch(r"ECE@\d+", name))
    return f"{row[f'{measure}@1']:.1f} / {row[f'{measure}@{deep}']:.1f}"


def _by_known(row: Row) -> str:
    """Rows of before have none."""
    return f"{row['by known@1']:.1f}" if "by known@1" in row else "–"


def write_page() -> None:
    found = newest(read_results("calibration.jsonl"))
    for name, table in {"many": table_of_many(found), "few": table_of_few(found)}.items():
        part_of(PAGE, f"calibration, {name}", "calibration_page", apart=True).write(table)


if __name__ == "__main__":
    write_page()
