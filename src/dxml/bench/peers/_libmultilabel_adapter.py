"""LibMultiLabel: linear one-versus-rest, or a tree (which fails on labels without points).

``options`` are liblinear's. Without any the library takes ``-s 1``, the dual problem of the squared
hinge loss; ``-s 2``, the primal one, is slower; its examples have ``-s 1 -B 1 -e 0.0001``. It takes
as many threads as the machine has cores, whatever it is told.
It saves models by pickle. Only the weights are saved here, for their size, and the model that was
trained predicts.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

ROWS = 1000  # points whose scores of all labels are held at a time


def prepare(X: Any, Y: Any, folder: Path) -> tuple[Any, Any]:
    import_module("libmultilabel.linear")  # loading is not training
    return X.astype(np.float64), Y.astype(np.float64)


def train(data: Any, folder: Path, parameters: dict[str, Any], threads: int, seed: int) -> Any:
    linear = import_module("libmultilabel.linear")
    X, Y = data
    np.random.seed(seed)
    if parameters["tree"]:
        options = f"{parameters['options']} -e 0.0001 -c {parameters['C']}"
        return linear.train_tree(Y, X, options, verbose=False)
    options = f"{parameters['options']} -m {threads} -c {parameters['C']}"
    return linear.train_1vsrest(Y, X, options=options, verbose=False)


def save(model: Any, folder: Path) -> None:
    weights = model.weights if hasattr(model, "weights") else model.flat_model.weights
    if sp.issparse(weights):
        sp.save_npz(folder / "weights.npz", weights)
    else:
        np.save(folder / "weights.npy", np.asarray(weights), allow_pickle=False)


def predict(model: Any, X: Any, k: int, threads: int) -> tuple[Any, Any]:
    linear = import_module("libmultilabel.linear")
    indices, scores = [], []
    for start in range(0, X.shape[0], ROWS):
        values = np.asarray(
            linear.predict_values(model, X[start : start + ROWS].astype(np.float64))
        )
        order = np.argsort(-values, axis=1, kind="stable")[:, :k]
        indices.append(order)
        scores.append(np.take_along_axis(values, order, axis=1))
    return np.concatenate(indices), np.concatenate(scores)
