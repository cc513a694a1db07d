"""Whether a promise of memory is kept, and what it costs, on data of ten times its size.

    python benchmarks/memory.py                 # stored as results/memory.json
    python benchmarks/memory.py --times 1       # less data; prints only
    python benchmarks/memory.py --page          # docs/guide/large.md's table from what is stored

`dxml train` and `dxml predict` run as processes of their own, with the promise and without one.
Their memory is looked at from outside (`own_memory`). Models and predictions with the promise and
without it must be the same.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp

from dxml._core.memory import parse_size
from dxml.bench._machine import circumstances
from dxml.data._mapped import write_mapped
from own_memory import OwnMemory
from stored_results import part_of, read_results, write_results

STORED = "memory.json"
PART = part_of("docs/guide/large.md", "memory", "memory")
POINTS, LABELS, COMMON = 20_000, 2_000, 100_000
OWN, SIGNATURE = 4, 6  # labels of a point, and rare features of a label
BLOCK = 500  # points generated at a time
SETTINGS = {
    "candidates": "nearest",
    "width": 0,
    "n_trees": 0,
    "C": 1.0,
    "max_iter": 2,
    "n_negatives": 5,
    "n_candidates": 10,
    "device": "cpu",
}

Row = dict[str, Any]


def blocks(size: int, seed: int = 0) -> Iterator[tuple[sp.csr_matrix, sp.csr_matrix]]:
    """Points of `size` bytes together: many common features, and the rare ones of their labels."""
    rng = np.random.default_rng(seed)
    share = size / POINTS / 8 / COMMON
    if share > 0.9:
        raise SystemExit("that is too much for this data: give a smaller promise, or --times.")
    width = COMMON + LABELS * SIGNATURE
    for _ in range(0, POINTS, BLOCK):
        owned = np.stack([rng.choice(LABELS, OWN, replace=False) for _ in range(BLOCK)])
        ids, values, ends = [], [], [0]
        for labels in owned:
            common = np.flatnonzero(rng.random(COMMON, dtype=np.float32) < share)
            rare = COMMON + (labels[:, None] * SIGNATURE + np.arange(SIGNATURE)).ravel()
            ids.append(np.concatenate([common, np.sort(rare)]).astype(np.int32))
            few = np.full(len(rare), 1.0, np.float32)
            values.append(np.concatenate([np.full(len(common), 0.01, np.float32), few]))
            ends.append(ends[-1] + len(ids[-1]))
        X = sp.csr_matrix((np.concatenate(values), np.concatenate(ids), ends), (BLOCK, width))
        marked = np.ones(owned.size, bool), np.sort(owned, axis=1).ravel()
        starts = np.arange(BLOCK + 1) * OWN
        yield X, sp.csr_matrix((*marked, starts), shape=(BLOCK, LABELS))


def watched(*arguments: object) -> Row:
    """Seconds of a command, those of its processors, and the most that it had in memory."""
    command = [sys.executable, "-m", "dxml", *map(str, arguments)]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    with OwnMemory(process.pid) as memory:
        _, failed, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
    process.returncode = failed
    if failed:
        raise SystemExit(f"dxml {arguments[0]} failed")
    return {"seconds": seconds, "cpu": used.ru_utime + used.ru_stime, "peak": memory.peak}


def content(folder: Path) -> tuple[Any, int]:
    """What a model holds but for times: its config, and the checksum of its arrays."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    for name in ("seconds", "sha256"):
        config.pop(name, None)
    return {**config, "arrays": None}, config["arrays"]["crc32"]


def measure(promise: str, times: float, folder: Path) -> list[Row]:
    size = int(parse_size(promise) * times)
    data, few = folder / "data.dxml", folder / "few.dxml"
    write_mapped(data, blocks(size))
    first = next(blocks(size, seed=1))
    write_mapped(few, [first] * 4)
    chosen = [part for pair in SETTINGS.items() for part in ("--set", f"{pair[0]}={pair[1]}")]
    held = sum(file.stat().st_size for file in data.iterdir())
    rows, made = [], {}
    for name, limit in (("none", []), (promise, ["--memory", promise])):
        model, found = folder / f"model-{name}", folder / f"{name}.tsv"
        for command, row in (
            ("train", watched("train", data, "-m", model, "-q", *chosen, *limit)),
            ("predict", watched("predict", few, "-m", model, "-o", found, "-q", *limit)),
        ):
            rows.append({"command": command, "memory": name, "data": held, **row})
            print(json.dumps(rows[-1]), flush=True)
        made[name] = (content(model), found.read_bytes())
        shutil.rmtree(model)
    if made["none"] != made[promise]:
        raise SystemExit("the model or its predictions are not the same with the promise.")
    return rows


def render() -> str:
    """The table of the page."""
    stored = read_results(STORED)
    promise, rows = stored["promise"], stored["rows"]
    lines = [
        "| command | `--memory` | memory at most | seconds, of processors |",
        "|---|---|---|---|",
    ]
    for row in rows:
        limit = "" if row["memory"] == "none" else row["memory"]
        spent = f"{row['seconds']:.0f} s, {row['cpu']:.0f} s"
        lines.append(f"| {row['command']} | {limit} | {row['peak'] / 1e6:,.0f} MB | {spent} |")
    cost = [
        next(row["cpu"] for row in rows if (row["command"], row["memory"]) == (command, limit))
        for command in ("train", "predict")
        for limit in (promise, "none")
    ]
    return "\n".join(
        [
            *lines,
            "",
            f"{POINTS:,} points of {rows[0]['data'] / 1e9:.1f} GB on the disk, "
            f"{rows[0]['data'] / parse_size(promise):.0f} times the promise. Memory is what a "
            "process has of its own (RssAnon), looked at from outside. With the promise training "
            f"took {cost[0] / cost[1]:.2f} times the processors' time, predicting "
            f"{cost[2] / cost[3]:.2f} times; model and predictions are the same. {stored['note']} "
            f"`{stored['command']}` on {stored['machine']}, {stored['date']}.",
        ]
    )


def write_page() -> None:
    PART.write(render())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--promise", default="450MB", help="of memory; 450MB by default")
    parser.add_argument("--times", type=float, default=10, help="the data's size, in promises")
    parser.add_argument("--page", action="store_true", help="only write the page's table")
    parser.add_argument("--note", default="", help="a sentence that is stored, on the machine")
    options = parser.parse_args()
    if options.page:
        write_page()
        return
    with TemporaryDirectory(prefix="dxml-memory-") as folder:
        rows = measure(options.promise, options.times, Path(folder))
    kept = all(
        row["peak"] <= parse_size(options.promise) for row in rows if row["memory"] != "none"
    )
    print(f"the promise of {options.promise} was kept: {kept}")
    if options.times >= 10:
        record = {
            "note": options.note,
            "promise": options.promise,
            "settings": SETTINGS,
            **circumstances(device="cpu", seed=0),
            "rows": rows,
        }
        write_results(STORED, record)
        write_page()
    if not kept:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
