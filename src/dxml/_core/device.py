"""Choose between CPU and GPU, and how much memory training may use."""

from __future__ import annotations

import os
import sys

from dxml.exceptions import ParameterError

__all__ = ["memory_for", "resolve_device"]

DEFAULT_MEMORY = 8e9  # bytes
GPU_NODES = ("nvidia", "nvhost", "kfd", "dxg")
"""How the devices of GPUs are called in /dev: NVIDIA's, those of its small boards, AMD's, and those
of Linux inside Windows."""


def resolve_device(device: str) -> str:
    """``auto`` means the GPU where torch finds one, else the CPU."""
    if device == "cpu" or (device == "auto" and _has_no_gpu()):
        return "cpu"
    import torch

    present = torch.cuda.is_available()
    if device == "cuda" and not present:
        raise ParameterError("device is 'cuda', but torch finds no GPU here. Use 'cpu' or 'auto'.")
    return "cuda" if present else "cpu"


def _has_no_gpu() -> bool:
    """Whether the system shows no GPU: torch, which takes long to import, need not be asked."""
    if "torch" in sys.modules or sys.platform != "linux":
        return False
    return not any(name.startswith(GPU_NODES) for name in os.listdir("/dev"))


def memory_for(device: str) -> float:
    """Default memory budget of training in bytes: a quarter of a GPU's memory if that is more."""
    if device == "cpu":
        return DEFAULT_MEMORY
    import torch

    return max(DEFAULT_MEMORY, torch.cuda.get_device_properties(device).total_memory / 4)
