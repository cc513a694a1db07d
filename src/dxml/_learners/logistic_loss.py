"""The logistic loss of all labels without the logits of all labels: a chunk of them at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

__all__ = ["chunked_logistic"]


class _ChunkedLogistic(torch.autograd.Function):
    """Makes the gradients on the way forward, while the logits of a chunk are at hand."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        rows: Tensor,
        columns: Tensor,
        chunk: int,
    ) -> Tensor:
        (learners, n, _), n_labels = hidden.shape, weight.shape[1]
        loss = bias.new_zeros(())
        hidden_slope = torch.zeros_like(hidden, dtype=bias.dtype)
        weight_slope, bias_slope = torch.empty_like(weight), torch.empty_like(bias)
        for start in range(0, n_labels, chunk):
            part = slice(start, min(start + chunk, n_labels))
            size = part.stop - start
            narrow = weight[:, part].to(hidden.dtype)  # (learners, c, width)
            logits = (hidden @ narrow.mT).to(bias.dtype) + bias[:, None, part]  # (learners, n, c)
            # A pair outside the chunk adds nothing to the row's first place: no selection, so
            # a GPU need not report its size.
            inside = (columns >= start) & (columns < part.stop)
            place = rows * size + torch.where(inside, columns - start, 0)
            share = inside.to(bias.dtype)
            flat = logits.view(learners, -1)
            loss += F.softplus(logits).sum() - (flat[:, place] * share).sum()
            slope = logits.sigmoid_()
            flat.index_add_(1, place, -share.expand(learners, -1))
            slope /= n
            bias_slope[:, part] = slope.sum(dim=1)
            slope = slope.to(hidden.dtype)
            weight_slope[:, part] = slope.mT @ hidden
            hidden_slope += slope @ narrow
        ctx.save_for_backward(hidden_slope.to(hidden.dtype), weight_slope, bias_slope)
        return loss / n

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias = ctx.saved_tensors
        return hidden * slope.to(hidden.dtype), weight * slope, bias * slope, None, None, None


def chunked_logistic(
    hidden: Tensor, weight: Tensor, bias: Tensor, rows: Tensor, columns: Tensor, chunk: int
) -> Tensor:
    """Logistic loss of all labels, summed over learners and labels and averaged over the batch.

    Parameters
    ----------
    hidden : (learners, n, width)
        Its type is the type of the matrix products.
    weight, bias : (learners, n_labels, width) and (learners, n_labels)
    rows, columns : int64 (n_positive,)
        Which point has which label, each pair once; a pair of column -1 is none.
    chunk : int
        Labels whose logits, an array (learners, n, chunk), exist at a time.
    """
    apply: Callable[..., Tensor] = _ChunkedLogistic.apply
    return apply(hidden, weight, bias, rows, columns, chunk)
