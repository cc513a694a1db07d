"""The map of a served model's labels: made once, beside the service, then kept as JSON.

It is made in another process, with one thread and low priority: numba's threads must not be started
from two threads at once, and predictions are answered meanwhile. There is at most one such process.
It is ended when another model is loaded, and when the service ends, even if that is killed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dxml.label_map import LabelMap, make_label_map
from dxml.service._engine import Engine
from dxml.service._errors import ServiceError
from dxml.service._served import Served

__all__ = ["LabelMaps", "MapAnswer", "map_content"]

SHOWN = 20_000  # labels on the map, the most frequent ones: a browser must draw them all
_LABELS, _MAP = "labels.npz", "map.npz"
_ALONE = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS"), "1")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MapAnswer:
    """The map as it is sent, and the ETag of its content."""

    content: bytes
    tag: str


class LabelMaps:
    """Makes the map of the engine's model when somebody asks, once for each model loaded.

    Lessons do not change the map; a label taught since is not on it until the model is loaded
    again.
    """

    def __init__(self, engine: Engine, shown: int = SHOWN) -> None:
        self._engine = engine
        self._shown = shown
        self._lock = threading.Lock()
        self._load = -1  # value of `Engine.loads` that the map belongs to
        self._made: MapAnswer | ServiceError | None = None
        self._closed = False
        self._maker: threading.Thread | None = None  # the thread whose map is current
        self._process: subprocess.Popen[bytes] | None = None

    def current(self) -> MapAnswer | None:
        """The map, or None while it is being made; raises where it could not be made."""
        with self._lock:
            if self._load != self._engine.loads and not self._closed:
                self._load, self._made = self._engine.loads, None
                self._end_process()
                work = (self._engine.served,)
                self._maker = threading.Thread(target=self._make, args=work, daemon=True)
                self._maker.start()
            if isinstance(self._made, ServiceError):
                raise self._made
            return self._made

    def close(self) -> None:
        """End the process that makes a map."""
        with self._lock:
            self._closed, self._maker = True, None
            self._end_process()

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _wanted(self) -> bool:
        """Whether the map that this thread makes is still that of the engine's model."""
        return threading.current_thread() is self._maker

    def _make(self, served: Served) -> None:
        made: MapAnswer | ServiceError
        try:
            made = self._answer(served)
        except Exception:  # an exception in a thread would go unnoticed
            if not self._wanted():
                return
            _log.exception("the map of the labels was not made")
            made = ServiceError(
                "internal", "the map could not be made; the service's log says why."
            )
        with self._lock:
            if self._wanted():
                self._made = made

    def _answer(self, served: Served) -> MapAnswer:
        frequency = served.frequency
        order = np.lexsort((np.arange(len(frequency)), -frequency))
        shown = order[frequency[order] > 0][: self._shown]
        labels = self._run(sp.csr_matrix(served.joint.train_labels_)[:, shown])
        content = map_content(labels, [served.names[label] for label in shown], served.n_labels)
        sent = json.dumps(content, separators=(",", ":")).encode()
        return MapAnswer(sent, f'"{hashlib.sha256(sent).hexdigest()[:20]}"')

    def _run(self, Y: sp.csr_matrix) -> LabelMap:
        """`make_label_map` in another process."""
        with tempfile.TemporaryDirectory(prefix="dxml-map-") as folder:
            sp.save_npz(Path(folder) / _LABELS, Y.astype(bool))
            with self._lock:
                if not self._wanted():
                    raise RuntimeError("the service stops, or has another model")
                command = [sys.executable, "-m", __name__, folder]
                process = subprocess.Popen(command, env=os.environ | _ALONE, stdin=subprocess.PIPE)
                self._process = process
            try:
                code = process.wait()
            finally:
                process.stdin.close()  # type: ignore[union-attr]
            if code:
                raise RuntimeError(f"the process that makes the map ended with status {code}")
            with np.load(Path(folder) / _MAP) as arrays:
                return LabelMap(**arrays)


def map_content(labels: LabelMap, names: list[str], total: int) -> dict[str, Any]:
    """What is sent: lists with an entry for each label, places in ten-thousandths."""
    places = np.rint(labels.positions * 10_000).astype(int)
    return {
        "total": total,
        "names": names,
        "points": labels.frequency.tolist(),
        "x": places[:, 0].tolist(),
        "y": places[:, 1].tolist(),
        "related": [row[row >= 0].tolist() for row in labels.related],
        "strength": [
            [round(value, 3) for value in row[own].tolist()]
            for row, own in zip(labels.strength, labels.related >= 0, strict=True)
        ],
    }


def _end_with_the_service() -> None:
    """End this process when the service closes the pipe to its standard input, or is killed."""
    os.read(sys.stdin.fileno(), 1)  # unbuffered: a buffer's lock would block the exit
    os._exit(1)


def _main(folder: Path) -> None:
    threading.Thread(target=_end_with_the_service, daemon=True).start()
    os.nice(10)
    labels = make_label_map(sp.load_npz(folder / _LABELS))
    np.savez(folder / _MAP, **vars(labels))


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
