"""One run in one process: read, fit, save, predict, measure, store.

``python -m dxml.bench._worker RESULTS`` with a job as a line of JSON on standard input; the runner
starts it. The end of the input is that of the runner, and ends the run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from dxml._core.device import resolve_device
from dxml._core.params import parameters_of
from dxml.base import Classifier
from dxml.bench import _machine as machine
from dxml.bench._machine import plain
from dxml.bench._own_files import checksums
from dxml.bench._results import Store, Stored
from dxml.bench._sources import load_parts, load_text_parts
from dxml.bench._spec import Run
from dxml.bench.peers import is_peer, peer_of
from dxml.bench.peers._environment import make_environment, run_peer
from dxml.data import Dataset, make_planted
from dxml.exceptions import DxmlError
from dxml.methods import load_model, method_class
from dxml.progress import StageTimer
from dxml.topk import TopK

__all__ = ["Settings", "carry_out", "failure"]

_TAIL = 2000  # characters of a traceback that are kept
_SHAPES = {"n_features_in_", "n_labels_", "n_samples_"}

CPU_POINTS = 1000  # by which the time of a prediction without the GPU is measured
CPU_WARM_UP = 200  # ranked before them


@dataclass(frozen=True)
class Settings:
    """How runs are carried out; not what they compute."""

    device: str = "auto"
    threads: int | None = None
    warm_up: bool = True
    command: str = ""


def carry_out(run: Run, store: Store, settings: Settings) -> Stored:
    """Carry out a run in this process and store it; a failure is a stored result too."""
    files = {"files": checksums(run.method, run.dataset)}  # as they are before they are read
    try:
        measure = _measure_peer if is_peer(run.method) else _measure
        record, ranking = measure(run, store, settings)
    except Exception as error:  # whatever it is, the other runs go on and the reader is told
        detail = "" if isinstance(error, DxmlError) else "".join(traceback.format_exception(error))
        detail = getattr(error, "detail", detail[-_TAIL:])
        failed = failure(f"{type(error).__name__}: {error}", detail, settings)
        return store.put(run, {**failed, **files}, None)
    return store.put(run, {**record, **files, **_circumstances(settings)}, ranking)


def failure(error: str, detail: str, settings: Settings) -> dict[str, Any]:
    """What is stored of a run that failed."""
    return {"error": plain(error), "detail": plain(detail), **_circumstances(settings)}


def _circumstances(settings: Settings) -> dict[str, Any]:
    return {
        "settings": asdict(settings),
        "machine": machine.describe_machine(),
        "versions": machine.describe_versions(),
        "commit": machine.commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _describe_data(train: Dataset, test: Dataset) -> dict[str, float]:
    """Table 1 of the paper: averages are over training and test points together."""
    entries, points = train.Y.nnz + test.Y.nnz, train.n_samples + test.n_samples
    frequency = np.bincount(train.Y.indices, minlength=train.n_labels)
    return {
        "train": train.n_samples,
        "test": test.n_samples,
        "features": train.n_features,
        "labels": train.n_labels,
        "points_per_label": entries / max(train.n_labels, 1),
        "labels_per_point": entries / max(points, 1),
        "labels_without_train_points": int(np.count_nonzero(frequency == 0)),
    }


def _estimator(run: Run, device: str) -> Classifier:
    """The method with the run's parameters; seed and device go where the method has them."""
    cls = method_class(run.method)
    known = parameters_of(cls)
    common = {"random_state": run.seed, "device": device}
    return cls(**{**{k: v for k, v in common.items() if k in known}, **dict(run.parameters)})


def _warm_up(run: Run, device: str) -> None:
    """Compile and load on tiny data, so that seconds are the method's and not the compiler's."""
    tiny = make_planted(200, 60, 12, labels_per_point=2, features_per_point=10, random_state=0)
    for settings in method_class(run.method).variants:
        try:
            model = _estimator(run, device).set_params(**settings)
            model.fit(tiny.X, tiny.Y).predict_topk(tiny.X, 3)
        except DxmlError:
            pass  # settings that are right for the real data may not fit 200 points


