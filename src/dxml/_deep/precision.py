"""Quicker arithmetic for an encoder on a CPU.

``benchmarks/deep_speed.py`` prints what each choice costs and how far it agrees with float32;
benchmarks/results/deep-experiments/speed.txt is a run of it.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import torch
from torch import Tensor, nn

from dxml._deep.encoder import TextEncoder

__all__ = ["Precision", "quicker", "quickest_here"]

Precision = Literal["float32", "bfloat16", "int8"]


@cache
def quickest_here() -> Precision:
    """The arithmetic in which this CPU applies an encoder: the quickest that ranks as float32 does.

    bfloat16 where the CPU multiplies it by itself (AVX-512 BF16 or AMX), else float32. int8 is
    never chosen: it ranks otherwise more often and gains less.
    """
    asks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    own = any(getattr(torch.cpu, name, lambda: False)() for name in asks)
    return "bfloat16" if own else "float32"


def quicker(encoder: TextEncoder, precision: Precision) -> TextEncoder:
    """The encoder with its large products in another arithmetic, changed in place."""
    if precision == "float32":
        return encoder
    for module in list(encoder.transformer.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, _Int8(child) if precision == "int8" else _Bfloat16(child))
    return encoder


class _Int8(nn.Module):
    """A linear layer in 8 bits: one scale for each row of weights and for each token.

    A token's scale is its own, so that a text scores the same in any batch.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach()
        self._scale = _scale(weight).squeeze(1)
        self._weight = (weight / self._scale[:, None]).round().to(torch.int8).T
        self._bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, values: Tensor) -> Tensor:
        rows = values.flatten(0, -2)
        scale = _scale(rows)
        whole = torch._int_mm((rows / scale).round_().to(torch.int8), self._weight)
        product = whole.float().mul_(scale).mul_(self._scale)
        if self._bias is not None:
            product += self._bias
        return product.unflatten(0, values.shape[:-1])


def _scale(rows: Tensor) -> Tensor:
    """What a row is divided by to lie within -127 and 127."""
    return rows.abs().amax(dim=1, keepdim=True).clamp_(min=1e-12) / 127


class _Bfloat16(nn.Module):
    """A linear layer that multiplies in bfloat16."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear.to(torch.bfloat16)

    def forward(self, values: Tensor) -> Tensor:
        product: Tensor = self.linear(values.to(torch.bfloat16))
        return product.float()
