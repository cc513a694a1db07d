"""The logistic loss in chunks: equal to the whole, slopes by finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from dxml._learners.logistic_loss import chunked_logistic


def batch(
    n: int = 6, width: int = 4, n_labels: int = 10, dtype: torch.dtype = torch.float32
) -> tuple[torch.Tensor, ...]:
    """hidden, weight, bias of two learners, and dense labels; one point and one label have none."""
    generator = torch.Generator().manual_seed(0)
    hidden, weight, bias = (
        torch.randn(*shape, generator=generator, dtype=dtype) * 3
        for shape in ((2, n, width), (2, n_labels, width), (2, n_labels))
    )
    labels = (torch.rand(n, n_labels, generator=generator) < 0.3).to(dtype)
    labels[1], labels[:, 2], labels[0, 0] = 0, 0, 1
    return hidden, weight, bias, labels


def whole_loss(
    hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    logits = hidden @ weight.mT + bias[:, None]
    both = labels.expand_as(logits)
    return F.binary_cross_entropy_with_logits(logits, both, reduction="sum") / len(labels)


def loss_and_slopes(loss_of, parts) -> list[torch.Tensor]:  # type: ignore[no-untyped-def]
    parts = [part.detach().clone().requires_grad_() for part in parts]
    loss = loss_of(*parts)
    (2 * loss).backward()
    return [loss.detach(), *(part.grad for part in parts)]


@pytest.mark.parametrize("chunk", [1, 3, 5, 10, 64])
def test_chunks_add_up_to_the_whole(chunk: int) -> None:
    *parts, labels = batch()
    rows, columns = labels.nonzero(as_tuple=True)
    expected = loss_and_slopes(lambda *p: whole_loss(*p, labels), parts)
    found = loss_and_slopes(lambda *p: chunked_logistic(*p, rows, columns, chunk), parts)
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_slopes_by_finite_differences() -> None:
    *parts, labels = batch(3, 2, 5, torch.float64)
    rows, columns = labels.nonzero(as_tuple=True)
    inputs = [part.requires_grad_() for part in parts]
    assert torch.autograd.gradcheck(
        lambda *p: chunked_logistic(*p, rows, columns, 2), inputs, nondet_tol=0
    )


def test_loss_by_hand_and_of_huge_logits() -> None:
    one, empty = torch.ones(1, 1, 1), torch.empty(0, dtype=torch.int64)
    first = torch.zeros(1, dtype=torch.int64)
    for logit, without, wanted in ((0.0, np.log(2), np.log(2)), (200, 200, 0), (-200, 0, 200)):
        bias = torch.tensor([[float(logit)]])
        assert chunked_logistic(one, one * 0, bias, empty, empty, 4).item() == pytest.approx(
            without
        )
        assert chunked_logistic(one, one * 0, bias, first, first, 4).item() == pytest.approx(wanted)


def test_rounding_to_bfloat16_moves_the_loss_little() -> None:
    """What a GPU reads, rounded; the products themselves are tested on one, below."""
    *parts, labels = batch()
    rows, columns = labels.nonzero(as_tuple=True)
    rounded = [part.to(torch.bfloat16).float() for part in parts]
    exact, near = (
        loss_and_slopes(lambda *p: chunked_logistic(*p, rows, columns, 4), some)
        for some in (parts, rounded)
    )
    assert near[0].item() == pytest.approx(exact[0].item(), rel=0.02)
    for ours, theirs in zip(near[1:], exact[1:], strict=True):
        assert (ours - theirs).norm() < 0.03 * theirs.norm()


@pytest.mark.gpu
@pytest.mark.parametrize("chunk", [100, 4096])
def test_bfloat16_products_on_a_gpu(chunk: int) -> None:
    *parts, labels = (part.cuda() for part in batch(64, 256, 1000))
    parts[1] = parts[1] * 0.02
    rows, columns = labels.nonzero(as_tuple=True)
    expected = loss_and_slopes(lambda *p: whole_loss(*p, labels), parts)
    found = loss_and_slopes(
        lambda h, w, b: chunked_logistic(h.bfloat16(), w, b, rows, columns, chunk), parts
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == torch.float32
        assert (ours - theirs).norm() < 0.02 * theirs.norm()
