"""Runs one adapter inside a peer's own environment: ``python _driver.py JOB_FOLDER``.

A plain script: Python, numpy and scipy are all it may rely on. The folder holds ``job.json`` and
the arrays; ``ranking.npz`` and ``measured.json`` are left in it. Features are scaled to rows of
length 1 for every peer alike.
"""

from __future__ import annotations

import importlib.util
import json
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp


def load_adapter(path: str) -> Any:
    """The module in a file."""
    spec = importlib.util.spec_from_file_location("adapter", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def unit_rows(X: Any) -> Any:
    """Rows of length 1; a row of zeros stays as it is."""
    X = sp.csr_matrix(X, dtype=np.float32)
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    scale = np.divide(1.0, lengths, out=np.ones_like(lengths), where=lengths > 0)
    scaled = sp.csr_matrix(sp.diags(scale.astype(np.float32)) @ X)
    scaled.sort_indices()  # the product leaves them as they come, and some libraries insist
    return scaled


def peak_bytes() -> int:
    """Most memory this process has held at once."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        found = None
    if found:
        return int(found[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main(folder: Path) -> None:
    job = json.loads((folder / "job.json").read_text("utf-8"))
    adapter = load_adapter(job["adapter"])
    seconds: dict[str, float] = {}

    def timed(name: str, step: Any, *given: Any) -> Any:
        start = time.perf_counter()
        found = step(*given)
        seconds[name] = time.perf_counter() - start
        return found

    start = time.perf_counter()
    X, Y, X_test = (sp.load_npz(folder / f"{name}.npz") for name in ("X", "Y", "X_test"))
    X, X_test = unit_rows(X), unit_rows(X_test)
    model_folder = folder / "model"
    model_folder.mkdir()
    seconds["read"] = time.perf_counter() - start
    parameters, threads = job["parameters"], job["threads"]
    state = timed("prepare", adapter.prepare, X, Y, folder)
    if hasattr(adapter, "parse"):
        state = timed("parse", adapter.parse, state, threads)
    model = timed("train", adapter.train, state, model_folder, parameters, threads, job["seed"])
    if hasattr(adapter, "save"):
        timed("save", adapter.save, model, model_folder)
    if hasattr(adapter, "load"):
        model = timed("load", adapter.load, model_folder, parameters)
    indices, scores = timed("predict", adapter.predict, model, X_test, job["k"], threads)
    np.savez(
        folder / "ranking.npz",
        indices=np.asarray(indices, dtype=np.int32),
        scores=np.asarray(scores, dtype=np.float32),
    )
    measured = {
        "seconds": seconds,
        "model_bytes": sum(p.stat().st_size for p in model_folder.rglob("*") if p.is_file()),
        "peak_bytes": peak_bytes(),
    }
    (folder / "measured.json").write_text(json.dumps(measured), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
