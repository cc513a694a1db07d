"""More than 2³¹ stored values: trained on, saved, loaded and asked, where the answer is known.

    python benchmarks/two_billion.py --folder big                       # 18 GB there, then removed
    python benchmarks/two_billion.py --folder big --runs knn --memory 6GB --unsaved
    python benchmarks/two_billion.py --folder big --points 3000         # small; prints only

Points are in groups of 500. A group has features of its own, and a point half of them, drawn at
random. Its labels are its sort, of which a group has four, each with features that say so, and its
place in the group, which nothing but its nearest point tells. A query is a point with a tenth of
its features left out: `knn` must name sort and place of that point, `joint` the sort. Half of the
queries are copies of points behind the 2³¹st value. Each run is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.memory import open_limit
from dxml.bench._machine import circumstances
from dxml.data._mapped import read_mapped, write_mapped
from dxml.methods import load_model, method_class
from memory import SETTINGS as LEAST_WORK
from own_memory import OwnMemory
from stored_results import read_results, write_results

STORED = "two-billion.json"
LONG = 2**31
POINTS, GROUP, WIDTH = 602_000, 500, 7_200  # a point has half of its group's features
SORTS, SIGNS = 4, 20  # sorts of a group, and features that say which
QUERIES = 200  # copies of points before the 2³¹st value, and as many behind it
SETTINGS: dict[str, dict[str, Any]] = {
    "knn": {"n_neighbors": 1},
    "joint": LEAST_WORK,
}


def has(point: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Which of its group's features a point has."""
    found = rng.integers(0, 256, WIDTH // 8, dtype=np.uint8)
    mask = np.unpackbits(found).view(bool)
    mask[: SORTS * SIGNS] = np.repeat(np.arange(SORTS) == point % SORTS, SIGNS)
    return mask


def row(point: int, *, left_out: float = 0.0) -> npt.NDArray[np.int32]:
    """The features of a point, which follow from its number."""
    mask = has(point, np.random.default_rng(point))
    if left_out:
        mask &= np.random.default_rng([point, 1]).random(WIDTH) >= left_out
    return (point // GROUP * WIDTH + np.flatnonzero(mask)).astype(np.int32)


def matrix(rows: list[npt.NDArray[np.int32]], width: int) -> sp.csr_matrix:
    """Ones, but three where a feature says what sort a point is of."""
    ids = np.concatenate(rows)
    values = np.where(ids % WIDTH < SORTS * SIGNS, np.float32(3), np.float32(1))
    ends = np.concatenate([[0], np.cumsum([len(ids) for ids in rows])])
    return sp.csr_matrix((values, ids, ends), shape=(len(rows), width))


def labels_of(points: npt.NDArray[np.int64], n_groups: int) -> sp.csr_matrix:
    """Sort and place of each point."""
    sort = points // GROUP * SORTS + points % SORTS
    place = n_groups * SORTS + points % GROUP
    ends = 2 * np.arange(len(points) + 1)
    both = np.stack([sort, place], axis=1).ravel()
    shape = (len(points), n_groups * SORTS + GROUP)
    return sp.csr_matrix((np.ones(len(both), bool), both, ends), shape=shape)


def blocks(n: int) -> Iterator[tuple[sp.csr_matrix, sp.csr_matrix]]:
    n_groups = -(-n // GROUP)
    for start in range(0, n, GROUP):
        points = np.arange(start, min(start + GROUP, n))
        X = matrix([row(int(point)) for point in points], n_groups * WIDTH)
        yield X, labels_of(points, n_groups)


def asked_for(indptr: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Points before the 2³¹st value and behind it; of little data, some from all of it."""
    n = len(indptr) - 1
    first = int(np.searchsorted(indptr, LONG)) if indptr[-1] > LONG else n // 2
    rng = np.random.default_rng(0)
    return np.sort(
        np.concatenate([rng.integers(0, first, QUERIES), rng.integers(first, n, QUERIES)])
    )


def one_run(folder: Path, method: str, memory: str | None, saved: bool) -> dict[str, Any]:
    """Train, save, load and ask; what was right."""
    begin = time.perf_counter()
    with open_limit(memory):
        data = read_mapped(folder / "data.dxml")
        n_groups = -(-data.n_samples // GROUP)
        Y = data.Y if method == "knn" else data.Y[:, : n_groups * SORTS]
        model = method_class(method)(**SETTINGS[method]).fit(data.X, Y)
        trained = time.perf_counter() - begin
        points = asked_for(data.X.indptr)
        queries = [row(int(point), left_out=0.1) for point in points]
        found = model.predict_topk(matrix(queries, data.n_features), 2)
    truth = labels_of(points, n_groups).indices.reshape(-1, 2)
    right = found.indices[:, 0] == truth[:, 0]
    if method == "knn":
        right = (np.sort(found.indices, axis=1) == truth).all(axis=1)
    behind = data.X.indptr[points] >= LONG
    if not behind.any():
        behind = points >= np.median(points)
    result = {
        "method": method,
        "memory": memory,
        "stored": int(data.X.indptr[-1]),
        "points": data.n_samples,
        "right before": f"{int(right[~behind].sum())} of {int((~behind).sum())}",
        "right behind": f"{int(right[behind].sum())} of {int(behind.sum())}",
        "all right": bool(right.all()),
        "trained": round(trained),
    }
    if saved:
        path = model.save(folder / f"model-{method}")
        del model
        again = load_model(path).predict_topk(matrix(queries, data.n_features), 2)
        result["same after loading"] = bool(
            np.array_equal(again.indices, found.indices)
            and np.array_equal(again.scores, found.scores)
        )
        shutil.rmtree(path)
    result["seconds"] = round(time.perf_counter() - begin)
    return result


def watched(options: argparse.Namespace, method: str) -> dict[str, Any]:
    """A run in a process of its own, and the most that it had in memory."""
    command = [sys.executable, __file__, "--folder", str(options.folder), "--alone", method]
    command += ["--memory", options.memory] if options.memory else []
    command += ["--unsaved"] if options.unsaved else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with OwnMemory(process.pid) as memory:
        said, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{method} ended with {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**json.loads(said.splitlines()[-1]), "cpu": round(spent), "peak": memory.peak}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="for 18 GB and models as large")
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--runs", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--memory", help="a promise of memory, such as 6GB")
    parser.add_argument("--unsaved", action="store_true", help="not saved and loaded")
    parser.add_argument("--kept", action="store_true", help="use what lies there, and leave it")
    parser.add_argument("--store", action="store_true", help="add to results/two-billion.json")
    parser.add_argument("--alone", choices=list(SETTINGS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        os.environ.setdefault("TMPDIR", str(options.folder))
        print(
            json.dumps(one_run(options.folder, options.alone, options.memory, not options.unsaved))
        )
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    data = options.folder / "data.dxml"
    began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        if not (options.kept and data.is_dir()):
            write_mapped(data, blocks(options.points))
        print(f"{began}: {(data / 'X.data').stat().st_size // 4:,} values", flush=True)
        found = []
        for method in options.runs:
            found.append(watched(options, method))
            print(json.dumps(found[-1]), flush=True)
    finally:
        if not options.kept:
            shutil.rmtree(data, ignore_errors=True)
    if options.store and all(run["stored"] > LONG for run in found):
        about = {**circumstances(device="cpu", seed=0), "began": began}
        write_results(STORED, [*read_results(STORED), *({**about, **run} for run in found)])
    good = all(run["all right"] and run.get("same after loading", True) for run in found)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
