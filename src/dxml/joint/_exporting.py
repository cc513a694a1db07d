"""Parts of a joint model as ONNX graphs, for programs without Python.

Linear head: ``features`` (n, n_features), the scaled rows that the model was trained on, for a
tagger tf-idf rows of length 1 → ``scores`` (n, n_labels), wᵀx − 1. Weights stay sparse: what a
label weighs is gathered, multiplied and added up.

Text encoder: ``ids`` (n, length), token ids, and ``real`` (n, length), False where a text is padded
→ ``logits`` (n, n_labels). The tokenizer is that of the model's folder.

The graphs' metadata has the labels' names. What several parts say is weighed by `Mixture`, which is
not exported: the probabilities are the model's own.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.files import replacing
from dxml.exceptions import ParameterError, advise
from dxml.joint._answering import Answering
from dxml.joint.parts._deep import DeepPart
from dxml.joint.parts._linear import LinearPart

__all__ = ["export_onnx"]

OPSET = 18
GROUP = 8  # products, or sums of them, that are added up at a time
IR = 10  # of the file; older runtimes read up to theirs


def export_onnx(model: Answering, folder: Path, names: Sequence[str] | None = None) -> list[Path]:
    """Write ``linear.onnx`` and ``deep.onnx``, those of the parts that a model has.

    Parameters
    ----------
    folder : Path
        Made where it is missing.
    names : sequence of str, optional
        Of the labels, for the graphs' metadata.
    """
    onnx = _needed("onnx")
    written = []
    for name, build in (("linear", _linear_graph), ("deep", _deep_graph)):
        part = model.parts_.get(name)
        if part is not None:
            graph = build(onnx, part)
            onnx.helper.set_model_props(graph, {"labels": json.dumps(list(names or ()))})
            with replacing(folder / f"{name}.onnx") as path:
                onnx.save(graph, str(path))
            written.append(folder / f"{name}.onnx")
    if not written:
        parts = ", ".join(model.parts_)
        remedy = advise(
            "candidates='nearest' and width=0", "--set candidates=nearest --set width=0"
        )
        raise ParameterError(
            "this model has neither a linear head nor an encoder to export; its parts are "
            f"{parts}. Train it with {remedy} to get a linear head."
        )
    return written


def _needed(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise ParameterError(
            f"exporting to ONNX needs {package}. Install it with: pip install 'dxml[onnx]'."
        ) from None


def _linear_graph(onnx: Any, part: Any) -> Any:
    """Products of gathered features and weights, added up by label.

    They are added up in groups of `GROUP`, then the sums of groups in groups, until each label has
    one. A graph that scatters all products to their labels adds some of them at once where the
    runtime has several threads, and loses one now and then.
    """
    assert isinstance(part, LinearPart)
    weights = sp.csr_matrix(part.head.weights, copy=True)
    weights.eliminate_zeros()
    n_labels, n_features = weights.shape
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    constants = {"last": np.array([2], dtype=np.int64), "offset": np.array(-1, dtype=np.float32)}
    nodes, before = [], "features"
    columns, values = weights.indices.astype(np.int64), weights.data.astype(np.float32)
    counts, level = np.diff(weights.indptr), 0
    while True:
        groups = np.maximum(-(-counts // GROUP), 1)
        starts = GROUP * np.concatenate([[0], np.cumsum(groups)[:-1]])
        places = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(len(columns))
        size = GROUP * int(groups.sum())
        constants |= {
            f"columns{level}": _filled(size, places, columns),
            f"weights{level}": _filled(size, places, values),
            f"shape{level}": np.array([0, size // GROUP, GROUP], dtype=np.int64),
        }
        nodes += [
            helper.make_node("Gather", [before, f"columns{level}"], [f"gathered{level}"], axis=1),
            helper.make_node("Mul", [f"gathered{level}", f"weights{level}"], [f"products{level}"]),
            helper.make_node("Reshape", [f"products{level}", f"shape{level}"], [f"groups{level}"]),
            helper.make_node("ReduceSum", [f"groups{level}", "last"], [f"sums{level}"], keepdims=0),
        ]
        before = f"sums{level}"
        if (groups == 1).all():
            break
        columns = np.arange(size // GROUP, dtype=np.int64)
        values = np.ones(size // GROUP, dtype=np.float32)
        counts, level = groups, level + 1
    nodes.append(helper.make_node("Add", [before, "offset"], ["scores"]))
    graph = helper.make_graph(
        nodes,
        "linear head",
        [helper.make_tensor_value_info("features", float32, ["n", n_features])],
        [helper.make_tensor_value_info("scores", float32, ["n", n_labels])],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opset = helper.make_opsetid("", OPSET)
    made = helper.make_model(graph, opset_imports=[opset], producer_name="dxml", ir_version=IR)
    onnx.checker.check_model(made)
    return made


def _filled(size: int, places: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values at their places, and 0 elsewhere."""
    found = np.zeros(size, dtype=values.dtype)
    found[places] = values
    return found


def _deep_graph(onnx: Any, part: Any) -> Any:
    """The encoder with its head, as torch traces it."""
    import torch

    assert isinstance(part, DeepPart)
    _needed("onnxscript")
    head = part.head
    weight, bias = head.placed(torch.device("cpu"))

    class Logits(torch.nn.Module):
        """Token ids → logits."""

        def __init__(self) -> None:
            super().__init__()
            self.encoder = head.encoder.on(torch.device("cpu"), "float32")
            self.weight = torch.nn.Parameter(weight.float(), requires_grad=False)
            self.bias = torch.nn.Parameter(bias, requires_grad=False)

        def forward(self, ids: torch.Tensor, real: torch.Tensor) -> Any:
            return torch.addmm(self.bias, self.encoder(ids, real)[0], self.weight.T)

    network = Logits().eval()
    ids = torch.ones(2, 8, dtype=torch.int64)
    real = torch.tensor([[True] * 8, [True] * 5 + [False] * 3])
    n, length = torch.export.Dim("n"), torch.export.Dim("length", min=2, max=4096)
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                network,
                (ids, real),
                dynamo=True,
                verbose=False,
                opset_version=OPSET,
                input_names=["ids", "real"],
                output_names=["logits"],
                dynamic_shapes={"ids": {0: n, 1: length}, "real": {0: n, 1: length}},
            )
    finally:
        log.setLevel(level)
    assert program is not None
    return program.model_proto
