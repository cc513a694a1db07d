"""How time and memory grow with points, features, labels and labels a point.

    python benchmarks/growth.py                  # joint and dxml, each axis doubled three times
    python benchmarks/growth.py --only joint     # one method
    python benchmarks/growth.py --jobs 8         # several processes at once
    python benchmarks/growth.py --page           # docs/guide/large.md's table from what is stored

Data is generated documents. One axis is doubled while the others stay as in `BASE`. Each run has a
process of its own with one thread, so that its CPU seconds hardly depend on what else the machine
does. Printed and stored is the exponent e of a fit cost ~ size^e; n log n has an exponent of about
1.1 over these sizes. Memory is what the peak has more than that of a process with the data alone.
The smallest data are too large for a kernel over all points, which is used for small data only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from math import log
from typing import Any

import numpy as np

from dxml.bench._machine import circumstances, machine_name, peak_bytes
from stored_results import part_of, read_results, write_results

STORED = "growth.json"
PART = part_of("docs/guide/large.md", "growth", "growth")
BASE = {"points": 20_000, "features": 20_000, "labels": 5_000, "labels_per_point": 3}
AXES = tuple(BASE)
DOUBLINGS = 3
METHODS: dict[str, dict[str, Any]] = {
    "joint": {"device": "cpu", "C": 1.0},  # by default two or more are tried, as the data ask for
    "dxml": {"device": "cpu", "epochs": 5},
}
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"
)


def measure(method: str, shape: dict[str, int]) -> dict[str, float]:
    """Fit once in this process, after fits of tiny data that compile."""
    from dxml.data import make_planted
    from dxml.data._documents import make_documents
    from dxml.methods import method_class

    tiny = make_planted(200, 60, 12, labels_per_point=2, features_per_point=10)
    for settings in method_class(method).variants:
        method_class(method)(**{**METHODS[method], **settings}).fit(tiny.X, tiny.Y)
    data = make_documents(
        shape["points"], shape["features"], shape["labels"], shape["labels_per_point"], 40.0
    )
    before, start = peak_bytes(), time.process_time()
    method_class(method)(**METHODS[method]).fit(data.X, data.Y)
    return {"seconds": time.process_time() - start, "bytes": max(peak_bytes() - before, 1)}


def in_a_process(method: str, shape: dict[str, int]) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--measure", json.dumps([method, shape])],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **_ONE_THREAD},
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def exponent(sizes: list[int], costs: list[float]) -> float:
    """The slope of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def bound(sizes: list[int]) -> float:
    """The exponent that n log n has between the first and the last size."""
    first, last = sizes[0], sizes[-1]
    return 1 + log(log(last) / log(first)) / log(last / first)


def fitted(sizes: list[int], found: list[dict[str, float]]) -> dict[str, Any]:
    """What is stored of one axis."""
    seconds = [round(entry["seconds"], 2) for entry in found]
    megabytes = [round(entry["bytes"] / 1e6, 1) for entry in found]
    return {
        "sizes": sizes,
        "seconds": seconds,
        "megabytes": megabytes,
        "exponent_seconds": round(exponent(sizes, seconds), 2),
        "exponent_memory": round(exponent(sizes, [max(m, 0.1) for m in megabytes]), 2),
        "n_log_n": round(bound(sizes), 2),
    }


def run(methods: list[str], jobs: int) -> None:
    """Every fit, the largest first; what all methods gave is stored when the last has ended."""
    sizes = {axis: [BASE[axis] * 2**i for i in range(DOUBLINGS + 1)] for axis in AXES}
    shapes = {(axis, size): {**BASE, axis: size} for axis in AXES for size in sizes[axis]}
    # The base is the first size of every axis, and is measured once.
    wanted = {(method, *sorted(shape.items())) for method in methods for shape in shapes.values()}
    order = sorted(wanted, key=lambda job: (job[0] == "joint", -log_size(dict(job[1:]))))
    with ThreadPoolExecutor(jobs) as pool:
        costs = pool.map(lambda job: in_a_process(job[0], dict(job[1:])), order)
        known = {}
        for job, cost in zip(order, costs, strict=True):
            known[job] = cost
            print(*job, cost, flush=True)
    stored = read_results(STORED) or {"fits": {}}
    about = circumstances(device="cpu", seed=0, threads=1)
    for method in methods:
        for axis in AXES:
            found = [known[method, *sorted(shapes[axis, size].items())] for size in sizes[axis]]
            fit = {**fitted(sizes[axis], found), **about, "jobs": jobs}
            stored["fits"][f"{method} {axis}"] = fit
            print(f"{method:6} {axis:17} {fit}", flush=True)
    stored["base"] = BASE
    write_results(STORED, stored)


def log_size(shape: dict[str, int]) -> float:
    """The logarithm of the product of all sizes."""
    return sum(log(size) for size in shape.values())


def render() -> str:
    """The table of the page."""
    stored = read_results(STORED)
    names = {"labels_per_point": "labels a point"}
    lines = [
        "| method | doubled three times | seconds of a processor | exponent | memory, MB | "
        "exponent | n log n |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, fit in stored["fits"].items():
        method, axis = name.split(" ")
        span = f"{names.get(axis, axis)}, {fit['sizes'][0]:,} to {fit['sizes'][-1]:,}"
        seconds = ", ".join(f"{each:.1f}" for each in fit["seconds"])
        memory = ", ".join(f"{each:.0f}" for each in fit["megabytes"])
        lines.append(
            f"| {method} | {span} | {seconds} | {fit['exponent_seconds']:.2f} | {memory} | "
            f"{fit['exponent_memory']:.2f} | {fit['n_log_n']:.2f} |"
        )
    base = ", ".join(f"{size:,} {names.get(axis, axis)}" for axis, size in stored["base"].items())
    runs = {
        f"`{fit['command']}`, {fit['jobs']} at once, {fit['date']}, commit {fit['commit']}"
        for fit in stored["fits"].values()
    }
    (machine,) = {machine_name(fit["machine"]) for fit in stored["fits"].values()}
    return "\n".join(
        [
            *lines,
            "",
            f"Generated documents; what is not doubled stays at {base}. Each fit has a process "
            f"with one thread. On {machine}: {'; '.join(sorted(runs))}.",
        ]
    )


def write_page() -> None:
    PART.write(render())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=METHODS, help="one method")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--page", action="store_true", help="only write the page's table")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(*json.loads(arguments.measure))))
        return
    if not arguments.page:
        run([arguments.only] if arguments.only else list(METHODS), arguments.jobs)
    write_page()


if __name__ == "__main__":
    main()
