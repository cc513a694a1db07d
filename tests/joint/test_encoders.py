"""Which encoder a joint model opens, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.exceptions import DataFormatError, ParameterError
from dxml.joint import Joint

X = sp.csr_matrix(np.eye(30, 12, dtype=np.float32) + np.eye(30, 12, -12, dtype=np.float32))
Y = sp.csr_matrix(np.arange(30)[:, None] % 3 == np.arange(3))
TEXTS = [f"text {i % 3}" for i in range(30)]


def test_without_a_gpu_auto_is_none() -> None:
    with_texts = Joint(device="cpu", vectors="none").fit(X, Y, texts=TEXTS)
    without = Joint(device="cpu").fit(X, Y)
    assert "deep" not in with_texts.parts_
    assert np.array_equal(
        with_texts.predict_topk(X, 3, texts=TEXTS).scores, without.predict_topk(X, 3).scores
    )


def test_a_text_for_each_point_and_each_label(encoder_folder: object) -> None:
    model = Joint(device="cpu", encoder=str(encoder_folder))
    with pytest.raises(DataFormatError, match="expected a text for each of 30 points, got 29"):
        model.fit(X, Y, texts=TEXTS[1:])
    with pytest.raises(DataFormatError, match="expected a text for each of 3 labels, got 2"):
        model.fit(X, Y, texts=TEXTS, label_texts=["a", "b"])


def test_what_would_take_a_cpu_too_long_is_refused(encoder_folder: object) -> None:
    model = Joint(device="cpu", encoder=str(encoder_folder), encoder_minutes=0)
    with pytest.raises(ParameterError, match="would take about .* Train on a GPU, allow more"):
        model.fit(X, Y, texts=TEXTS)
