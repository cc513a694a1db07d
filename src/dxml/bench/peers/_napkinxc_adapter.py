"""napkinXC: probabilistic label trees, or binary relevance. Its seed holds for one thread only."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np


def prepare(X: Any, Y: Any, folder: Path) -> tuple[Any, list[list[int]]]:
    import_module("napkinxc.models")  # loading is not training
    ends = zip(Y.indptr[:-1], Y.indptr[1:], strict=True)
    return X, [Y.indices[start:stop].tolist() for start, stop in ends]


def train(data: Any, folder: Path, parameters: dict[str, Any], threads: int, seed: int) -> Any:
    """It trains into its folder: saving is part of it."""
    X, Y = data
    return _model(folder, parameters, threads, seed).fit(X, Y)


def _model(folder: Path, parameters: dict[str, Any], threads: int, seed: int) -> Any:
    models = import_module("napkinxc.models")
    shared = {"liblinear_c": parameters["C"], "threads": threads, "seed": seed}
    if parameters["one_vs_all"]:
        return models.BR(str(folder), **shared)
    return models.PLT(str(folder), ensemble=parameters["ensemble"], **shared)


def load(folder: Path, parameters: dict[str, Any]) -> Any:
    model = _model(folder, parameters, 0, 0)
    model.load()
    return model


def predict(model: Any, X: Any, k: int, threads: int) -> tuple[Any, Any]:
    model.set_params(threads=threads)
    indices = np.full((X.shape[0], k), -1, dtype=np.int32)
    scores = np.zeros((X.shape[0], k), dtype=np.float32)
    for i, row in enumerate(model.predict_proba(X, top_k=k)):
        for place, (label, score) in enumerate(row[:k]):
            indices[i, place], scores[i, place] = label, score
    return indices, scores
