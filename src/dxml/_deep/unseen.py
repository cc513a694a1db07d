"""Labels that have a name and no example: learn how far a name alone can be trusted.

The line from a name's score to the log-odds of its label is learnt on held-out texts, from labels
that no learnt text carries. Where held-out texts carry too few of those, labels of one or two
learnt texts stand in for them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from dxml._deep.head import DeepHead
from dxml._deep.name_line import NameLine
from dxml._deep.tokens import Tokens

__all__ = ["fit_name_line"]

NEAR = 20  # names nearest to a text, by which the line is learnt
LEAST_RIGHT = 20  # of them that are right
FEW = (0, 1, 2)  # learnt texts of a label that counts as new


def fit_name_line(
    head: DeepHead,
    texts: Tokens,
    truth: sp.csr_matrix,
    counts: npt.NDArray[np.int64],
    device: torch.device,
) -> NameLine | None:
    """The line that held-out texts give; None where they carry too few labels that are new.

    Parameters
    ----------
    texts, truth : Tokens and csr_matrix of shape (n, n_labels), bool
        Held-out texts and their labels.
    counts : int64 array of shape (n_labels,)
        Learnt texts of each label.
    """
    for most in FEW:
        new = np.flatnonzero(head.named & (counts <= most))
        own = truth[:, new]
        if own.nnz < LEAST_RIGHT:
            continue
        ids, scores = head.nearest_names(texts, NEAR, device, among=new)
        right = np.asarray(own[np.repeat(np.arange(len(ids)), ids.shape[1]), ids.ravel()]).ravel()
        if LEAST_RIGHT <= right.sum() < len(right):
            return _regress(scores.ravel(), right)
    return None


def _regress(scores: npt.NDArray[np.float32], right: npt.NDArray[np.bool_]) -> NameLine | None:
    from sklearn.linear_model import LogisticRegression

    found = LogisticRegression(C=1e3).fit(scores[:, None].astype(np.float64), right)
    slope, bias = float(found.coef_[0, 0]), float(found.intercept_[0])
    return NameLine(slope, bias) if slope > 0 else None
