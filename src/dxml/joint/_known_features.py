"""Which features known points have, and rows without the others.

A feature that no known point has says nothing of a new one. But in a row that is scaled to length 1
it makes all other features smaller, and so the row's cosines with the known points. Points that are
held out to weigh the parts have lost such features: new points lose them too, to be like those.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.holes import Holes
from dxml._core.sparse import column_counts, plain_csr, ranges
from dxml.joint._stored_points import Rows, StoredPoints

__all__ = ["count_features", "features_of", "only_known"]

Counts = npt.NDArray[np.int64]


def count_features(held: Rows, holes: Holes) -> Counts:
    """Points that have each feature; rows that are holes are no points."""
    if isinstance(held, StoredPoints):
        starts = held.columns.starts
        if not len(holes):
            return np.diff(starts).astype(np.int64, copy=False)
        kept = holes.kept(held.shape[0])[held.columns.rows]
        return np.diff(np.concatenate([[0], np.cumsum(kept)])[starts])
    found = column_counts(held)
    return found - features_of(held, holes.places) if len(holes) else found


def features_of(held: sp.csr_matrix, rows: npt.NDArray[np.int64]) -> Counts:
    """How many of some rows have each feature."""
    own = held.indices[ranges(held.indptr[rows], held.indptr[rows + 1])]
    return np.bincount(own, minlength=held.shape[1])


def only_known(X: sp.csr_matrix, counts: Counts) -> sp.csr_matrix:
    """Rows without the features that no point has; X itself, where it has none of these."""
    kept = counts[X.indices] > 0
    if kept.all():
        return X
    ends = np.concatenate([[0], np.cumsum(kept)])[X.indptr].astype(X.indptr.dtype)
    return plain_csr(X.data[kept], X.indices[kept], ends, X.shape)
