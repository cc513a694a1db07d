"""f_x that reads texts: a published text encoder in place of the paper's two-layer network.

An experiment that the paper does not have. The encoder takes the place of the first product: mean
and maximum of its last layer → ReLU layer → a point on the unit sphere, trained to the same targets
by the same loss. It is fine-tuned by AdamW with one cycle of the learning rate, as in `dxml._deep`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dxml._core.arrays import Arrays
from dxml._deep.settings import DeepSettings
from dxml._deep.tokens import Tokens
from dxml.paper._losses import LOSSES, LossName
from dxml.progress import SILENT, Progress

if TYPE_CHECKING:
    from dxml._deep.checkpoints import Pretrained
    from dxml._deep.stored_encoder import StoredEncoder

__all__ = ["MAX_TOKENS", "TextPointEncoder", "TextRows", "fit_text_encoder", "read_texts"]

MAX_TOKENS = 256  # of a text that are read
SETTINGS = DeepSettings(encoder_rate=2e-4)
"""Rates, batches and epochs of the training; those of the joint method's encoder."""

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TextRows:
    """Points that are texts; they are picked like the rows of a matrix.

    Attributes
    ----------
    tokens : Tokens
    start : Pretrained or None
        The encoder that training starts from.
    """

    tokens: Tokens
    start: Pretrained | None = None

    @property
    def shape(self) -> tuple[int]:
        return (len(self.tokens),)

    def __getitem__(self, rows: npt.NDArray[Any]) -> TextRows:
        """Those of a mask, or of these numbers."""
        places = np.flatnonzero(rows) if rows.dtype == bool else rows
        return TextRows(self.tokens.take(places), self.start)


def read_texts(name: str, texts: Sequence[str], progress: Progress = SILENT) -> TextRows:
    """Texts as a published encoder reads them: folder, package or Hugging Face name."""
    from dxml._deep.checkpoints import find_weights, open_pretrained

    folder = find_weights(name)
    assert folder is not None
    start = open_pretrained(folder, MAX_TOKENS)
    return TextRows(start.reader.read(texts, progress), start)


@dataclass(frozen=True, eq=False)
class TextPointEncoder:
    """Trained weights of f_x.

    Attributes
    ----------
    encoder : StoredEncoder
        Up to the ReLU layer.
    w2 : float32 (hidden, dim)
    b2 : float32 (dim,)
    """

    encoder: StoredEncoder
    w2: Floats
    b2: Floats

    @property
    def dim(self) -> int:
        return int(self.w2.shape[1])

    def read(self, texts: Sequence[str]) -> TextRows:
        """Texts as it reads them."""
        return TextRows(self.encoder.reader.read(texts))

    def embed(self, rows: TextRows, device: str = "cpu") -> Floats:
        """Unit vectors of shape (n_samples, dim)."""
        import torch

        from dxml._deep.applying import hidden_of

        place, reader = torch.device(device), self.encoder.reader
        hidden = hidden_of(self.encoder.on(place), rows.tokens, reader.pad, place).cpu().numpy()
        points = hidden @ np.asarray(self.w2) + np.asarray(self.b2)
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        return np.asarray(points / np.maximum(lengths, 1e-12), dtype=np.float32)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The weights under the names of a saved model."""
        return {
            **self.encoder.arrays("text_encoder"),
            "encoder.w2": self.w2,
            "encoder.b2": self.b2,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> TextPointEncoder:
        """The inverse of `arrays`."""
        from dxml._deep.stored_encoder import StoredEncoder

        encoder = StoredEncoder.from_arrays(arrays, "text_encoder")
        b2 = arrays.floats("encoder.b2", None)
        return cls(encoder, arrays.floats("encoder.w2", encoder.width, len(b2)), b2)


def fit_text_encoder(
    rows: TextRows,
    targets: Floats,
    *,
    hidden: int,
    loss: LossName = "smooth_l1",
    margin: float = 0.5,
    dropout: float = 0.1,
    epochs: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    stage: str = "encoder",
    progress: Progress = SILENT,
) -> tuple[TextPointEncoder, list[float]]:
    """Train f_x of texts to targets; the weights, and the mean loss of each epoch.

    Parameters
    ----------
    rows : TextRows with a `start`, which stays as it is
    targets : float32 array of shape (n_samples, dim)
    epochs : int, optional
        15 by default, fewer for many texts.
    """
    import torch
    from torch import nn
    from torch.nn import functional as F

    from dxml._deep.batches import PlacedTokens, similar_batches
    from dxml._deep.encoder import TextEncoder
    from dxml._deep.optimising import adamw
    from dxml._deep.stored_encoder import StoredEncoder

    start, place = rows.start, torch.device(device)
    assert start is not None
    epochs = epochs or SETTINGS.epochs_for(len(rows.tokens))
    rng = np.random.default_rng(seed)
    history = []
    with torch.random.fork_rng(), progress.stage(stage, epochs, "epochs") as bar:
        torch.manual_seed(seed)
        network = TextEncoder(deepcopy(start.transformer), hidden, 0.0).to(place).train()
        last = nn.Linear(hidden, targets.shape[1]).to(place)
        own = [*network.widen.parameters(), *last.parameters()]
        groups = [{"params": list(network.transformer.parameters())}, {"params": own}]
        optimiser = adamw(groups, SETTINGS.weight_decay)
        texts = PlacedTokens(rows.tokens, start.reader.pad, start.reader.max_length, place)
        goals = torch.from_numpy(np.ascontiguousarray(targets)).to(place)
        n_batches = -(-len(rows.tokens) // SETTINGS.batch_size)
        for epoch in range(epochs):
            total = torch.zeros((), device=place)
            for step, batch in enumerate(
                similar_batches(texts.lengths, SETTINGS.batch_size, rng), epoch * n_batches
            ):
                with torch.autocast(place.type, torch.bfloat16, enabled=place.type == "cuda"):
                    point = last(network(*texts.batch(batch))[0])
                point = F.normalize(F.dropout(point.float(), dropout))  # (B, dim)
                goal = goals[torch.from_numpy(batch).to(place)]
                value = LOSSES[loss](point, goal, margin)
                value.backward()
                nn.utils.clip_grad_norm_(network.parameters(), SETTINGS.max_norm)
                rates = SETTINGS.rates(step / (epochs * n_batches))
                for group, rate in zip(optimiser.param_groups, rates, strict=True):
                    group["lr"] = rate
                optimiser.step()
                optimiser.zero_grad()
                total += value.detach() * len(batch)
            history.append(float(total) / len(rows.tokens))
            bar.advance()
    stored = StoredEncoder.of(network, start.config, start.reader)
    w2, b2 = (each.detach().float().cpu().numpy() for each in (last.weight.T, last.bias))
    return TextPointEncoder(stored, np.ascontiguousarray(w2), b2), history
