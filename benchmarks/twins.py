"""Twins against real data, method by method: P@1, P@3 and P@5.

    DXML_DATA=folder python benchmarks/twins.py              # measure what is not stored yet
    python benchmarks/twins.py --only eurlex-4k --only knn   # some of it
    python benchmarks/twins.py --page                        # docs/twins.md from what is stored

Scores on real data are those of the benchmark's summaries where these have the method with the same
parameters, else measured here. Of the test points 2,000 are used here, drawn at random. Twins of
data that cannot be had are smaller ones, and stand beside published numbers. Without ``twins.json``
all of it is measured anew.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from dxml.bench._machine import circumstances
from dxml.bench._published import TITLES, load_published
from dxml.bench._sources import load_parts
from dxml.bench._summary import load_rows, load_summaries
from dxml.bench.peers import PEERS
from dxml.bench.peers._environment import make_environment, run_peer
from dxml.data import Dataset
from dxml.data._synthetic import train_test_rows
from dxml.methods import method_class
from dxml.metrics import evaluate
from stored_results import RESULTS, MadePart, log_test, read_results, write_results

STORED = "twins.json"
PART = MadePart("docs/twins.md", "<!-- table -->", "<!-- end of table -->", apart=True)
REAL = ("eurlex-4k", "tibkat-gnd")
LARGE = {
    "wiki10-31k": "twin:wiki10-31k",
    "delicious-200k": "twin:delicious-200k,n_samples=22000,n_test=2000",
    "amazon-670k": "twin:amazon-670k,share=0.1",
}
"""The large data sets, and a twin of each that two cores can do."""
METHODS: dict[str, dict[str, Any]] = {
    "knn": {},
    "peer:omikuji": {},
    "peer:pecos": {},
    "joint": {"device": "cpu"},
    "dxml": {"device": "cpu", "epochs": 5},
}
NAMES = {
    "knn": "k-NN",
    "peer:omikuji": "omikuji",
    "peer:pecos": "PECOS",
    "joint": "joint",
    "dxml": "DXML, 5 epochs",
}
TEST_POINTS = 2_000
FIELD = ("SLEEC", "FastXML", "LEML")
"""Published methods beside the twins of the large data sets."""
KS = (1, 3, 5)


def some(data: Dataset, n: int) -> Dataset:
    """`n` points at random, or all."""
    if n >= data.n_samples:
        return data
    return data.take(train_test_rows(data.n_samples, n, random_state=0)[1])


def parts(name: str, kind: str) -> tuple[Dataset, Dataset]:
    """Train and test points of the real data set or of its twin."""
    train, test = load_parts(name if kind == "real" else LARGE.get(name, f"twin:{name}"), 1)
    return train, some(test, TEST_POINTS)


def measure(method: str, train: Dataset, test: Dataset, threads: int) -> dict[str, Any]:
    """Scores of one method, and the seconds that it took."""
    start = time.perf_counter()
    parameters = METHODS[method]
    if method.startswith("peer:"):
        peer = PEERS[method.removeprefix("peer:")]
        python = make_environment(peer, RESULTS / "peers")
        with tempfile.TemporaryDirectory() as folder:
            ranking = run_peer(
                peer,
                python,
                train,
                test,
                Path(folder),
                parameters=parameters,
                k=max(KS),
                threads=threads,
                seed=0,
            ).ranking
    else:
        model = method_class(method)(**parameters).fit(train.X, train.Y)
        ranking = model.predict_topk(test.X, k=max(KS))
    scores = evaluate(test.Y, ranking, ks=list(KS))
    return {
        **{f"P@{k}": round(scores[f"P@{k}"], 2) for k in KS},
        "train": train.n_samples,
        "test": test.n_samples,
        "seconds": round(time.perf_counter() - start, 1),
    }


def in_summaries(name: str, method: str) -> dict[str, Any] | None:
    """What the benchmark has measured on the real data, all test points; by `peers` if that has."""
    summaries = sorted(load_summaries(RESULTS), key=lambda each: each["experiment"] != "peers")
    for row in load_rows(summaries):
        same = row.parameters == METHODS[method] or (row.method == "knn" and not row.parameters)
        if (row.dataset, row.method, row.part, row.study) == (name, method, "test", None) and same:
            if row.measured:
                return {f"P@{k}": row.mean(f"P@{k}") for k in KS}
    return None


def load() -> dict[str, Any]:
    return read_results(STORED) or {"measured": {}}


def run(only: list[str], threads: int) -> None:
    """Measure what is asked for and not stored; each number is stored at once."""
    jobs = [(name, kind) for name in REAL for kind in ("real", "twin")]
    jobs += [(name, "twin") for name in LARGE]
    for name, kind in jobs:
        data = None
        for method in METHODS:
            key = f"{name} {kind} {method}"
            stored = load()
            known = kind == "real" and in_summaries(name, method)
            if known or key in stored["measured"] or not all(word in key for word in only):
                continue
            data = data or parts(name, kind)
            stored["measured"][key] = {
                **measure(method, *data, threads),
                **circumstances(device="cpu", seed=0, threads=threads),
            }
            write_results(STORED, stored)
            if kind == "real":
                log_test(name, method, stored["measured"][key])
            print(key, stored["measured"][key], flush=True)


def _cells(entry: dict[str, Any] | None) -> str:
    return " / ".join(f"{entry[f'P@{k}']:.1f}" for k in KS) if entry else "–"


def table(stored: dict[str, Any]) -> str:
    """Both tables of the page."""
    measured = stored["measured"]
    lines = ["| P@1 / P@3 / P@5 | method | real | twin |", "|---|---|---|---|"]
    for name in REAL:
        for method, title in NAMES.items():
            real = in_summaries(name, method) or measured.get(f"{name} real {method}")
            twin = measured.get(f"{name} twin {method}")
            if real or twin:
                lines.append(f"| {TITLES[name]} | {title} | {_cells(real)} | {_cells(twin)} |")
    published = load_published()
    lines += [
        "",
        "| P@1 / P@3 / P@5 | training points of the twin | on the twin | published, real data |",
        "|---|---:|---|---|",
    ]
    for name in LARGE:
        ours = {m: measured[key] for m in METHODS if (key := f"{name} twin {m}") in measured}
        if not ours:
            continue
        points = next(entry["train"] for entry in ours.values())
        mine = "; ".join(f"{NAMES[method]} {_cells(entry)}" for method, entry in ours.items())
        theirs = "; ".join(
            f"{method} " + " / ".join(f"{score:.1f}" for score in scores)
            for method in FIELD
            if (scores := published.values("paper", name, method.lower(), "P"))
        )
        lines.append(f"| {TITLES[name]} | {points:,} | {mine} | {theirs} |")
    return "\n".join(lines)


def write_page() -> None:
    PART.write(table(load()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", default=[], metavar="WORD")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--page", action="store_true", help="write docs/twins.md, measure nothing")
    arguments = parser.parse_args()
    if not arguments.page:
        run(arguments.only, arguments.threads)
    write_page()


if __name__ == "__main__":
    main()
