"""The tables and the picture of docs/guide/probabilities.md, from what calibration.py stored.

python benchmarks/calibration_page.py
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from dxml.metrics._bands import BANDS
from dxml.plots import save
from dxml.plots._style import COLOURS, MARKERS
from stored_results import page_file, part_of, read_results

PAGE = "docs/guide/probabilities.md"
PICTURE = "docs/guide/pictures/calibration.svg"
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
    "sources": "whole sources",
    "told": "whole sources, `groups` given",
    "test": "test points",
}
OTHERS = ("temperature", "isotonic", "Venn–Abers")
LEAST_SHOWN = 50  # predictions in a bin of a curve that is drawn
COLUMNS = 4
BAND_ERRORS = [f"ECE@5 {band}" for band in BANDS]

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
        "| data | learnt from | P@1 | Joint | no error | debiased | draws together | counted | "
        "by known |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for (data, case, learnt), found in sorted(rows.items(), key=_order):
        if case not in HELD:
            own = found["joint"]
            cells = [
                _pair(own, name) for name in ("ECE", "noise", "debiased", "together", "counted")
            ]
            cells.append(_by_known(own))
            start = f"| {TITLES.get(data, data)} | {learnt} | {own['P@1']:.1f} | "
            lines.append(start + " | ".join(cells) + " |")
    return "\n".join(lines)


def table_by_frequency(rows: Newest) -> str:
    """Joint's error over the first five labels and over those in each band; the rows' origin."""
    lines = [
        "| data | held out | learnt from | all | " + " | ".join(BANDS) + " | draws | commit |",
        "|---|---|--:|--:" + "|--:" * len(BANDS) + "|--:|---|",
    ]
    for (data, case, _), found in sorted(rows.items(), key=_many_first):
        own = found["joint"]
        start = f"| {TITLES.get(data, data)} | {HELD.get(case, 'by chance')} | {own['learnt']:,} | "
        cells = [f"{own[f'ECE@{_deepest(own)}']:.1f}"]
        # none of its labels was given: None, or 0 in rows of before
        cells += [f"{own[name]:.1f}" if own.get(name) else "–" for name in BAND_ERRORS]
        cells += [str(own.get("draws", 1)), _short(own["commit"])]
        lines.append(start + " | ".join(cells) + " |")
    return "\n".join(lines)


@dataclass(frozen=True)
class Curves:
    """Probability against the share of right labels: a panel for each data set."""

    rows: Newest

    def numbers(self) -> dict[str, Any]:
        """By panel and line: predictions, mean probability and share of right ones, bin by bin."""
        found: dict[str, dict[str, Any]] = {}
        for (data, case, learnt), each in sorted(self.rows.items(), key=_many_first):
            title, line = TITLES.get(data, data), HELD.get(case, f"{learnt} points")
            panel = title if case in HELD else f"{title}, few points"
            curve = each["joint"].get("curve", ())
            if shown := [point for point in curve if point[0] >= LEAST_SHOWN]:
                found.setdefault(panel, {})[line] = shown
        return found

    def paint(self, plt: Any) -> Any:
        """Draw it with matplotlib's pyplot; each line has its numbers' digest for its id."""
        numbers = self.numbers()
        lines = -(-len(numbers) // COLUMNS)
        canvas, axes = plt.subplots(
            lines, COLUMNS, figsize=(10.4, 2.9 * lines), squeeze=False, layout="constrained"
        )
        for axis in list(axes.ravel())[len(numbers) :]:
            axis.set_visible(False)
        for axis, (title, curves) in zip(axes.ravel(), numbers.items(), strict=False):
            axis.plot([0, 1], [0, 1], "--", color="grey", linewidth=1)
            for place, (name, curve) in enumerate(curves.items()):
                _, said, right = zip(*curve, strict=True)
                look = {"color": COLOURS[place], "marker": MARKERS[place], "markersize": 3.5}
                [drawn] = axis.plot(
                    said,
                    right,
                    label=name.rpartition(", ")[2].replace("`", ""),
                    linewidth=1.2,
                    **look,
                )
                drawn.set_gid(digest(title, name, curve))
            axis.set(xlim=(0, 1), ylim=(0, 1))
            axis.set_title(title, size=10)
            axis.legend(loc="best", fontsize=7.5)
        canvas.supxlabel("predicted probability", size=10)
        canvas.supylabel("share that is right", size=10)
        return canvas


def digest(title: str, name: str, curve: Any) -> str:
    """What says in the file of the picture which numbers a line was drawn from."""
    return f"curve-{crc32(json.dumps([title, name, curve]).encode()):08x}"


def _short(commit: str) -> str:
    """A plus says that there were changes, as on other pages."""
    return commit[:7] + "+" * commit.endswith("+")


def _many_first(item: tuple[tuple[str, str, int], Any]) -> tuple[bool, tuple[Any, ...]]:
    return item[0][1] not in HELD, _order(item)


def _order(item: tuple[tuple[str, str, int], Any]) -> tuple[bool, str, int, int]:
    (data, case, learnt), _ = item
    held = list(HELD).index(case) if case in HELD else len(HELD)
    return data == "same texts", TITLES.get(data, data), -learnt, held


def _pair(row: Row | None, measure: str) -> str:
    """At 1 and at the deepest rank that there is."""
    if row is None or f"{measure}@1" not in row:
        return "–"
    return f"{row[f'{measure}@1']:.1f} / {row[f'{measure}@{_deepest(row)}']:.1f}"


def _deepest(row: Row) -> int:
    return max(int(name.partition("@")[2]) for name in row if re.fullmatch(r"ECE@\d+", name))


def _by_known(row: Row) -> str:
    """Rows of before have none."""
    return f"{row['by known@1']:.1f}" if "by known@1" in row else "–"


def tables(found: Newest) -> dict[str, str]:
    """What stands in the page, by the names of its marks."""
    return {
        "many": table_of_many(found),
        "few": table_of_few(found),
        "by frequency": table_by_frequency(found),
    }


def write_page() -> None:
    found = newest(read_results("calibration.jsonl"))
    for name, table in tables(found).items():
        part_of(PAGE, f"calibration, {name}", "calibration_page", apart=True).write(table)
    save(Curves(found), page_file(PICTURE))


if __name__ == "__main__":
    write_page()
