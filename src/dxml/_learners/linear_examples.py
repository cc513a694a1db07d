"""The points that each label of a linear head learns from: its own, and hard negatives."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dxml._core.sparse import plain_csr

__all__ = ["all_signs", "label_signs"]


def label_signs(Y: sp.csr_matrix, shortlist: sp.csr_matrix) -> sp.csr_matrix:
    """The points that each label learns from, (n_labels, n_samples), int8.

    1 where the point carries the label, -1 where it only has it on its shortlist.

    Parameters
    ----------
    Y : csr_matrix of shape (n_samples, n_labels), bool
    shortlist : csr_matrix of the same shape
        Labels that a point is to tell apart; its own may be among them or not.
    """
    negative = sp.csr_matrix(
        (np.full(shortlist.nnz, -1, np.int8), shortlist.indices, shortlist.indptr),
        shape=shortlist.shape,
    )
    signs = 2 * Y.astype(np.int8) + negative  # 2 alone, 1 where it is on the shortlist too
    np.minimum(signs.data, 1, out=signs.data)
    signs = sp.csr_matrix(signs.T)
    signs.sort_indices()
    return signs


def all_signs(Y: sp.csr_matrix) -> sp.csr_matrix:
    """As `label_signs`, with every label on every shortlist: plain one-vs-all."""
    n, n_labels = Y.shape
    signs = np.full((n_labels, n), -1, dtype=np.int8)
    signs[Y.indices, np.repeat(np.arange(n), np.diff(Y.indptr))] = 1
    places = np.tile(np.arange(n, dtype=np.int32), n_labels)
    starts = np.arange(n_labels + 1, dtype=np.int64) * n
    return plain_csr(signs.ravel(), places, starts, signs.shape)