def _measure(run: Run, store: Store, settings: Settings) -> tuple[dict[str, Any], TopK]:
    timer = StageTimer()
    if settings.warm_up:
        _warm_up(run, settings.device)
        _forget_gpu_peak()
    with timer.stage("read"):
        train, test = load_parts(run.dataset, run.split, run.part)
    model = _estimator(run, settings.device)
    before = machine.peak_bytes()
    read, asked = _texts(run, train)
    start = time.perf_counter()
    model.fit(train.X, train.Y, progress=timer, **read)
    seconds = time.perf_counter() - start
    told = {"parameters": model.get_params(), "chosen": _chosen(model)}
    k = min(run.k, train.n_labels)
    with tempfile.TemporaryDirectory() as folder:
        with timer.stage("save"):
            saved = model.save(Path(folder) / "model")
        size = sum(file.stat().st_size for file in saved.iterdir())
        del model  # users predict with a model that is opened again, and so do peers
        with timer.stage("load"):
            model = load_model(saved)
        ranking = model.predict_topk(test.X, k, progress=timer, **asked)
        predicting = {"predict": timer.seconds["predict"]}
        if resolve_device(getattr(model, "device", "cpu")) != "cpu":
            predicting["predict_cpu"] = _seconds_on_cpu(model, test, k, asked)
    return {
        **told,
        "seconds": {"train": seconds, **predicting},
        "stages": timer.seconds,
        "ms_per_point": 1000 * timer.seconds["predict"] / max(test.n_samples, 1),
        "model_bytes": size,
        "memory": {"peak": machine.peak_bytes(), "before_fit": before, "gpu_peak": _gpu_peak()},
        "data": _describe_data(train, test),
    }, ranking


def _seconds_on_cpu(model: Classifier, test: Dataset, k: int, asked: dict[str, Any]) -> float:
    """Seconds to rank the test part without the GPU, by its first `CPU_POINTS` points.

    A few points before them take what the first prediction on a CPU has to load and compile. The
    model is left as it was.
    """
    device = model.get_params()["device"]
    model.set_params(device="cpu")

    def rank(size: int) -> float:
        start = time.perf_counter()
        own = {name: given[:size] for name, given in asked.items()}
        model.predict_topk(test.X[:size], k, **own)
        return time.perf_counter() - start

    rank(min(CPU_WARM_UP, test.n_samples))
    some = min(CPU_POINTS, test.n_samples)
    seconds = rank(some)
    model.set_params(device=device)
    return seconds * test.n_samples / max(some, 1)


def _texts(run: Run, train: Dataset) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `fit` and `predict_topk` get beside features: texts, where a run names an encoder."""
    if dict(run.parameters).get("encoder", "none") == "none":
        return {}, {}
    learnt, asked = load_text_parts(run.dataset, run.split, run.part)
    names = {"label_texts": train.label_names} if run.method == "joint" else {}
    return {"texts": learnt, **names}, {"texts": asked}


def _chosen(model: Classifier) -> dict[str, Any]:
    """Single values that `fit` decided on, such as ``n_neighbors_``."""
    found = {}
    values = {name: getattr(model, name) for name in ("C_",) if hasattr(model, name)}
    for name, value in (vars(model) | values).items():
        if name.endswith("_") and name not in _SHAPES and not name.startswith("_"):
            value = value.item() if isinstance(value, np.generic) else value
            if isinstance(value, bool | int | float | str):
                found[name] = value
    return found


def _forget_gpu_peak() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def _gpu_peak() -> int | None:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return int(torch.cuda.max_memory_allocated())


def _measure_peer(run: Run, store: Store, settings: Settings) -> tuple[dict[str, Any], TopK]:
    peer = peer_of(run.method)
    timer = StageTimer()
    python = make_environment(peer, store.root / "peers")
    with timer.stage("read"):
        train, test = load_parts(run.dataset, run.split, run.part)
    with tempfile.TemporaryDirectory() as folder:
        done = run_peer(
            peer,
            python,
            train,
            test,
            Path(folder),
            parameters=dict(run.parameters),
            k=run.k,
            threads=settings.threads or machine.cores(),
            seed=run.seed,
        )
    taken, seconds = done.measured, done.measured["seconds"]
    return {
        "parameters": {**peer.parameters, **dict(run.parameters)},
        "chosen": {},
        "requirements": [word for step in peer.steps for word in step],
        "seconds": {"train": seconds["train"], "predict": seconds["predict"]},
        "stages": {**seconds, "read": timer.seconds["read"] + seconds["read"]},
        "ms_per_point": 1000 * seconds["predict"] / max(test.n_samples, 1),
        "model_bytes": taken["model_bytes"],
        "memory": {"peak": taken["peak_bytes"], "before_fit": None, "gpu_peak": None},
        "data": _describe_data(train, test),
    }, done.ranking


def _end_with_the_runner() -> None:
    """Wait for the end of the input; then end this process and whatever it started."""
    sys.stdin.read()
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def main() -> None:
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_runner, daemon=True).start()
    carry_out(Run.from_dict(job["run"]), Store(sys.argv[1]), Settings(**job["settings"]))


if __name__ == "__main__":
    main()
