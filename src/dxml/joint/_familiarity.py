"""How much of a point is known → how much surer its first label is than its score says.

Of two first labels of one mixed score, that of the point with more known features is right more
often. A logistic regression over first labels of held-out points learns what log(1 + their number)
counts beside the score. It shifts the score by which the first label's probability is looked up,
and never the ranking. Later labels are not shifted: what the number says of them is not the same
from one source of points to another (benchmarks/results/joint-experiments/README.md). But none of
them is more probable than the first, so that a lower first one lowers them too.

Points without a known feature teach nothing here: they have a ranking of their own
(`dxml.joint._wordless`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dxml._core.arrays import Arrays
from dxml.joint._calibration import PLACE, SLOPE, most_likely

__all__ = ["Counts", "Familiarity", "learn_familiarity"]

Floats = npt.NDArray[np.float32]
Counts = npt.NDArray[np.integer[Any]]
HELD = 4.0  # how firmly what the number counts is held near 0: one over the prior's variance
LEAST_SLOPE = 0.25  # of the score; one that tells little is not worth a large shift
NAME = "mixture.familiarity"


@dataclass(frozen=True)
class Familiarity:
    """What a first label's mixed score gains by known features.

    Attributes
    ----------
    worth : float
        For each unit of log(1 + number of known features).
    middle : float
        The mean of that logarithm, where nothing is gained or lost.
    span : (float, float)
        The logarithms between which this was learnt. Beyond, scores are shifted no further.
    """

    worth: float
    middle: float
    span: tuple[float, float]

    def shift(self, n_features: Counts) -> Floats:
        """What is added to the first label's score of points with so many known features."""
        found = self.worth * (np.clip(_log(n_features), *self.span) - self.middle)
        return found.astype(np.float32)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a saved model holds of it."""
        return {NAME: np.array([self.worth, self.middle, *self.span])}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Familiarity | None:
        """The inverse of `arrays`; None for models that shift nothing, as all of before."""
        if NAME not in arrays:
            return None
        worth, middle, low, high = arrays.numbers(NAME, 4)
        return cls(worth, middle, (low, high))


def learn_familiarity(
    n_features: Counts, mixed: Floats, right: npt.NDArray[np.bool_]
) -> Familiarity | None:
    """From the first labels of held-out points, one a point.

    None where all points have as many known features, as in dense data.
    """
    some = n_features > 0
    log = _log(n_features[some])
    if not len(log) or log.min() == log.max():
        return None
    middle = float(log.mean())
    columns = np.stack([mixed[some].astype(np.float64), np.ones(len(log)), log - middle])
    start = np.array([1.0, 0.0, 0.0])
    slope, _, own = most_likely(columns, right[some], np.array([SLOPE, PLACE, HELD]), start)
    worth = float(own / max(slope, LEAST_SLOPE))
    return Familiarity(worth, middle, (float(log.min()), float(log.max())))


def _log(n_features: Counts) -> npt.NDArray[np.float64]:
    return np.log1p(n_features.astype(np.float64))
