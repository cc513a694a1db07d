"""One row of a logistic head out of the rows of several labels that become one.

The mean of the rows, weighed by the labels' points, has the right direction but not the right size:
where one label's logit is high, the others' are low. It is stretched so that the new label's points
have the logits that they had by their own labels, and all points, on average, those of the union.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["merged_row"]

Floats = npt.NDArray[np.float32]


def merged_row(
    weight: Floats, bias: Floats, counts: Floats, own: Sequence[Floats], others: Floats
) -> tuple[Floats, float]:
    """Row and bias of the new label.

    Parameters
    ----------
    weight, bias : float32 arrays of shape (n_merged, width) and (n_merged,)
    counts : array of shape (n_merged,)
        Points that carry each label.
    own : sequence of float32 arrays of shape (n_own, width)
        Hidden vectors of some points of each label; it may be none.
    others : float32 array of shape (n_others, width)
        Of some points at large.
    """
    share = counts / counts.sum() if counts.sum() else np.full(len(counts), 1 / len(counts))
    row, shift = share @ weight, float(share @ bias)
    known = [i for i, hidden in enumerate(own) if len(hidden)]
    if not known or not len(others):
        return row.astype(np.float32), shift
    high = np.average([(own[i] @ weight[i] + bias[i]).mean() for i in known], weights=share[known])
    low = np.logaddexp.reduce((others @ weight.T + bias).mean(axis=0))
    own_mean = np.average([(own[i] @ row).mean() for i in known], weights=share[known])
    all_mean = (others @ row).mean()
    rise = own_mean - all_mean
    stretch = (high - low) / rise if rise > 1e-6 and high > low else 1.0
    return (stretch * row).astype(np.float32), float(low - stretch * all_mean)
