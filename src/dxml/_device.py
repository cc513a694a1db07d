"""Where to compute."""

from __future__ import annotations

from dxml.exceptions import ParameterError

__all__ = ["resolve_device"]


def resolve_device(device: str) -> str:
    """``auto`` means the GPU where torch finds one, else the CPU."""
    if device == "cpu":
        return device
    import torch

    present = torch.cuda.is_available()
    if device == "cuda" and not present:
        raise ParameterError("device is 'cuda', but torch finds no GPU here. Use 'cpu' or 'auto'.")
    return "cuda" if present else "cpu"
