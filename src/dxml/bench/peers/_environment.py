"""A peer's environment, and a run in it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dxml.bench.peers import Peer
from dxml.data import Dataset
from dxml.exceptions import DxmlError
from dxml.topk import TopK

__all__ = ["PeerError", "PeerResult", "make_environment", "run_peer"]

_TAIL = 2000  # characters of a failed command's output that are kept


class PeerError(DxmlError, RuntimeError):
    """A peer did not install, or its run failed; `detail` is the end of what it printed."""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


@dataclass(frozen=True)
class PeerResult:
    """A ranking and the numbers that `driver` measured."""

    ranking: TopK
    measured: dict[str, Any]


def _call(command: list[str], what: str, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        printed = (done.stderr or done.stdout).strip()[-_TAIL:]
        last = printed.rpartition("\n")[2]
        died = f"signal {-done.returncode}" if done.returncode < 0 else f"code {done.returncode}"
        raise PeerError(f"{what} ended with {died}: {last}", printed)


def make_environment(peer: Peer, root: Path) -> Path:
    """The Python of the peer's environment under `root`; made where it is not there yet.

    A peer that requires nothing runs in the environment of dxml.
    """
    if not peer.steps:
        return Path(sys.executable)
    digest = hashlib.sha256(repr(peer.steps).encode()).hexdigest()[:8]
    folder = root / f"{peer.name}-{digest}"
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    root.mkdir(parents=True, exist_ok=True)
    with open(root / f".{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # runs at once may want the same environment
        if ready.is_file():
            return python
        shutil.rmtree(folder, ignore_errors=True)
        _call([sys.executable, "-m", "venv", str(folder)], f"making an environment for {peer.name}")
        for step in peer.steps:
            command = [str(python), "-m", "pip", "install", "--quiet", *step]
            _call(command, f"installing {' '.join(step)}")
        ready.touch()
    return python


def run_peer(
    peer: Peer,
    python: Path,
    train: Dataset,
    test: Dataset,
    folder: Path,
    *,
    parameters: dict[str, Any],
    k: int,
    threads: int,
    seed: int,
) -> PeerResult:
    """Train and predict in the peer's environment; `folder` is empty and may be thrown away."""
    job = {
        "adapter": str(peer.adapter),
        "parameters": {**peer.parameters, **parameters},
        "k": min(k, train.n_labels),
        "threads": threads,
        "seed": seed,
    }
    (folder / "job.json").write_text(json.dumps(job), "utf-8")
    for name, matrix in (("X", train.X), ("Y", train.Y), ("X_test", test.X)):
        sp.save_npz(folder / f"{name}.npz", matrix, compressed=False)
    driver = Path(__file__).with_name("_driver.py")
    own = {"OMP_NUM_THREADS": str(threads), "PYTHONPATH": ""}
    _call([str(python), str(driver), str(folder)], f"the run of {peer.name}", {**os.environ, **own})
    if not (folder / "measured.json").is_file():
        raise PeerError(f"the run of {peer.name} ended before it had ranked anything")
    with np.load(folder / "ranking.npz", allow_pickle=False) as arrays:
        ranking = TopK(arrays["indices"], arrays["scores"])
    return PeerResult(ranking, json.loads((folder / "measured.json").read_text("utf-8")))
