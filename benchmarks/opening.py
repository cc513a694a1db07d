"""How long a large joint model takes to open, and how much of it two processes share.

    python benchmarks/opening.py

The model has the shape of one of Amazon-670K: the points are the generated twin's, 60 weights a
label are drawn at random, as nothing depends on what they are. It is opened by processes of their
own: first after it was written, when it is read through and checked, then again, then by two at a
time. Each ranks 100 points after that. Memory is what /proc/PID/smaps says, in MB, less what the
process held before. The result is written to benchmarks/results/opening.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import scipy.sparse as sp

from dxml._core.scaling import FeatureScaler
from dxml._core.targets import Target
from dxml._learners.linear_head import LinearHead
from dxml._neighbors.cosine import rare_features
from dxml.bench._machine import circumstances
from dxml.data import make_twin
from dxml.joint import Joint
from dxml.joint._ensemble import Ensemble
from dxml.joint._mixture import default_mixture
from dxml.joint._plan import Plan
from dxml.joint._points import FeatureSpace, Known, tie_order_of
from dxml.joint.parts._frequency import Frequency, log_frequency
from dxml.joint.parts._linear import LinearPart
from dxml.joint.parts._vote import Vote
from stored_results import write_results

STORED = "opening.json"
WEIGHTS = 60  # a label
COMMON_POINTS = 4_000  # as dxml.joint takes it
KINDS = ("Rss", "Shared_Clean", "Private_Clean", "Private_Dirty")


def large_model(name: str, n_samples: int | None) -> Joint:
    """A joint model of points, vote and linear head, without any training."""
    data = make_twin(name, n_samples)
    (n, d), n_labels = data.X.shape, data.n_labels
    rng = np.random.default_rng(0)
    features = np.sort(rng.integers(0, d, (n_labels, WEIGHTS), dtype=np.int32), axis=1).ravel()
    values = rng.standard_normal(n_labels * WEIGHTS, dtype=np.float32) / 5
    ends = np.arange(n_labels + 1, dtype=np.int32) * WEIGHTS
    head = LinearHead(sp.csr_matrix((values, features, ends), shape=(n_labels, d)))
    parts = {
        "frequency": Frequency(log_frequency(data.Y)),
        "vote": Vote(),
        "linear": LinearPart(head),
    }
    searched = rare_features(data.X, min(0.1, COMMON_POINTS / n))
    known = Known(data.X, data.Y, tie_order_of(data.Y), FeatureSpace(data.X, searched))
    plan = Plan(False, {name: part.settings for name, part in parts.items()})
    model = Joint(device="cpu")
    model.n_samples_, model.n_features_in_, model.n_labels_ = n, d, n_labels
    model.label_names_, model.target_, model.seconds_ = None, Target(), {}
    model.held_out_ = None
    model.label_frequency_, model._tie_place = known.counts, known.tie_order
    model.scaler_ = FeatureScaler(None, None, rows=True)
    model.mixture_ = default_mixture({name: part.opinion for name, part in parts.items()})
    model._ensemble = Ensemble(plan, known, parts, searched, 100).rounded(model.precision)
    return model


def memory() -> dict[str, float]:
    """What this process holds now, in MB."""
    found = {}
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]:
        kind, size, *_ = line.split()
        found[kind.removesuffix(":")] = int(size) / 1024
    return {kind: found[kind] for kind in KINDS}


def open_and_rank(folder: str) -> None:
    """What one process of its own does; it waits for a line once it has ranked."""
    before, start = memory(), time.perf_counter()
    model = Joint.load(folder)
    seconds = time.perf_counter() - start
    opened = memory()
    shape = (100, model.n_features_in_)
    rows = sp.random(*shape, 76 / shape[1], format="csr", dtype=np.float32, random_state=0)
    model.predict_topk(rows[:1], 5)
    start = time.perf_counter()
    model.predict_topk(rows, 5)
    spent = (time.perf_counter() - start) / shape[0]
    print("ready", flush=True)
    sys.stdin.readline()  # until the others have ranked too
    ranked = memory()
    print(
        json.dumps(
            {
                "seconds": round(seconds, 3),
                "milliseconds_a_point": round(1000 * spent, 2),
                "opened_mb": {kind: round(opened[kind] - before[kind], 1) for kind in KINDS},
                "ranked_mb": {kind: round(ranked[kind] - before[kind], 1) for kind in KINDS},
            }
        ),
        flush=True,
    )
    sys.stdin.read()  # until the others have looked too


def ask(folder: Path, count: int) -> list[dict[str, object]]:
    """What processes that are there at the same time say."""
    command = [sys.executable, __file__, "--open", str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(command, **pipes) for _ in range(count)]  # type: ignore[call-overload]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    said = [json.loads(process.stdout.readline()) for process in running]
    for process in running:
        process.communicate()
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--twin", default="amazon-670k")
    parser.add_argument("--points", type=int, help="as many as the data set has by default")
    parser.add_argument("--open", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.open:
        open_and_rank(arguments.open)
        return
    with TemporaryDirectory() as root:
        folder = Path(root) / "model"
        model = large_model(arguments.twin, arguments.points)
        model.save(folder)
        result = {
            "twin": arguments.twin,
            "points": model.n_samples_,
            "features": model.n_features_in_,
            "labels": model.n_labels_,
            "folder_mb": round(sum(file.stat().st_size for file in folder.iterdir()) / 2**20, 1),
        }
        del model
        time.sleep(3)  # a file that has just been written is not remembered as checked
        result["first"], result["again"] = ask(folder, 1)[0], ask(folder, 1)[0]
        result["two"] = ask(folder, 2)
        result |= circumstances(device="cpu", seed=0)
    write_results(STORED, result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
