"""Seconds by stage on twins of the paper's large data sets, and what a GPU could do at best.

    python benchmarks/large_twins.py joint amazon-670k --before 0.1
    python benchmarks/large_twins.py dxml wiki10-31k --share 0.1 --device cpu
    python benchmarks/large_twins.py --page          # the table of docs/guide/large.md

Kernels are compiled once, when they are first used on a machine. With ``--before`` a smaller twin
is trained first, whose seconds are told apart, so that compiling is not timed.
A run is one line of benchmarks/results/large-twins.jsonl: seconds from arrays to model and by
stage, P@k on test points, peak memory (all of it, and what the process had of its own in
training), milliseconds a point in batches. ``least`` has, for the
stages that run on a GPU, the seconds that its memory or its arithmetic would need for the bytes and
products that the stage cannot do without (`BYTES_PER_SECOND`, `PRODUCTS_PER_SECOND`: an H200's).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dxml import DXML, Joint, limit_memory
from dxml._core.device import resolve_device
from dxml._label_graph.factorisation import GPU_MAX_OTHERS, MAX_OTHERS
from dxml.bench._machine import circumstances, machine_name, peak_bytes
from dxml.data import REGISTRY, Dataset, make_twin, train_test
from dxml.joint._fitting import _searched
from dxml.metrics import inverse_propensity, precision_at_k, psp_at_k
from dxml.progress import open_progress
from own_memory import OwnMemory
from stored_results import RESULTS, MadePart, add_result, read_results

STORED = "large-twins.jsonl"
PART = MadePart("docs/guide/large.md", "<!-- large twins -->", "<!-- end -->")
BYTES_PER_SECOND = 4.8e12
PRODUCTS_PER_SECOND = 33e12  # multiplications with an addition each, float32
PASSES = 3  # of the linear head over a label's points, in a trial and at the end


def least_seconds(model: Joint | DXML, data: Dataset) -> dict[str, float]:
    """What the stages would take at the limit of the GPU's memory or arithmetic."""
    n, nnz, per_row = data.X.shape[0], data.X.nnz, data.X.nnz / data.X.shape[0]
    if isinstance(model, Joint):
        found = np.bincount(data.X.indices, minlength=data.X.shape[1]).astype(float)
        products = (found[_searched(data.X)] ** 2).sum()
        table = 8.0 * n * n  # every sum is set to 0 and read once
        negatives = model._negatives_for(model.parts_)
        passes = PASSES * n * (negatives + data.Y.nnz / n)
        head = passes * per_row * 16 / BYTES_PER_SECOND  # feature, value, weight read and written
        return {
            "neighbours": (table + 16 * products) / BYTES_PER_SECOND,
            "linear head, a trial and the last": head,
        }
    dim, hidden = model.label_vectors_.shape[1], model.encoder_.w1.shape[1]
    n_labels = data.Y.shape[1]
    others = n_labels if n_labels <= GPU_MAX_OTHERS else MAX_OTHERS
    half = 2.0 * data.Y.shape[1] * others * dim  # scores, and their products with vectors
    epoch = nnz * hidden * 4 * 3.0  # weight rows read, and read and written by the update
    return {
        "skip-gram": 3 * 2 * half / PRODUCTS_PER_SECOND,
        "encoder": model.epochs * epoch / BYTES_PER_SECOND,
    }


def make(name: str, share: float, n_test: int) -> tuple[Dataset, Dataset]:
    """The training and test part of a twin."""
    info, begun = REGISTRY[name], time.perf_counter()
    n_test = min(n_test, round(info.n_test * share))
    whole = make_twin(name, round(info.n_train * share) + n_test, share, random_state=0)
    train, test = train_test(whole, n_test)
    made = time.perf_counter() - begun
    print(f"{name}: {train.X.shape}, {train.Y.shape[1]} labels, made in {made:.0f} s", flush=True)
    return train, test


