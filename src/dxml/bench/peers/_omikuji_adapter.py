"""omikuji: Parabel-like trees, in Rust. It rejects lines without features and has no seed."""

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


def train(path: str, folder: Path, parameters: dict[str, Any], threads: int, seed: int) -> Any:
    omikuji = import_module("omikuji")
    settings = omikuji.Model.default_hyper_param()
    settings.n_trees = parameters["n_trees"]
    settings.max_depth = parameters["max_depth"]
    model = omikuji.Model.train_on_data(path, settings, n_threads=threads)
    model.save(str(folder))
    return model


def predict(model: Any, X: Any, k: int, threads: int) -> tuple[Any, Any]:
    indices = np.full((X.shape[0], k), -1, dtype=np.int32)
    scores = np.zeros((X.shape[0], k), dtype=np.float32)
    for i in range(X.shape[0]):
        span = slice(X.indptr[i], X.indptr[i + 1])
        pairs = list(zip(X.indices[span].tolist(), X.data[span].tolist(), strict=True))
        best = model.predict(pairs, top_k=k) if pairs else []
        for place, (label, score) in enumerate(best[:k]):
            indices[i, place], scores[i, place] = label, score
    return indices, scores
