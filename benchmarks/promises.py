"""How often a promised precision or recall is kept on points that the model has not seen.

    DXML_DATA=folder python benchmarks/promises.py bibtex section-train.jsonl tags-train.jsonl

DATA is what benchmarks/calibration.py takes. Only training points are used. In every draw some of
them are learnt from and up to 3,000 others are asked: which labels does a promise give them, and
how many of these are right, or of the true ones given? A promise is made with 95 % confidence, so
that 19 of 20 draws should keep it. Where a model refuses a promise, nothing is counted. Each data
set adds a record to benchmarks/results/promises.json, and the table of docs/guide/probabilities.md
is made of the newest ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from calibration import Points, read
from calibration_page import TITLES
from dxml._core.device import resolve_device
from dxml.bench._machine import circumstances
from dxml.exceptions import ParameterError
from dxml.joint import Joint
from dxml.metrics._judging import judge
from stored_results import add_result, part_of, read_results

STORED = "promises.json"
LEARNT, ASKED, DRAWS = 2000, 3000, 20
PROMISED = (("precision", 0.7), ("precision", 0.8), ("precision", 0.9), ("recall", 0.5))
DEPTH = 50  # labels of a point out of which a promise chooses


def reached(model: Joint, asked: Points, what: str, promised: float) -> float | None:
    """The precision or recall on the points that are asked; None: the model refuses the promise."""
    try:
        threshold = model.threshold_for(**{what: promised})
    except ParameterError:
        return None
    ranking = model.predict_topk(asked.X, min(DEPTH, model.n_labels_))
    given = (ranking.indices >= 0) & (ranking.scores >= threshold)
    right = given & judge(asked.Y, ranking, ranking.k).hits
    return float(right.sum() / max(given.sum() if what == "precision" else asked.Y.nnz, 1))


def measured(points: Points, learnt: int, draws: int, seed: int) -> list[dict[str, Any]]:
    """Of every promise: in how many draws it was made and kept, and what was reached."""
    found: dict[tuple[str, float], list[float]] = {each: [] for each in PROMISED}
    for draw in range(draws):
        order = np.random.default_rng([seed, draw]).permutation(points.X.shape[0])
        own, asked = points.rows(order[:learnt]), points.rows(order[learnt : learnt + ASKED])
        model = Joint().fit(own.X, own.Y)
        for promise in PROMISED:
            value = reached(model, asked, *promise)
            if value is not None:
                found[promise].append(value)
    return [
        {
            "what": what,
            "promised": promised,
            "made": len(values),
            "kept": sum(value >= promised for value in values),
            "reached": round(100 * fmean(values), 2) if values else None,
            "least": round(100 * min(values), 2) if values else None,
        }
        for (what, promised), values in found.items()
    ]


def table(records: Sequence[dict[str, Any]]) -> str:
    """The newest record of each data set."""
    lines = [
        "| data | promise | draws that made it | kept it | reached, mean | least |",
        "|---|---|--:|--:|--:|--:|",
    ]
    newest = {record["data"]: record for record in records}
    made = kept = 0
    for name, record in newest.items():
        for row in record["rows"]:
            made, kept = made + row["made"], kept + row["kept"]
            promise = f"{row['what']} {100 * row['promised']:.0f} %"
            numbers = ["–" if row[n] is None else f"{row[n]:.1f} %" for n in ("reached", "least")]
            cells = [TITLES.get(name, name), promise, f"{row['made']} of {record['draws']}"]
            lines.append(f"| {' | '.join([*cells, str(row['kept']), *numbers])} |")
    last = records[-1]
    where = f"{last['machine']}, commit {last['commit'][:7]}"
    lines += [
        "",
        f"{last['learnt']:,} points are learnt from in each draw. {kept} of {made} promises were "
        f"kept. `{last['command']}` on {where}.",
    ]
    return "\n".join(lines)


def write_page() -> None:
    if records := read_results(STORED):
        part_of("docs/guide/probabilities.md", "promises", "promises").write(table(records))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data", nargs="+", metavar="DATA|TABLE.jsonl")
    parser.add_argument("--learnt", type=int, default=LEARNT)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    where = circumstances(device=resolve_device("auto"), seed=asked.seed)
    for given in asked.data:
        rows = measured(read(given, "train"), asked.learnt, asked.draws, asked.seed)
        about = {"data": Path(given).stem, "learnt": asked.learnt, "draws": asked.draws}
        for row in rows:
            print(about["data"], *(f"{name} {value}" for name, value in row.items()), flush=True)
        add_result(STORED, {**about, "rows": rows, **where})


if __name__ == "__main__":
    main()
