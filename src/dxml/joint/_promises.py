"""Which threshold keeps a promised precision or recall, by the held-out points.

Precision is the share of the labels given that are right, recall the share of the true labels that
are given, each over all points. Every threshold is tested: is the lower bound of the precision
there at least what is promised? Thresholds are tested in a fixed order and the first that fails
ends the search, so that all tests together err as rarely as one (fixed-sequence testing, as in
Angelopoulos et al., Learn then Test, 2021).

The bound is Clopper and Pearson's for as many independent labels as those of the held-out points
are worth (Korn and Graubard, 1998): labels of one point are often right or wrong together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml.exceptions import ParameterError, advise
from dxml.metrics._judging import judge
from dxml.topk import TopK, default_top

__all__ = ["CONFIDENCE", "DEPTH", "Promises", "count_promises"]

CONFIDENCE = 0.95  # that a promise is kept, over the draws of the held-out points
DEPTH = default_top(0.0)  # labels of a point out of which a threshold chooses
FIRST = 60  # labels given at the strictest threshold that is tested
STEP = 1.1  # ratio of the labels given at two thresholds
STARTS = 4  # thresholds from which precision is tested downwards, each with its part of the risk
APART = 4.0  # ratio of the labels given at two starts
LEAST_POINTS = 50  # held-out points without which nothing is promised

Counts = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Promises:
    """Counts of held-out points at a few thresholds, from which promises are made.

    Attributes
    ----------
    thresholds : float32 array of shape (n_thresholds,)
        Probabilities, falling.
    counts : float64 array of shape (n_thresholds, 6)
        Sums over the points, of g labels given, r of them right and t true: of g, r, g², r², gr
        and rt.
    points, true, true_squared : float
        Their number, and the sums of t and of t².
    """

    thresholds: npt.NDArray[np.float32]
    counts: Counts
    points: float
    true: float
    true_squared: float

    def threshold(self, precision: float | None = None, recall: float | None = None) -> float:
        """The threshold for a promised precision or recall.

        Of those that keep a precision it is the lowest, and of those that keep a recall the
        highest.
        """
        if (precision is None) == (recall is None):
            either = advise("precision or recall", "--precision or --recall")
            raise ParameterError(f"give {either}, one of both.")
        what, promised = ("precision", precision) if recall is None else ("recall", recall)
        assert promised is not None
        if not 0 < promised < 1:
            raise ParameterError(f"{what} must be between 0 and 1, got {promised!r}.")
        if self.points < LEAST_POINTS:
            raise ParameterError(
                f"no {what} can be promised: {self.points:.0f} points were held out in training, "
                f"and {LEAST_POINTS} are needed. Train with more points, or take "
                f"{advise('threshold', '--threshold')}."
            )
        place = self._place(what, promised)
        if place is None:
            raise ParameterError(self._refusal(what, promised))
        return float(self.thresholds[place])

    def most(self, what: str) -> float:
        """The highest precision or recall that can be promised, in whole per cent; 0 if none."""
        kept = [each / 100 for each in range(1, 100) if self._place(what, each / 100) is not None]
        return max(kept, default=0.0)

    def _place(self, what: str, promised: float) -> int | None:
        if what == "recall":
            return _last_kept(self._recall_bounds(1 - CONFIDENCE)[::-1] >= promised, reverse=True)
        kept = self._precision_bounds((1 - CONFIDENCE) / STARTS) >= promised
        given = self.counts[:, 0]
        found = []
        for start in range(STARTS):
            first = int(np.searchsorted(given, FIRST * APART**start))
            last = _last_kept(kept[first:])
            if last is not None:
                found.append(first + last)
        return max(found, default=None)

    def _precision_bounds(self, risk: float) -> Counts:
        given, right, given_squared, right_squared, both, _ = self.counts.T
        return _bounds(right, given, right_squared, given_squared, both, self.points, risk)

    def _recall_bounds(self, risk: float) -> Counts:
        _, right, _, right_squared, _, both = self.counts.T
        true = np.full(len(right), self.true)
        squared = np.full(len(right), self.true_squared)
        return _bounds(right, true, right_squared, squared, both, self.points, risk)

    def _refusal(self, what: str, promised: float) -> str:
        most = self.most(what)
        best = f"the most is {most:g}" if most else "none can be promised"
        return (
            f"no threshold keeps a {what} of {promised:g} on {self.points:,.0f} held-out points "
            f"with {CONFIDENCE:.0%} confidence; {best}. Promise less, or take "
            f"{advise('threshold', '--threshold')}."
        )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a saved model holds of it."""
        return {
            "promises.thresholds": self.thresholds,
            "promises.counts": self.counts,
            "promises.points": np.array([self.points, self.true, self.true_squared]),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Promises | None:
        """The inverse of `arrays`; None where nothing was held out, or kept."""
        if "promises.counts" not in arrays:
            return None
        thresholds = arrays.floats("promises.thresholds", None, least=0, most=1)
        counts = arrays.numbers("promises.counts", len(thresholds), 6, least=0)
        return cls(
            thresholds,
            np.array(counts, dtype=np.float64).reshape(-1, 6),
            *arrays.numbers("promises.points", 3, least=0),
        )


def count_promises(truth: sp.csr_matrix, ranking: TopK) -> Promises:
    """The counts of held-out points with these labels and this ranking, `DEPTH` labels deep."""
    hits = judge(truth, ranking, ranking.k).hits
    ranked = ranking.indices >= 0
    thresholds = _grid(ranking.scores[ranked])
    true = np.diff(truth.indptr).astype(np.float64)
    counts = np.empty((len(thresholds), 6))
    for place, threshold in enumerate(thresholds):
        kept = ranked & (ranking.scores >= threshold)
        given = kept.sum(axis=1, dtype=np.float64)
        right = (hits & kept).sum(axis=1, dtype=np.float64)
        products = given @ given, right @ right, given @ right, right @ true
        counts[place] = given.sum(), right.sum(), *products
    return Promises(thresholds, counts, float(len(true)), float(true.sum()), float(true @ true))


def _grid(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Falling thresholds at which ever more labels are given."""
    falling = np.sort(scores)[::-1]
    if not len(falling):
        return falling
    steps = int(np.log(max(len(falling) / FIRST, 1)) / np.log(STEP)) + 1
    places = np.minimum(FIRST * STEP ** np.arange(steps + 1), len(falling)).astype(int) - 1
    return np.unique(falling[places])[::-1].copy()


def _last_kept(kept: npt.NDArray[np.bool_], reverse: bool = False) -> int | None:
    """The last place before the first that is not kept; `reverse`: counted from the end."""
    n = int(np.argmin(kept)) if not kept.all() else len(kept)
    if not n:
        return None
    return len(kept) - n if reverse else n - 1


def _bounds(
    right: Counts,
    of: Counts,
    right_squared: Counts,
    of_squared: Counts,
    both: Counts,
    points: float,
    risk: float,
) -> Counts:
    """Lower bounds of a share, right of all, from sums over points; each is too high with `risk`.

    How alike the labels of a point are is estimated with one point more, of common size and all
    wrong, so that no error seen does not look like errors that come one by one.
    """
    from scipy.special import betaincinv

    of = np.maximum(of, 1)
    more = of_squared / of
    share = right / (of + more)
    apart = right_squared - 2 * share * both + share**2 * (of_squared + more**2)
    alike = apart / np.maximum((of + more) * share * (1 - share), 1e-12)
    worth = of / np.maximum(alike * points / max(points - 1, 1), 1)
    found = right / of * worth
    return np.where(found > 0, betaincinv(np.maximum(found, 1e-9), worth - found + 1, risk), 0.0)
