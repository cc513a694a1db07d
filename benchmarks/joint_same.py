"""Is joint what it was before the package's files were moved? Accuracy and time of both versions.

    DXML_DATA=folder python benchmarks/joint_same.py
    DXML_DATA=folder python benchmarks/joint_same.py --data bibtex --runs 1 --output same.json

Both versions train and rank in processes of their own, in turn, with the same number of threads.
Every run has the seed of its turn, so both versions have the same seeds. A table is printed, and
the runs are stored in benchmarks/results/joint-same.json. Seconds are the least of the runs, as
others on the machine only make them longer; P@k are means.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from statistics import fmean
from typing import Any

from dxml.bench._machine import circumstances
from earlier import ROOT, checked_out
from stored_results import log_test, write_results

BEFORE = "a9baede"  # the last commit with all files in one folder
DATA = ("bibtex", "eurlex-4k", "pubmed-mesh")
KS = (1, 3, 5)
THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
Run = dict[str, float]

ONE_RUN = """
import json, sys, time
from dxml.data import load_dataset, make_planted
from dxml.joint import Joint
from dxml.metrics import precision_at_k

name, seed = sys.argv[1], int(sys.argv[2])
planted = make_planted(300, 100, 10, random_state=0)  # compiles
for candidates in ("all", "nearest"):
    Joint(device="cpu", candidates=candidates).fit(planted.X, planted.Y).predict_topk(planted.X, 5)
train, test = (load_dataset(name, part) for part in ("train", "test"))
start = time.perf_counter()
model = Joint(device="cpu", random_state=seed).fit(train.X, train.Y)
fitted = time.perf_counter()
ranking = model.predict_topk(test.X, 5)
ranked = time.perf_counter()
precision = precision_at_k(test.Y, ranking, 5)
found = {f"P@{k}": float(precision[k - 1]) for k in (1, 3, 5)}
print(json.dumps({**found, "fit": fitted - start, "rank": ranked - fitted}))
"""


def run(source: Path, data: str, seed: int, threads: int) -> Run:
    """One fit and ranking of the test points, by the version in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", ONE_RUN, data, str(seed)],
        env={
            **os.environ,
            **{name: str(threads) for name in THREADS},
            "PYTHONPATH": str(source / "src"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{data}, {source}: {done.stderr.strip().splitlines()[-1]}")
    found: Run = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(sources: dict[str, Path], data: list[str], n_runs: int, threads: int) -> dict[str, Any]:
    """The runs of both versions on every data set, in turn."""
    found: dict[str, Any] = {}
    for name in data:
        runs: dict[str, list[Run]] = {which: [] for which in sources}
        for seed in range(n_runs):
            for which, source in sources.items():
                runs[which].append(run(source, name, seed, threads))
        found[name] = runs
    return found


def commit(revision: str) -> str:
    """The short name of a revision."""
    git = ["git", "-C", str(ROOT), "rev-parse", "--short", revision]
    return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()


def table(found: dict[str, Any]) -> str:
    """A row a data set and version: P@k, and seconds of training and of ranking the test points."""
    lines = [f"{'':14}{'':8}{'P@1':>8}{'P@3':>8}{'P@5':>8}{'fit s':>10}{'rank s':>10}"]
    for name, runs in found.items():
        for which, each in runs.items():
            scores = "".join(f"{100 * fmean(one[f'P@{k}'] for one in each):8.2f}" for k in KS)
            seconds = "".join(f"{min(one[what] for one in each):10.2f}" for what in ("fit", "rank"))
            lines.append(f"{name:14}{which:8}{scores}{seconds}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", default=BEFORE, help="the revision to compare with")
    parser.add_argument("--now", help="a later revision; the files as they are without it")
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/joint-same.json")
    given = parser.parse_args()
    with (
        checked_out(given.before) as old,
        checked_out(given.now) if given.now else nullcontext(ROOT) as new,
    ):
        sources = {"before": old, "now": new}
        found = compare(sources, given.data, given.runs, given.threads)
    print(table(found))
    stored = {
        **circumstances(device="cpu", seed=list(range(given.runs)), threads=given.threads),
        "before": commit(given.before),
        "now": commit(given.now or "HEAD"),
        "load": [round(load, 2) for load in os.getloadavg()],
        "runs": found,
    }
    write_results(given.output, stored)
    for name in given.data:
        log_test(name, "joint", stored, given.output.parent)


if __name__ == "__main__":
    main()
