"""From how near text and name of a label are to how likely the label is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["NameLine"]


class NameLine(NamedTuple):
    """From a name's score to a probability: the logistic function of a line."""

    slope: float
    bias: float

    def probability(self, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Of labels without examples; it rises with the score."""
        odds = np.clip(self.slope * scores + self.bias, -60, 60)
        return np.asarray(1 / (1 + np.exp(-odds)), dtype=np.float32)
