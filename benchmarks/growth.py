"""How time and memory grow with points, features, labels and labels a point.

    python benchmarks/growth.py                  # joint and dxml, each axis doubled three times
    python benchmarks/growth.py --only joint     # one method

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
from datetime import date
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from dxml.bench._machine import commit, describe_machine, describe_versions

STORED = Path(__file__).parent / "results" / "growth.json"
BASE = {"points": 20_000, "features": 20_000, "labels": 5_000, "labels_per_point": 3}
AXES = tuple(BASE)
DOUBLINGS = 3
METHODS: dict[str, dict[str, Any]] = {
    "joint": {"device": "cpu"},
    "dxml": {"device": "cpu", "epochs": 5},
}
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"
)


def measure(method: str, shape: dict[str, int]) -> dict[str, float]:
    """Fit once in this process, after fits of tiny data that compile."""
    from dxml.bench._machine import peak_bytes
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=METHODS, help="one method")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(*json.loads(arguments.measure))))
        return
    stored = json.loads(STORED.read_text("utf-8")) if STORED.is_file() else {"fits": {}}
    for method in [arguments.only] if arguments.only else METHODS:
        for axis in AXES:
            sizes = [BASE[axis] * 2**i for i in range(DOUBLINGS + 1)]
            found = [in_a_process(method, {**BASE, axis: size}) for size in sizes]
            seconds = [round(entry["seconds"], 2) for entry in found]
            megabytes = [round(entry["bytes"] / 1e6, 1) for entry in found]
            fit = {
                "sizes": sizes,
                "seconds": seconds,
                "megabytes": megabytes,
                "exponent_seconds": round(exponent(sizes, seconds), 2),
                "exponent_memory": round(exponent(sizes, [max(m, 0.1) for m in megabytes]), 2),
                "n_log_n": round(bound(sizes), 2),
            }
            stored["fits"][f"{method} {axis}"] = fit
            stored |= {
                "base": BASE,
                "command": " ".join(["python", *sys.argv]),
                "commit": commit(),
                "date": date.today().isoformat(),
                "machine": describe_machine(),
                "threads": 1,
                "versions": describe_versions(),
            }
            STORED.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
            print(f"{method:6} {axis:17} {fit}", flush=True)


if __name__ == "__main__":
    main()
