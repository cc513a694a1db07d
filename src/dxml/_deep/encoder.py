"""The network: a transformer, two poolings of its last layer, and a wide ReLU layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["TextEncoder"]

HIDDEN = -30_000.0  # added to the attention score of padding, within the range of 16 bits


class TextEncoder(nn.Module):
    """Token ids → a hidden vector for the head, and a unit vector to compare with names.

    Parameters
    ----------
    transformer : nn.Module
        Of the package transformers.
    width : int
        Of the hidden vector.
    dropout : float
        Share of the hidden vector that drops in training.
    """

    def __init__(self, transformer: Any, width: int, dropout: float = 0.3) -> None:
        super().__init__()
        self.transformer = transformer
        self.size = int(transformer.config.hidden_size)
        self.widen = nn.Linear(2 * self.size, width)
        self.dropout = nn.Dropout(dropout)
        self._square = _takes_square_mask(transformer)

    @property
    def no_waiting(self) -> bool:
        """Whether the host never asks the device for an answer in between."""
        return self._square

    def forward(self, ids: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden (n, width) and embedding (n, size) of padded texts.

        Parameters
        ----------
        ids : int64 (n, length)
        real : bool (n, length)
            False where a text is padded.
        """
        states = self.states(ids, real)
        mean = _mean(states, real)
        peak = states.masked_fill(~real[:, :, None], float("-inf")).amax(dim=1)
        hidden = self.widen(torch.cat([mean, peak], dim=1)).relu()
        return self.dropout(hidden), F.normalize(mean.float(), dim=1)

    def embed(self, ids: Tensor, real: Tensor) -> Tensor:
        """Only the embedding: the mean of the last layer, of length 1."""
        return F.normalize(_mean(self.states(ids, real), real).float(), dim=1)

    def states(self, ids: Tensor, real: Tensor) -> Tensor:
        """The last layer, (n, length, size)."""
        mask = _square(real) if self._square else real
        states: Tensor = self.transformer(input_ids=ids, attention_mask=mask)[0]
        return states


def _mean(states: Tensor, real: Tensor) -> Tensor:
    share = real.to(states.dtype)
    return (states * share[:, :, None]).sum(dim=1) / share.sum(dim=1, keepdim=True)


def _square(real: Tensor) -> Tensor:
    """What is added to attention scores, (n, 1, length, length): nothing, or all there is."""
    kind, (n, length) = real.device.type, real.shape
    narrow = torch.is_autocast_enabled(kind)
    dtype = torch.get_autocast_dtype(kind) if narrow else torch.float32
    hidden = torch.zeros(n, 1, 1, length, dtype=dtype, device=real.device)
    hidden.masked_fill_(~real[:, None, None, :], HIDDEN)
    mask = hidden.expand(n, 1, length, length)
    return mask if kind == "cpu" else mask.contiguous()  # a GPU's kernels want it laid out


@torch.no_grad()
def _takes_square_mask(transformer: Any) -> bool:
    """Whether a mask (n, 1, length, length) means what a mask (n, length) does.

    With the latter transformers asks the GPU at every step whether anything is masked. Encoders
    with windows make masks of their own from it, and need it.
    """
    if any(
        getattr(transformer.config, name, None) for name in ("sliding_window", "local_attention")
    ):
        return False
    device = next((each.device for each in transformer.parameters()), torch.device("cpu"))
    ids = torch.arange(1, 17, device=device).view(2, 8)
    real = torch.tensor([[True] * 8, [True] * 3 + [False] * 5], device=device)
    was_training = transformer.training
    transformer.eval()
    plain = transformer(input_ids=ids, attention_mask=real)[0]
    try:
        found = transformer(input_ids=ids, attention_mask=_square(real))[0]
    except (ValueError, RuntimeError, IndexError):
        return False
    finally:
        transformer.train(was_training)
    return bool(torch.allclose(plain[real], found[real], atol=1e-5, rtol=1e-4))
