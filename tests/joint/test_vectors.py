"""Which vectors a joint model uses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._deep.static_vectors import StaticVectors, find_static
from dxml.exceptions import ParameterError
from dxml.joint import Joint
from dxml.joint import _vectors as module

X = sp.csr_matrix(np.eye(30, 12, dtype=np.float32) + np.eye(30, 12, -12, dtype=np.float32))
LONG = sp.csr_matrix(np.ones((30, 40), dtype=np.float32) + np.eye(30, 40, dtype=np.float32))
Y = sp.csr_matrix(np.arange(30)[:, None] % 3 == np.arange(3))
TEXTS = [f"{word} and ship" for word in ("heart", "lung", "bone")] * 10


def fitted(X: sp.csr_matrix, **settings: str) -> bool:
    model = Joint(device="cpu", scaling="rows", **settings).fit(X, Y, texts=TEXTS)  # type: ignore
    return "vectors" in model.parts_


def test_auto_is_the_package_for_short_texts(
    static_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def find(name: str, max_length: int) -> StaticVectors | None:
        asked.append(name)
        return find_static(str(static_folder), max_length)

    monkeypatch.setattr(module, "find_static", find)
    assert fitted(X) and asked == ["wordllama"]
    assert not fitted(LONG), "a text of 40 words is not short"
    assert fitted(LONG, vectors=str(static_folder))
    assert not fitted(X, vectors="none")
    assert not Joint(device="cpu").fit(X, Y).parts_.get("vectors"), "there are no texts"
    monkeypatch.setattr(module, "find_static", lambda name, length: None)
    assert not fitted(X), "the package is not installed"


def test_a_cpu_is_offered_frozen_and_static_vectors_and_they_work(
    encoder_folder: Path, static_folder: Path
) -> None:
    with pytest.raises(ParameterError) as refused:
        fitted(X, encoder=str(encoder_folder), encoder_minutes=0)  # type: ignore[arg-type]
    said = str(refused.value)
    assert "would take about" in said and "pip install 'dxml[vectors]'" in said
    assert f"encoder='none', vectors={str(encoder_folder)!r}" in said
    assert fitted(X, encoder="none", vectors=str(encoder_folder))
    assert fitted(X, encoder="none", vectors=str(static_folder))
