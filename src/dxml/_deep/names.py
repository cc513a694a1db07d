"""Names of labels, read by the encoder that reads the texts."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dxml._deep.batches import PlacedTokens
from dxml._deep.plan import Piece
from dxml._deep.recorded import RecordedEncoder

__all__ = ["SCALE", "name_loss"]

SCALE = 20.0
"""A name's score is this times the cosine of text and name; sentence encoders are trained so."""


def name_loss(
    encoder: RecordedEncoder, embedded: Tensor, piece: Piece, names: PlacedTokens, whole: int
) -> Tensor:
    """Cross-entropy of each text's own names among one name of each text of the piece.

    Parameters
    ----------
    embedded : (n, size)
        Of the texts.
    """
    pool = np.unique(piece.named[piece.named >= 0])
    if len(pool) < 2:
        return embedded.new_zeros(())
    vectors = encoder.embed(*names.batch(pool))  # (n_names, size)
    with torch.autocast(embedded.device.type, enabled=False):
        logits = SCALE * embedded.float() @ vectors.float().T
    place = np.searchsorted(pool, piece.host_columns).clip(max=len(pool) - 1)
    inside = pool[place] == piece.host_columns
    cells = piece.host_rows[inside] * len(pool) + place[inside]
    own = torch.zeros(logits.numel(), device=logits.device)
    own.index_fill_(0, torch.from_numpy(cells).to(logits.device, non_blocking=True), 1.0)
    own = own.view_as(logits)
    share = own / own.sum(dim=1, keepdim=True).clamp(min=1)
    return -(share * logits.log_softmax(dim=1)).sum() / whole
