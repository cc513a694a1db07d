"""Run a trained encoder over many texts, in batches that the device can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dxml._core.threads import SMALL_STEP, threads
from dxml._deep.batches import PlacedTokens, sorted_batches
from dxml._deep.encoder import TextEncoder
from dxml._deep.tokens import Tokens
from dxml.progress import SILENT, Progress

__all__ = ["TOKENS", "both_of", "embeddings_of", "hidden_of", "out_of_memory", "threads_for"]

TOKENS = {"cpu": 4096, "cuda": 131_072}
"""Padded tokens computed together: more on a GPU, which would idle, than in a CPU's cache."""


def threads_for(encoder: TextEncoder, n_tokens: int, device: torch.device) -> int | None:
    """One where a layer of so many tokens is a small piece of work for a CPU, else all."""
    work = n_tokens * encoder.size**2
    return 1 if device.type == "cpu" and work < SMALL_STEP else None


out_of_memory = torch.cuda.OutOfMemoryError


def hidden_of(
    encoder: TextEncoder,
    tokens: Tokens,
    pad: int,
    device: torch.device,
    *,
    fast: bool = False,
    progress: Progress = SILENT,
) -> Tensor:
    """The hidden vectors, float32 (n, width) on the device.

    Parameters
    ----------
    fast : bool
        In bfloat16, which training does on a GPU anyway.
    """
    width = encoder.widen.out_features
    return _apply(encoder, tokens, pad, device, width, lambda *batch: encoder(*batch)[0], fast,
                  progress)  # fmt: skip


def both_of(
    encoder: TextEncoder,
    tokens: Tokens,
    pad: int,
    device: torch.device,
    *,
    progress: Progress = SILENT,
) -> tuple[Tensor, Tensor]:
    """What `hidden_of` and `embeddings_of` give, in one go."""
    width = encoder.widen.out_features

    def both(*batch: Tensor) -> Tensor:
        hidden, embedded = encoder(*batch)
        return torch.cat([hidden.float(), embedded.float()], dim=1)

    found = _apply(encoder, tokens, pad, device, width + encoder.size, both, False, progress)
    return found[:, :width], found[:, width:]


def embeddings_of(
    encoder: TextEncoder,
    tokens: Tokens,
    pad: int,
    device: torch.device,
    *,
    fast: bool = False,
    progress: Progress = SILENT,
) -> Tensor:
    """The mean of the last layer as unit vectors, float32 (n, size) on the device."""
    return _apply(encoder, tokens, pad, device, encoder.size, encoder.embed, fast, progress)


@torch.no_grad()
def _apply(
    encoder: TextEncoder,
    tokens: Tokens,
    pad: int,
    device: torch.device,
    width: int,
    function: Callable[[Tensor, Tensor], Tensor],
    fast: bool,
    progress: Progress,
) -> Tensor:
    texts = PlacedTokens(tokens, pad, 1 << 30, device)
    out = torch.empty(len(tokens), width, device=device)
    was_training = encoder.training
    encoder.eval()
    try:
        with (
            threads(threads_for(encoder, min(len(tokens.ids), TOKENS["cpu"]), device)),
            progress.stage("encode texts", len(tokens), "texts") as stage,
            torch.autocast(device.type, torch.bfloat16, enabled=fast and device.type == "cuda"),
        ):
            for rows in sorted_batches(texts.lengths, TOKENS[device.type]):
                for some, part in _halving(texts, rows, function):
                    out[torch.from_numpy(some).to(device, non_blocking=True)] = part.float()
                stage.advance(len(rows))
    finally:
        encoder.train(was_training)
    return out


def _halving(
    texts: PlacedTokens,
    rows: npt.NDArray[np.int64],
    function: Callable[[Tensor, Tensor], Tensor],
) -> Iterator[tuple[npt.NDArray[np.int64], Tensor]]:
    """The function of a batch, or of its halves where that takes more memory than there is."""
    waiting = [rows]
    while waiting:
        some = waiting.pop()
        try:
            found: Tensor | None = function(*texts.batch(some))
        except out_of_memory:
            if len(some) == 1:
                raise
            found = None
        if found is not None:
            yield some, found
            continue
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        waiting += np.array_split(some, 2)
