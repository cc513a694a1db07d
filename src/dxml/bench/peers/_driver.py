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
import traceback
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


def checked(found: Any, shape: tuple[int, int], n_labels: int) -> tuple[Any, Any]:
    """Ids and scores as they are stored; what cannot be a ranking is refused in one sentence."""
    wanted = f"predict must return ids and scores, two arrays of shape {shape}, padded with -1"
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise ValueError(f"{wanted}; got {_told(found)}.")
    ids, scores = (np.asarray(each) for each in found)
    if ids.shape != shape or scores.shape != shape:
        raise ValueError(f"{wanted}; got shapes {ids.shape} and {scores.shape}.")
    if ids.dtype.kind not in "iu":
        raise ValueError(f"ids must be whole numbers, got {ids.dtype}. Return ids, then scores.")
    if scores.dtype.kind not in "iuf":
        raise ValueError(f"scores must be real numbers, got {scores.dtype}.")
    out = np.argwhere((ids < -1) | (ids >= n_labels))
    if len(out):
        raise ValueError(
            f"ids must be columns of Y, 0 to {n_labels - 1}, or -1 where a row has no more; "
            f"got {ids[tuple(out[0])]} in row {out[0][0]}."
        )
    late = _first((ids[:, :-1] < 0) & (ids[:, 1:] >= 0))
    if late is not None:
        raise ValueError(
            f"-1 stands behind the labels of a row; got {_some(ids[late])} as ids in row {late}."
        )
    ordered = np.sort(ids, axis=1)
    twice = _first((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0))
    if twice is not None:
        raise ValueError(
            f"a row names each label once; got ids {_some(ids[twice])} in row {twice}. "
            "Pad with -1 where there are fewer labels."
        )
    scores = np.where(ids < 0, 0, scores).astype(np.float32)
    bad = _first(~np.isfinite(scores))
    if bad is not None:
        raise ValueError(f"scores must be finite, got {_some(scores[bad])} in row {bad}.")
    rises = _first((scores[:, 1:] > scores[:, :-1]) & (ids[:, 1:] >= 0))
    if rises is not None:
        raise ValueError(
            f"labels come best first, so scores fall along a row; got {_some(scores[rises])} "
            f"in row {rises}. Sort by falling score."
        )
    return ids.astype(np.int32), scores


def _told(found: Any) -> str:
    """
    >>> _told(None), _told((1, 2, 3))
    ('NoneType', 'tuple of 3')
    """
    name = type(found).__name__
    return f"{name} of {len(found)}" if isinstance(found, tuple | list) else name


def _first(places: Any) -> int | None:
    """The first row that has one."""
    rows = np.flatnonzero(places.any(axis=1))
    return int(rows[0]) if len(rows) else None


def _some(row: Any) -> str:
    """The start of a row; ids are shown whole.

    >>> _some(np.array([123456, -1])), _some(np.array([0.123456, 2, 3, 4, 5, 6]))
    ('123456, -1', '0.1235, 2, 3, 4, 5, …')
    """
    form = "d" if row.dtype.kind in "iu" else ".4g"
    return ", ".join(format(each, form) for each in row[:5]) + (", …" if len(row) > 5 else "")


def one_line(step: str, error: BaseException) -> str:
    """What is said last, and so is stored as the reason.

    >>> one_line("train", ValueError("two\\nlines"))
    'train raised ValueError: two lines'
    """
    return " ".join(f"{step} raised {type(error).__name__}: {error}".split())


def main(folder: Path) -> None:
    job = json.loads((folder / "job.json").read_text("utf-8"))
    adapter = load_adapter(job["adapter"])
    seconds: dict[str, float] = {}

    def timed(name: str, step: Any, *given: Any) -> Any:
        start = time.perf_counter()
        try:
            found = step(*given)
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            sys.exit(one_line(name, error))
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
    found = timed("predict", adapter.predict, model, X_test, job["k"], threads)
    try:
        indices, scores = checked(found, (X_test.shape[0], job["k"]), Y.shape[1])
    except ValueError as error:
        sys.exit(str(error))
    np.savez(folder / "ranking.npz", indices=indices, scores=scores)
    measured = {
        "seconds": seconds,
        "model_bytes": sum(p.stat().st_size for p in model_folder.rglob("*") if p.is_file()),
        "peak_bytes": peak_bytes(),
    }
    (folder / "measured.json").write_text(json.dumps(measured), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
