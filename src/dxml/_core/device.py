"""Choose between CPU and GPU, and how much memory training may use."""

from __future__ import annotations

from dxml.exceptions import ParameterError

__all__ = ["memory_for", "resolve_device"]

DEFAULT_MEMORY = 8e9  # bytes


def resolve_device(device: str) -> str:
    """``auto`` means the GPU where torch finds one, else the CPU."""
    if device == "cpu":
        return device
    import torch

    present = torch.cuda.is_available()
    if device == "cuda" and not present:
        raise ParameterError("device is 'cuda', but torch finds no GPU here. Use 'cpu' or 'auto'.")
    return "cuda" if present else "cpu"


def memory_for(device: str) -> float:
    """Default memory budget of training in bytes: a quarter of a GPU's memory if that is more."""
    if device == "cpu":
        return DEFAULT_MEMORY
    import torch

    return max(DEFAULT_MEMORY, torch.cuda.get_device_properties(device).total_memory / 4)
