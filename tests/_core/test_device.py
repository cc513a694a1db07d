"""Where to compute, and in how much memory."""

from __future__ import annotations

import os
import sys

import pytest
import torch

from dxml._core.device import memory_for, resolve_device


def test_memory_where_nobody_says_how_much() -> None:
    assert memory_for("cpu") == 8e9


@pytest.mark.parametrize(
    ("nodes", "device"), [(["null", "nvme0"], "cpu"), (["null", "nvidia0"], "cuda")]
)
def test_torch_is_asked_only_where_the_system_shows_a_gpu(
    monkeypatch: pytest.MonkeyPatch, nodes: list[str], device: str
) -> None:
    class Cuda:
        @staticmethod
        def is_available() -> bool:
            monkeypatch.setitem(sys.modules, "torch", torch)
            return True

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "listdir", lambda folder: nodes)
    monkeypatch.setattr(torch, "cuda", Cuda)
    monkeypatch.setattr("builtins.__import__", _import_torch(torch, __import__))
    monkeypatch.delitem(sys.modules, "torch")
    assert resolve_device("auto") == device
    assert resolve_device("cpu") == "cpu"
    assert resolve_device("cuda") == "cuda"  # asked for, so torch decides


def _import_torch(module: object, others: object) -> object:
    def found(name: str, *rest: object) -> object:
        return module if name == "torch" else others(name, *rest)  # type: ignore[operator]

    return found


@pytest.mark.gpu
def test_memory_of_a_gpu() -> None:
    whole = torch.cuda.mem_get_info()[1]
    assert memory_for("cuda") == pytest.approx(max(8e9, whole / 4), rel=0.05)
