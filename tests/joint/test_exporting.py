"""Parts as ONNX graphs: onnxruntime says what the parts say."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from dxml.data import Dataset
from dxml.exceptions import ParameterError
from dxml.joint import Joint
from dxml.joint import _exporting as exporting
from dxml.joint._exporting import export_onnx


def test_the_linear_head(small: tuple[Dataset, Dataset], tmp_path: Path) -> None:
    train, test = small
    model = Joint(device="cpu", candidates="nearest", width=0).fit(train.X, train.Y)
    names = [f"label {i}" for i in range(25)]
    [path] = export_onnx(model, tmp_path / "out", names)
    assert path == tmp_path / "out" / "linear.onnx"
    properties = {each.key: each.value for each in onnx.load(path).metadata_props}
    assert json.loads(properties["labels"]) == names
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    rows = model.scaler_.transform(test.X)
    [found] = session.run(None, {"features": rows.toarray()})
    part = model.parts_["linear"]
    expected = part.head.all_scores(rows)  # type: ignore[attr-defined]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(found + 1).max() > 0.5, "and it says something"
    weights = np.diff(part.head.weights.indptr)  # type: ignore[attr-defined]
    assert weights.max() > exporting.GROUP**2, "sums of sums were needed"
    kinds = {node.op_type for node in onnx.load(path).graph.node}
    assert kinds == {"Gather", "Mul", "Reshape", "ReduceSum", "Add"}, "nothing is scattered"
    again = [session.run(None, {"features": rows.toarray()})[0] for _ in range(20)]
    assert all(np.array_equal(each, found) for each in again)


def test_what_cannot_be_exported_is_said(
    small: tuple[Dataset, Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, _ = small
    model = Joint(device="cpu", candidates="nearest", width=0).fit(train.X, train.Y)
    others = {name: part for name, part in model.parts_.items() if name != "linear"}
    model._ensemble = replace(model._ensemble, parts=others)
    with pytest.raises(ParameterError, match=r"nor an encoder .* frequency.* candidates='nearest'"):
        export_onnx(model, tmp_path)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ParameterError, match=r"needs onnx. .* pip install 'dxml\[onnx\]'"):
        export_onnx(model, tmp_path)
