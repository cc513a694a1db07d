"""PECOS: XR-Linear on a tree of labels, or one-versus-all."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np


def prepare(X: Any, Y: Any, folder: Path) -> tuple[Any, Any]:
    import_module("pecos.xmc.xlinear.model")  # loading is not training
    return X.astype(np.float32), Y.astype(np.float32)


def train(data: Any, folder: Path, parameters: dict[str, Any], threads: int, seed: int) -> Any:
    xmc, xlinear = import_module("pecos.xmc"), import_module("pecos.xmc.xlinear.model")
    X, Y = data
    chain = None
    if not parameters["one_vs_all"]:
        features = xmc.LabelEmbeddingFactory.create(Y, X, method="pifa")
        chain = xmc.Indexer.gen(features, indexer_type="hierarchicalkmeans", seed=seed)
    model = xlinear.XLinearModel.train(X, Y, C=chain, threads=threads)
    model.save(str(folder))
    return model


def predict(model: Any, X: Any, k: int, threads: int) -> tuple[Any, Any]:
    found = model.predict(X, only_topk=k, threads=threads).tocsr()
    indices = np.full((X.shape[0], k), -1, dtype=np.int32)
    scores = np.zeros((X.shape[0], k), dtype=np.float32)
    for i in range(X.shape[0]):
        span = slice(found.indptr[i], found.indptr[i + 1])
        order = np.argsort(-found.data[span], kind="stable")[:k]
        indices[i, : len(order)] = found.indices[span][order]
        scores[i, : len(order)] = found.data[span][order]
    return indices, scores