def run(
    method: str,
    name: str,
    share: float,
    n_test: int,
    device: str,
    before: float | None,
    memory: str | None,
) -> dict[str, Any]:
    """Train and score, within a promise of memory where there is one."""
    info, kind = REGISTRY[name], {"joint": Joint, "dxml": DXML}[method]
    train, test = make(name, share, n_test)
    first = None
    if before is not None:
        small, asked = make(name, before, 200)
        begun = time.perf_counter()
        kind(device=device).fit(small.X, small.Y).predict_topk(asked.X, 5)
        first = {"share": before, "seconds": round(time.perf_counter() - begun, 1)}
        print(f"a smaller one took {first['seconds']} s", flush=True)
    model = kind(device=device)
    begun = time.perf_counter()
    promised = nullcontext() if memory is None else limit_memory(memory)
    with open_progress() as progress, OwnMemory(os.getpid()) as own, promised:
        model.fit(train.X, train.Y, progress=progress)
        seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    ranking = model.predict_topk(test.X, 5)
    predicted = time.perf_counter() - begun
    truth = sp.csr_matrix(test.Y)
    precision = precision_at_k(truth, ranking, 5)
    frequency = np.bincount(train.Y.indices, minlength=train.Y.shape[1])
    weights = inverse_propensity(frequency, train.X.shape[0], *info.propensity)
    tail = psp_at_k(truth, ranking, 5, weights)
    scores = {"P": precision[[0, 2, 4]], "PSP": tail[[0, 2, 4]]}
    return {
        **circumstances(device=resolve_device(device), seed=0),
        "data": f"{name} twin",
        "share": share,
        "shape": [*train.X.shape, train.Y.shape[1]],
        "method": method,
        "before": first,
        "memory": memory,
        "seconds": round(seconds, 1),
        "stages": {stage: round(own, 2) for stage, own in model.seconds_.items()},
        "least": {k: round(v, 3) for k, v in least_seconds(model, train).items()},
        "scores": {k: [round(100 * float(x), 2) for x in v] for k, v in scores.items()},
        "test points": test.X.shape[0],
        "milliseconds a point": round(1000 * predicted / test.X.shape[0], 3),
        "peak memory, GB": round(peak_bytes() / 1e9, 2),
        "own memory, GB": round(own.peak / 1e9, 2),
    }


def table(stored: list[dict[str, Any]]) -> str:
    """What is stored for docs/guide/large.md: the last run of each method, twin and device."""
    rows = {}
    for found in stored:
        rows[found["data"], found["method"], found["share"], found["device"]] = found
    out = [
        "| twin | method | seconds | P@1 / P@3 / P@5 | stages, in seconds | at best on a GPU "
        "| ms a point | peak memory, GB | machine |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for found in rows.values():
        stages = ", ".join(f"{name} {own:g}" for name, own in found["stages"].items() if own >= 1)
        least = ", ".join(f"{name} {own:g}" for name, own in found["least"].items())
        scores = " / ".join(f"{value:.1f}" for value in found["scores"]["P"])
        memory = f"{found['peak memory, GB']:g}"
        if found.get("memory"):  # what a promise is about
            memory += f", {found['own memory, GB']:g} of its own"
        asked = ", --before" if found.get("before") else ""
        asked += f", --memory {found['memory']}" if found.get("memory") else ""
        out.append(
            f"| {found['data']} | {found['method']} | {found['seconds']:g} | {scores} | {stages} "
            f"| {least if found['device'] != 'cpu' else ''} | {found['milliseconds a point']:g} "
            f"| {memory} | {machine_name(found['machine'])}, "
            f"commit {found['commit'][:7]}{asked} |"
        )
    return "\n".join(out) + "\n"


def write_page() -> None:
    PART.write(table(read_results(STORED)))


def main() -> None:
    """Run, print and store; with --page alone, write the page."""
    if sys.argv[1:] == ["--page"]:
        write_page()
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("method", choices=["joint", "dxml"])
    parser.add_argument("data", choices=["wiki10-31k", "delicious-200k", "amazon-670k"])
    parser.add_argument("--share", type=float, default=1.0, help="of points, features and labels")
    parser.add_argument("--before", type=float, help="share of a twin that is trained first")
    parser.add_argument("--test", type=int, default=20_000, help="test points, at most")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--memory", help="a promise for training, like 8GB")
    parser.add_argument("--output", type=Path, default=RESULTS / STORED)
    asked = parser.parse_args()
    found = run(
        asked.method,
        asked.data,
        asked.share,
        asked.test,
        asked.device,
        asked.before,
        asked.memory,
    )
    print(json.dumps(found, indent=1))
    add_result(asked.output, found)


if __name__ == "__main__":
    main()
