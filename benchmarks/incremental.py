"""DXML that learns part of the points later, beside DXML trained anew: accuracy and time.

    DXML_DATA=folder python benchmarks/incremental.py bibtex delicious --splits 1 2 3

Points are those of the training part alone: a fifth of them is held out and ranked. Section 4.2 of
the paper says that DXML learns incrementally and gives no figures. Two cases: ``points``: half of
the points, drawn at random, are trained on and the others are added; ``labels``: all points that
carry one of a tenth of the labels come later, and the model hears of these labels only then. Points
are added 500 at a time. Each case has three rows: the model of the first part, the same after the
others were added, and a model trained anew on all points. Every row is added to
benchmarks/results/incremental.jsonl as it comes; the table of docs/how-it-works.md is made of the
rows of one commit.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import numpy.typing as npt

from dxml._core.device import resolve_device
from dxml.bench._machine import circumstances, machine_name
from dxml.bench._published import TITLES
from dxml.bench._sources import load_parts
from dxml.data import Dataset
from dxml.metrics import precision_at_k
from dxml.paper import DXML
from stored_results import RESULTS, add_result, part_of, read_results

STORED = RESULTS / "incremental.jsonl"
BLOCK = 500
KS = (1, 3, 5)
LATER = {"points": "half of the points", "labels": "a tenth of the labels"}
MODELS = {"first part": "first part", "added": "the others added", "anew": "trained anew"}

Rows = npt.NDArray[np.int64]


def parts(data: Dataset, case: str, seed: int) -> tuple[Rows, Rows, Rows]:
    """Points that come first and later, and the labels in the order in which they become known."""
    rng = np.random.default_rng(seed)
    n, n_labels = data.Y.shape
    if case == "points":
        order = rng.permutation(n)
        return np.sort(order[: n // 2]), np.sort(order[n // 2 :]), np.arange(n_labels)
    labels = rng.permutation(n_labels)
    hidden = labels[: max(1, n_labels // 10)]
    later = np.asarray(data.Y[:, hidden].sum(axis=1)).ravel() > 0
    return np.flatnonzero(~later), np.flatnonzero(later), np.setdiff1d(labels, hidden)


def measure(train: Dataset, test: Dataset, case: str, settings: dict[str, Any]) -> list[Any]:
    """The rows of one case on one split."""
    first, later, known = parts(train, case, seed=0)
    order = np.concatenate([known, np.setdiff1d(np.arange(train.Y.shape[1]), known)])
    Y, truth = train.Y[:, order], test.Y[:, order]
    rows = []

    def store(name: str, model: DXML, learnt: int, begun: float) -> None:
        seconds = time.perf_counter() - begun
        own = truth[:, : model.n_labels_]  # what it does not know yet cannot be right
        scores = 100 * precision_at_k(own, model.predict_topk(test.X, 5), 5)
        told = {f"P@{k}": round(float(scores[k - 1]), 2) for k in KS}
        rows.append({"model": name, "learnt": learnt, **told, "seconds": round(seconds, 3)})

    begun = time.perf_counter()
    model = DXML(**settings).fit(train.X[first], Y[first][:, : len(known)])
    store("first part", model, len(first), begun)
    begun = time.perf_counter()
    for start in range(0, len(later), BLOCK):
        block = later[start : start + BLOCK]
        model.partial_fit(train.X[block], Y[block])
    store("added", model, train.Y.shape[0], begun)
    begun = time.perf_counter()
    anew = DXML(**settings).fit(train.X, Y)
    store("anew", anew, train.Y.shape[0], begun)
    return rows


def write_page() -> None:
    """The table of docs/how-it-works.md: means over the splits of the newest commit."""
    rows = read_results("incremental.jsonl")
    newest = [row for row in rows if row["commit"] == rows[-1]["commit"]]
    lines = ["| data | later | model | P@1 / P@3 / P@5 | splits |", "|---|---|---|---|--:|"]
    for data in dict.fromkeys(row["data"] for row in newest):
        for case, later in LATER.items():
            for model, title in MODELS.items():
                own = [row for row in newest if (row["data"], row["case"]) == (data, case)]
                own = [row for row in own if row["model"] == model]
                if own:
                    scores = [_with_deviation([row[f"P@{k}"] for row in own]) for k in KS]
                    name = TITLES.get(data, data)
                    lines.append(
                        f"| {name} | {later} | {title} | {' / '.join(scores)} | {len(own)} |"
                    )
    last = newest[-1]
    where = f"{machine_name(last['machine'])}, {last['threads']} thread"
    lines += ["", f"`{last['command']}` at commit {last['commit'][:7]} on {where}."]
    part_of("docs/how-it-works.md", "incremental", "incremental").write("\n".join(lines))


def _with_deviation(values: list[float]) -> str:
    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"{fmean(values):.1f}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--splits", type=int, nargs="+", default=[1])
    parser.add_argument("--cases", nargs="+", default=["points", "labels"])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--results", type=Path, default=STORED)
    asked = parser.parse_args()
    where = circumstances(device=resolve_device("auto"), seed=0)
    for name in asked.data:
        for split in asked.splits:
            train, test = load_parts(name, split, "validation")
            for case in asked.cases:
                for row in measure(train, test, case, {"epochs": asked.epochs}):
                    told = {"data": name, "split": split, "case": case, **row}
                    print(*(f"{k} {v}" for k, v in told.items()), flush=True)
                    add_result(asked.results, {**told, **where})


if __name__ == "__main__":
    main()
