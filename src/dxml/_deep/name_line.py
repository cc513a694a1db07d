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

    def log_odds(self, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Of labels without examples; they rise with the score."""
        return np.asarray(np.clip(self.slope * scores + self.bias, -60, 60), dtype=np.float32)

    def probability(self, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Of labels without examples; it rises with the score."""
        return np.asarray(1 / (1 + np.exp(-self.log_odds(scores))), dtype=np.float32)
