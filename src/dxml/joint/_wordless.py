"""How often points without a known feature carry each label.

A text of which no word is known, and a point without features, can only be given labels by how
often these occur. They occur among such points as they do among the known points that share no
feature with another one: each of those would be such a point if it had not been learnt from. Where
there are few, their shares are held near those of all points.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dxml.joint._points import Known
from dxml.joint._stored_points import StoredPoints

__all__ = ["unlike_others", "wordless_ranking"]

WORTH = 30.0
"""Points that share no feature with another one, which all points together count as. A compromise
of 3, 10, 30 and 100: fewer suit icons and codes of diseases better, and more suit questions. With
thousands of rare labels, as of names, shares are a little too high with any of them."""
RAREST = 10
"""Points of the rarest feature, up to which rarer ones may have been left out."""

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


def wordless_ranking(known: Known) -> tuple[Ids, Floats]:
    """All labels of a point without a known feature, most probable first, and probabilities."""
    rows = np.flatnonzero(unlike_others(known))
    carriers = np.bincount(known.labels_of(rows), minlength=known.n_labels)
    usual = known.counts / max(known.n_points, 1)
    shares = ((carriers + WORTH * usual) / (len(rows) + WORTH)).astype(np.float32)
    order = np.lexsort((known.tie_order, -shares)).astype(np.int32)
    return order, shares[order]


def unlike_others(known: Known) -> Mask:
    """Which rows are points that share no feature with another one, (n_rows,).

    Texts may have been read without words of fewer than some number of texts. The rarest feature
    then has that many points, and would be no feature without one of them.
    """
    kept = known.holes.kept(known.n_rows)
    held, common = known.held, _common(known.feature_counts)
    if isinstance(held, StoredPoints):
        rows = held.columns.rows
        shared = np.repeat(common, np.diff(held.columns.starts)) & kept[rows]
        found = np.bincount(rows[shared], minlength=known.n_rows)
    else:
        ends = np.concatenate([[0], np.cumsum(common[held.indices])])
        found = np.diff(ends[held.indptr])
    return kept & (found == 0)


def _common(counts: npt.NDArray[np.int64]) -> Mask:
    """Features that would still be known without any one of their points."""
    there = counts[counts > 0]
    least = int(there.min()) if len(there) else 1
    return np.asarray(counts > (least if least <= RAREST else 1))
