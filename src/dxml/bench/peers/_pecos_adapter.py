"""PECOS: XR-Linear on one or several trees of labels, or one-versus-all."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp


def prepare(X: Any, Y: Any, folder: Path) -> tuple[Any, Any]:
    import_module("pecos.xmc.xlinear.model")  # loading is not training
    return X.astype(np.float32), Y.astype(np.float32)


def train(data: Any, folder: Path, parameters: dict[str, Any], threads: int, seed: int) -> Any:
    """A model for each tree; trees differ by the seed of their clusters."""
    xmc, xlinear = import_module("pecos.xmc"), import_module("pecos.xmc.xlinear.model")
    X, Y = data
    settings = {"Cp": parameters["C"], "Cn": parameters["C"], "threads": threads}
    if parameters["one_vs_all"]:
        return [xlinear.XLinearModel.train(X, Y, C=None, **settings)]
    features = xmc.LabelEmbeddingFactory.create(Y, X, method="pifa")
    models = []
    for tree in range(parameters["n_trees"]):
        chain = xmc.Indexer.gen(features, indexer_type="hierarchicalkmeans", seed=seed + tree)
        models.append(xlinear.XLinearModel.train(X, Y, C=chain, **settings))
    return models


def save(models: list[Any], folder: Path) -> None:
    for number, model in enumerate(models):
        model.save(str(folder / str(number)))


def load(folder: Path, parameters: dict[str, Any]) -> tuple[list[Any], int]:
    """For prediction alone, as the manual advises, and the width of the beam."""
    xlinear = import_module("pecos.xmc.xlinear.model")
    names = sorted(path.name for path in folder.iterdir())
    opened = [xlinear.XLinearModel.load(str(folder / name), is_predict_only=True) for name in names]
    return opened, parameters["beam_size"]


def predict(loaded: tuple[list[Any], int], X: Any, k: int, threads: int) -> tuple[Any, Any]:
    """The mean of the trees' scores; a label that a tree does not find has 0 there."""
    models, beam_size = loaded
    deep = k if len(models) == 1 else max(k, beam_size)
    options = {"only_topk": deep, "beam_size": beam_size, "threads": threads}
    found = sum(model.predict(X, **options).tocsr() for model in models)
    found = sp.csr_matrix(found / len(models))
    indices = np.full((X.shape[0], k), -1, dtype=np.int32)
    scores = np.zeros((X.shape[0], k), dtype=np.float32)
    for i in range(X.shape[0]):
        span = slice(found.indptr[i], found.indptr[i + 1])
        order = np.argsort(-found.data[span], kind="stable")[:k]
        indices[i, : len(order)] = found.indices[span][order]
        scores[i, : len(order)] = found.data[span][order]
    return indices, scores
