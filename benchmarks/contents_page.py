"""docs/guide/large.md's table of file paths, from what contents_paths.py stored.

python benchmarks/contents_page.py
"""

from __future__ import annotations

import math
from typing import Any

from stored_results import part_of, read_results

STORED = "contents-paths.json"
PART = part_of("docs/guide/large.md", "paths", "contents_page")
NAMES = {"joint": "joint", "omikuji": "omikuji, Parabel", "knn": "k-NN"}
HEAD = (
    *("training paths", "packages", "held out", "method", "P@1 / P@3 / P@5"),
    *("training, s", "of processors", "ranking, ms a path", "memory, GB", "load", "commit"),
)
APART = 2.0  # times the paths of another run, from which on a growth is told

Row = dict[str, Any]


def shown(rows: list[Row]) -> list[Row]:
    """The runs of the methods of the page, by size, then by method."""
    kept = [row for row in rows if row["method"] in NAMES]
    return sorted(kept, key=lambda row: (row["train"], list(NAMES).index(row["method"])))


def line(row: Row) -> str:
    """One run; what older runs did not store is left empty."""
    scores, held = row["scores"], "test" if row["part"] == "test" else "training"
    cpu, load = row.get("cpu_seconds"), row.get("load")
    cells = (
        f"{row['train']:,}",
        f"{row['packages']:,}",
        f"{row['test']:,}, {held}",
        NAMES[row["method"]],
        " / ".join(f"{scores[f'P@{k}']:.1f}" for k in (1, 3, 5)),
        f"{row['seconds']['train']:,.0f}",
        f"{cpu['train']:,.0f}" if cpu else "",
        f"{1000 * (cpu or row['seconds'])['predict'] / row['test']:.2f}",
        f"{row['own_gb']:.1f}" if "own_gb" in row else f"{row['peak_gb']:.1f}",
        " to ".join(f"{each:.0f}" for each in load) if load else "",
        row["commit"][:7],
    )
    return f"| {' | '.join(cells)} |"


def growth(rows: list[Row]) -> dict[str, tuple[float, int, int]]:
    """Of each method: the power of the paths by which processors' seconds of training grow.

    Between its smallest and its largest run, where they are far enough apart.
    """
    found = {}
    for method in NAMES:
        own = [row for row in shown(rows) if row["method"] == method and "cpu_seconds" in row]
        if len(own) > 1 and own[-1]["train"] >= APART * own[0]["train"]:
            first, last = own[0], own[-1]
            spent = last["cpu_seconds"]["train"] / first["cpu_seconds"]["train"]
            power = math.log(spent) / math.log(last["train"] / first["train"])
            found[method] = power, first["train"], last["train"]
    return found


def render() -> str:
    """The table, and what it says of growth."""
    rows = read_results(STORED)["runs"]
    table = [
        f"| {' | '.join(HEAD)} |",
        "|" + "---|" * len(HEAD),
        *(line(row) for row in shown(rows)),
    ]
    powers = [
        f"{NAMES[method]} n^{power:.2f} from {first:,} to {last:,} paths"
        for method, (power, first, last) in growth(rows).items()
    ]
    said = f"Processors' seconds of training grow as: {'; '.join(powers)}. " if powers else ""
    machines = sorted({row["machine"] for row in rows})
    return "\n".join(
        [
            *table,
            "",
            f"{said}Held out are directories: those of the test part, or some of the training "
            "part. Load is how many processes wanted the processors, before and after: the clock "
            "says little where it is above the number of cores. With it, ranking is in seconds of "
            "processors and memory is what the process had of its own (RssAnon); without it, "
            f"ranking is by the clock and memory is all it held. {'; '.join(machines)}.",
        ]
    )


def write_page() -> None:
    PART.write(render())


if __name__ == "__main__":
    write_page()
