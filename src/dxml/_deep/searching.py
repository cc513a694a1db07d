"""The labels that score highest for a vector, found a block of labels at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["best_labels", "pair_scores"]

ROWS = {"cpu": 256, "cuda": 2048}  # vectors searched for at a time
LABELS = {"cpu": 16_384, "cuda": 65_536}  # labels compared with at a time
NUMBERS = 1 << 24  # of label vectors that are gathered for pairs at a time


@torch.no_grad()
def best_labels(
    vectors: Tensor, weight: Tensor, bias: Tensor | None, k: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """For each vector the k labels of highest ``weight @ vector + bias``, best first.

    Parameters
    ----------
    vectors : (n, width)
    weight : (n_labels, width)
        Of any float type, on the vectors' device. Products are made in the vectors' type.
    """
    kind, k = vectors.device.type, min(k, len(weight))
    ids = np.empty((len(vectors), k), dtype=np.int32)
    scores = np.empty((len(vectors), k), dtype=np.float32)
    for start in range(0, len(vectors), ROWS[kind]):
        rows = slice(start, start + ROWS[kind])
        best, which = _best_of(vectors[rows], weight, bias, k, LABELS[kind])
        ids[rows], scores[rows] = which.cpu().numpy(), best.cpu().numpy()
    return ids, scores


def _best_of(
    vectors: Tensor, weight: Tensor, bias: Tensor | None, k: int, step: int
) -> tuple[Tensor, Tensor]:
    best = torch.empty(len(vectors), 0, device=vectors.device)
    which = torch.empty(len(vectors), 0, dtype=torch.int64, device=vectors.device)
    for start in range(0, len(weight), step):
        block = weight[start : start + step].to(vectors.dtype)
        logits = (vectors @ block.T).float()
        if bias is not None:
            logits += bias[start : start + step]
        found, places = logits.topk(min(k, logits.shape[1]), dim=1)
        best, which = torch.cat([best, found], 1), torch.cat([which, places + start], 1)
        if best.shape[1] > k:
            best, places = best.topk(k, dim=1)
            which = which.gather(1, places)
    return best, which


@torch.no_grad()
def pair_scores(
    vectors: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    indptr: npt.NDArray[np.integer],
    indices: npt.NDArray[np.integer],
) -> npt.NDArray[np.float32]:
    """``weight[label] @ vector + bias[label]`` of the stored (row, label) pairs of a CSR matrix."""
    device = vectors.device
    rows = torch.from_numpy(np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))).to(device)
    labels = torch.from_numpy(indices.astype(np.int64)).to(device)
    out = torch.empty(len(labels), device=device)
    step = max(1, NUMBERS // weight.shape[1])
    for start in range(0, len(labels), step):
        part = slice(start, start + step)
        products = vectors[rows[part]] * weight[labels[part]].float()
        out[part] = products.sum(dim=1)
        if bias is not None:
            out[part] += bias[labels[part]]
    return out.cpu().numpy()
