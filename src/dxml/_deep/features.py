"""Vectors of texts without any training, for machines without a GPU.

Frozen: the mean of a published encoder's last layer, one pass over the texts. Static: the mean of
its input embeddings, which takes microseconds a text. The input embeddings come with every
encoder, so static vectors need no second package, and share its tokenizer.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dxml._deep.applying import embeddings_of
from dxml._deep.checkpoints import Pretrained
from dxml._deep.encoder import TextEncoder
from dxml._deep.tokens import Tokens
from dxml.progress import SILENT, Progress

__all__ = ["frozen_features", "static_features"]

Floats = npt.NDArray[np.float32]


def frozen_features(
    pretrained: Pretrained,
    tokens: Tokens,
    device: torch.device,
    progress: Progress = SILENT,
) -> Floats:
    """Unit vectors, (n, size): the mean of the last layer over the tokens."""
    with torch.random.fork_rng(devices=[]):
        encoder = TextEncoder(deepcopy(pretrained.transformer), 1).to(device)
    found = embeddings_of(encoder, tokens, pretrained.reader.pad, device, progress=progress)
    return found.cpu().numpy()


def static_features(pretrained: Pretrained, tokens: Tokens) -> Floats:
    """Unit vectors, (n, size): the mean of the tokens' input embeddings, centred."""
    transformer: Any = pretrained.transformer
    table = transformer.get_input_embeddings().weight.detach().cpu().numpy()
    table = table - table.mean(axis=0)
    sums = np.add.reduceat(table[tokens.ids], tokens.ends[:-1], axis=0)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.asarray(sums / np.maximum(lengths, 1e-12), dtype=np.float32)
