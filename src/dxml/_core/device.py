"""Where to compute."""

from __future__ import annotations

from dxml.exceptions import ParameterError

__all__ = ["memory_for", "resolve_device"]

USUAL_MEMORY = 8e9


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
    """Bytes that training may take where nobody says how many: more on a GPU that has a lot."""
    if device == "cpu":
        return USUAL_MEMORY
    import torch

    return max(USUAL_MEMORY, torch.cuda.get_device_properties(device).total_memory / 4)
