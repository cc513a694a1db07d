"""What training an encoder would cost here, or only reading with it, from a few timed steps."""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp
import torch

from dxml._deep.applying import embeddings_of
from dxml._deep.batches import padded_length
from dxml._deep.checkpoints import Pretrained
from dxml._deep.encoder import TextEncoder
from dxml._deep.settings import DeepSettings
from dxml._deep.tokens import Tokens
from dxml._deep.training import Trainer

__all__ = ["reading_seconds", "training_seconds"]


def training_seconds(
    tokens: Tokens,
    Y: sp.csr_matrix,
    settings: DeepSettings,
    start: Pretrained,
    device: torch.device,
    *,
    steps: int = 3,
    seed: int = 0,
) -> float:
    """About how long `fit_deep` would take.

    A step of another length than those timed is taken to cost by its padded tokens.

    Parameters
    ----------
    steps : int
        Steps that are timed, after one that is not, on copies of the weights.
    """
    with torch.random.fork_rng():
        trainer = Trainer(tokens, Y, settings, start, seed, device)
        order = trainer.plan(0)
        sizes = np.diff(order.bounds)
        longest = np.maximum.reduceat(tokens.lengths[order.order], order.bounds[:-1])
        most = start.reader.max_length
        padded = sizes * np.array([padded_length(int(each), most) for each in longest])
        timed = np.argsort(np.abs(padded - padded.mean()), kind="stable")[: max(steps, 1)]
        trainer.step(order, int(timed[0]), 0)
        trainer.mean_loss()
        begun = time.perf_counter()
        for batch in timed:
            trainer.step(order, int(batch), 0)
        trainer.mean_loss()
        seconds = time.perf_counter() - begun
    epochs = settings.epochs_for(len(tokens))
    return float(seconds / padded[timed].sum() * padded.sum() * epochs)


def reading_seconds(
    tokens: Tokens, start: Pretrained, device: torch.device, *, n_texts: int = 64
) -> float:
    """About how long the encoder takes to read the texts once, from some of them."""
    some = tokens.take(np.linspace(0, len(tokens) - 1, min(n_texts, len(tokens))).astype(np.int64))
    with torch.random.fork_rng(devices=[]):
        encoder = TextEncoder(start.transformer, 1).to(device)
    embeddings_of(encoder, some.take(np.arange(1)), start.reader.pad, device)
    begun = time.perf_counter()
    embeddings_of(encoder, some, start.reader.pad, device)
    return (time.perf_counter() - begun) * len(tokens.ids) / max(len(some.ids), 1)
