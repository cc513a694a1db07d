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

from dxml._core.files import replacing
from dxml.exceptions import ParameterError, advise
from dxml.joint._answering import Answering
from dxml.joint.parts._deep import DeepPart
from dxml.joint.parts._linear import LinearPart

__all__ = ["export_onnx"]

OPSET = 18
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
    """Products of gathered features and weights, added up by label."""
    assert isinstance(part, LinearPart)
    weights = part.head.weights.tocoo()
    n_labels, n_features = weights.shape
    kept = weights.data != 0
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    constants = {
        "columns": weights.col[kept].astype(np.int64),
        "labels": weights.row[kept].astype(np.int64)[:, None],
        "weights": weights.data[kept].astype(np.float32),
        "n_labels": np.array([n_labels], dtype=np.int64),
        "first": np.array([0], dtype=np.int64),
        "second": np.array([1], dtype=np.int64),
        "offset": np.array(-1, dtype=np.float32),
    }
    fill = helper.make_tensor("zero", float32, [1], [0.0])
    nodes = [
        helper.make_node("Gather", ["features", "columns"], ["gathered"], axis=1),
        helper.make_node("Mul", ["gathered", "weights"], ["products"]),
        helper.make_node("Transpose", ["products"], ["by_weight"], perm=[1, 0]),
        helper.make_node("Shape", ["features"], ["shape"]),
        helper.make_node("Slice", ["shape", "first", "second"], ["n"]),
        helper.make_node("Concat", ["n_labels", "n"], ["sizes"], axis=0),
        helper.make_node("ConstantOfShape", ["sizes"], ["zeros"], value=fill),
        helper.make_node(
            "ScatterND", ["zeros", "labels", "by_weight"], ["by_label"], reduction="add"
        ),
        helper.make_node("Transpose", ["by_label"], ["sums"], perm=[1, 0]),
        helper.make_node("Add", ["sums", "offset"], ["scores"]),
    ]
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
