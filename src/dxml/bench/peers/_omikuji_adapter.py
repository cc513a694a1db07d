"""omikuji: trees over labels, in Rust. It rejects lines without features and has no seed.

Parabel is its default. Bonsai is the setting that its README gives for it: ``cluster_k=100``,
``cluster_balanced=False``, ``max_depth=3``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np


def prepare(X: Any, Y: Any, folder: Path) -> str:
    """The repository's text file; points without features or labels are left out."""
    import_module("omikuji")  # loading is not training
    kept = np.flatnonzero((np.diff(X.indptr) > 0) & (np.diff(Y.indptr) > 0))
    path = folder / "train.txt"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{len(kept)} {X.shape[1]} {Y.shape[1]}\n")
        for i in kept:
            labels = ",".join(map(str, Y.indices[Y.indptr[i] : Y.indptr[i + 1]]))
            span = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip(X.indices[span], X.data[span], strict=True)
            file.write(labels + "".join(f" {j}:{v:.7g}" for j, v in pairs) + "\n")
    return str(path)


def parse(path: str, threads: int) -> tuple[Any, Any]:
    """The file in the library's memory, and its threads; `train_on_data` does both at once."""
    omikuji = import_module("omikuji")
    lib, ffi = omikuji.lib, omikuji.ffi
    pool = lib.init_omikuji_thread_pool(threads)
    data = lib.load_omikuji_data_set(ffi.new("char[]", path.encode()), pool)
    if data == ffi.NULL:
        raise RuntimeError("omikuji cannot read the data")
    return data, pool


def train(data: Any, folder: Path, parameters: dict[str, Any], threads: int, seed: int) -> Any:
    omikuji = import_module("omikuji")
    settings = omikuji.Model.default_hyper_param()
    settings.linear_c = parameters["C"]
    for name in ("n_trees", "max_depth", "cluster_k", "cluster_balanced"):
        setattr(settings, name, parameters[name])
    points, pool = data
    found = omikuji.lib.train_omikuji_model(points, settings, pool)
    omikuji.lib.free_omikuji_data_set(points)
    return omikuji.Model(found)


def save(model: Any, folder: Path) -> None:
    model.save(str(folder))


def load(folder: Path, parameters: dict[str, Any]) -> tuple[Any, int]:
    """The model and the width of its beam."""
    return import_module("omikuji").Model.load(str(folder)), parameters["beam_size"]


def predict(loaded: tuple[Any, int], X: Any, k: int, threads: int) -> tuple[Any, Any]:
    """Point by point: the library has no batches in Python."""
    model, beam_size = loaded
    model.init_prediction_thread_pool(threads)
    indices = np.full((X.shape[0], k), -1, dtype=np.int32)
    scores = np.zeros((X.shape[0], k), dtype=np.float32)
    for i in range(X.shape[0]):
        span = slice(X.indptr[i], X.indptr[i + 1])
        pairs = list(zip(X.indices[span].tolist(), X.data[span].tolist(), strict=True))
        best = model.predict(pairs, beam_size=beam_size, top_k=k) if pairs else []
        for place, (label, score) in enumerate(best[:k]):
            indices[i, place], scores[i, place] = label, score
    return indices, scores
