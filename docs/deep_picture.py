"""Make the picture of docs/guide/deep.md: ``make deep-picture``, or ``deep_picture.py [FILE]``.

P@1, 3 and 5 of the joint method with a text encoder and without, from the stored results.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dxml.plots import save

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PICTURE = ROOT / "docs" / "guide" / "pictures" / "deep.svg"
KS = (1, 3, 5)
WITHOUT, WITH = "Joint", "Joint with a text encoder"
COLOURS = {WITHOUT: "#0072B2", WITH: "#D55E00"}
HATCHES = {WITHOUT: "", WITH: "//"}
EXPERIMENTS = {WITHOUT: "joint", WITH: "deep"}
DATA = {"PubMed-MeSH": "pubmed-mesh", "TIBKAT-GND": "tibkat-gnd"}


def scores(experiment: str, data: str) -> list[float]:
    """P@1, 3 and 5 of the stored run on a GPU."""
    rows = json.loads((RESULTS / f"{experiment}.json").read_text("utf-8"))["rows"]
    found = [
        row
        for row in rows
        if (row["dataset"], row["devices"], row["study"]) == (data, ["cuda"], None)
    ]
    return [found[0]["scores"][f"P@{k}"]["mean"] for k in KS]


@dataclass(frozen=True)
class DeepPicture:
    """Bars by k, a panel for each data set."""

    def numbers(self) -> dict[str, Any]:
        """P@1, 3 and 5 in percent, by data set and method."""
        return {
            title: {name: scores(experiment, data) for name, experiment in EXPERIMENTS.items()}
            for title, data in DATA.items()
        }

    def paint(self, plt: Any) -> Any:
        """Draw it with matplotlib's pyplot; returns the figure."""
        numbers = self.numbers()
        canvas, axes = plt.subplots(1, len(numbers), figsize=(8.4, 3.5), layout="constrained")
        for axis, (data, series) in zip(axes, numbers.items(), strict=True):
            for i, (name, values) in enumerate(series.items()):
                places = [g + (i - 0.5) * 0.4 for g in range(len(KS))]
                axis.bar(
                    places,
                    values,
                    0.37,
                    label=name,
                    color=COLOURS[name],
                    hatch=HATCHES[name],
                    edgecolor="white",
                )
                for x, value in zip(places, values, strict=True):
                    axis.text(x, value + 1, f"{value:.2f}", ha="center", size=8.5)
            axis.set_xticks(range(len(KS)), [f"P@{k}" for k in KS])
            axis.set_ylim(0, 100)
            axis.set_title(data, size=10)
            axis.grid(axis="x", visible=False)
            axis.set_axisbelow(True)
        axes[0].set_ylabel("% of the k labels given are right")
        canvas.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return canvas


if __name__ == "__main__":
    print(save(DeepPicture(), Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE))
