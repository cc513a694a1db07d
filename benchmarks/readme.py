"""Write the README's results from the stored summaries: ``python benchmarks/readme.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dxml.bench.published import load_published
from dxml.bench.tables import title_of

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- results: made by benchmarks/readme.py -->", "<!-- end of results -->"
DATASETS = {
    "bibtex": "Bibtex",
    "delicious": "Delicious",
    "mediamill": "Mediamill",
    "eurlex-4k": "Eurlex-4K",
}

PEERS = ["eurlex-4k", "pubmed-mesh", "tibkat-gnd"]
BESIDE = """\
Beside other libraries at their defaults, on the same features: P@1 / P@3 / P@5 in per cent and
seconds of training. The GPU is one H200; all others had two cores of one machine, one after the
other."""
INTRODUCTION = """\
P@1 / P@3 / P@5 in per cent, every method at its defaults: the mean of ten random splits, and
Eurlex-4K's official split. In brackets the P@1 that the paper, or for Eurlex-4K the Extreme
Classification Repository, gives the method. A dash: not measured."""
REPEAT = """\
The GPU trained `dxml` and `joint`; everything else had two CPU threads.
Repeat it with `dxml bench run paper-small` and `dxml bench run paper-eurlex`.
[docs/benchmarks.md](docs/benchmarks.md) has the paper's tables and figures beside ours, standard
deviations, times, sizes, and why a literal DXML falls short of the paper's numbers."""


def render() -> str:
    """All tables."""
    summaries = [_load("paper-small"), _load("paper-eurlex")]
    rows = [row for summary in summaries for row in summary["rows"]]
    machines = sorted({name for summary in summaries for name in summary["machines"]})
    lines = [
        *_peers(),
        "",
        INTRODUCTION,
        "",
        "| method | " + " | ".join(DATASETS.values()) + " |",
        "|---|" + "---|" * len(DATASETS),
    ]
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = [_cell(rows, method, dataset) for dataset in DATASETS]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    lines += ["", f"Measured on: {'; '.join(machines)}. {REPEAT}", "", *_parts()]
    return "\n".join(lines)


def _peers() -> list[str]:
    """The joint method and the peers that ran on all of the data sets, best first."""
    peers, gpu = _load("peers")["rows"], _load("joint")
    ours = [{**row, "label": "joint, GPU"} for row in gpu["rows"] if row["label"] == "joint"]
    rows = [row for row in [*ours, *peers] if row["dataset"] in PEERS and row["scores"]]
    labels = dict.fromkeys(row["label"] for row in rows)
    found = {name: [r for d in PEERS for r in rows if _is(r, name, d)] for name in labels}
    complete = {name: of for name, of in found.items() if len(of) == len(PEERS)}
    lines = ["| method | " + " | ".join(title_of(d) for d in PEERS) + " |", "|---|---|---|---|"]
    for name in sorted(complete, key=lambda name: -complete[name][0]["scores"]["P@1"]["mean"]):
        cells = [f"{_scores(row)}, {row['seconds']['train']['mean']:.0f} s" for row in found[name]]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return [
        BESIDE,
        "",
        *lines,
        "",
        "Repeat it with `dxml bench run peers` and `dxml bench run joint`.",
    ]


def _is(row: dict[str, Any], label: str, dataset: str) -> bool:
    return (row["label"], row["dataset"]) == (label, dataset)


def _scores(row: dict[str, Any]) -> str:
    return " / ".join(f"{row['scores'][f'P@{k}']['mean']:.1f}" for k in (1, 3, 5))


def _parts() -> list[str]:
    parts = _load("parts")
    lines = ["| part | measured | bound |", "|---|---|---|"]
    for what, measured, bound, _ in parts["rows"]:
        lines.append(f"| {what.strip()} | {measured} | {bound} |")
    where = f"{parts['data']}, {parts['machine']}, {parts['date']}"
    return [*lines, "", f"`{parts['command']}` on {where}."]


def _load(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return loaded


def _cell(rows: list[dict[str, Any]], method: str, dataset: str) -> str:
    found = [r for r in rows if (r["method"], r["dataset"]) == (method, dataset) and r["scores"]]
    if not found:
        return "–"
    (row,) = found
    ours = _scores(row)
    if row["runs"] < row["planned"]:
        ours += f" ({row['runs']} of {row['planned']} splits)"
    theirs = _published(method, dataset)
    return f"{ours} [{theirs:.1f}]" if theirs is not None else ours


def _published(method: str, dataset: str) -> float | None:
    published = load_published()
    for source in ("paper", "repository"):
        if values := published.values(source, dataset, method, "P"):
            return values[0]
    return None


def main() -> None:
    path = ROOT / "README.md"
    before, rest = path.read_text("utf-8").split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n{render()}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
