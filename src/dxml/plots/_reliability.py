"""Reliability diagram: of the labels predicted with 70 %, are 70 % correct?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml.metrics import BINS, are_probabilities, calibration_error, judged_scores, score_bins
from dxml.plots._style import COLOURS, NothingToDrawError, heading
from dxml.topk import TopK

__all__ = ["ReliabilityPlot", "reliability_plot"]

MIN_GROUP_SIZE = 20  # predictions; the share of fewer is too uncertain
Z_95 = 1.96  # normal quantile of a 95 % interval


@dataclass(frozen=True)
class Group:
    """Predictions of about the same probability."""

    probability: float
    right: float
    low: float
    high: float
    predictions: int


@dataclass(frozen=True)
class ReliabilityPlot:
    """Predicted probabilities against the share of correct labels.

    Attributes
    ----------
    title : str
    k : int
        Number of predictions of each point that are used.
    error : float
        The expected calibration error, a fraction; see `dxml.metrics._ranking.calibration_error`.
    groups : tuple of Group
        Predictions in the order of their probability, cut into groups of about equal size: mean
        probability, share of right labels, and the 95 % interval (Wilson's) of that share.
    counts : tuple of int
        Predictions in each of the bins of the calibration error, which are equally wide.
    """

    title: str
    k: int
    error: float
    groups: tuple[Group, ...]
    counts: tuple[int, ...]

    def numbers(self) -> dict[str, Any]:
        """The error in per cent, the groups, and the histogram."""
        return {
            "title": self.title,
            f"ECE@{self.k}": round(100 * self.error, 4),
            "predictions": sum(self.counts),
            "groups": [
                {name: round(value, 6) for name, value in asdict(group).items()}
                for group in self.groups
            ],
            "histogram": list(self.counts),
        }

    def paint(self, plt: Any) -> Any:
        """The curve above, a histogram of the probabilities below."""
        canvas, (curve, below) = plt.subplots(
            2, 1, figsize=(5.6, 6.4), sharex=True, height_ratios=(3, 1), layout="constrained"
        )
        curve.plot([0, 1], [0, 1], "--", color="grey", label="perfectly reliable")
        at = [group.probability for group in self.groups]
        right = [group.right for group in self.groups]
        reach = [
            [group.right - group.low for group in self.groups],
            [group.high - group.right for group in self.groups],
        ]
        curve.errorbar(
            at,
            right,
            yerr=reach,
            color=COLOURS[0],
            marker="o",
            markersize=5,
            elinewidth=1,
            capsize=2,
            label="predictions in groups of equal size, 95 % interval",
        )
        curve.set_ylabel("share that is right")
        curve.set_title(
            f"first {self.k} labels of each point, {sum(self.counts):,} predictions", fontsize=10
        )
        curve.set(xlim=(0, 1), ylim=(0, 1))
        curve.legend(loc="upper left", fontsize=9)
        edges = np.linspace(0, 1, len(self.counts) + 1)
        below.stairs(self.counts, edges, fill=True, color=COLOURS[2], edgecolor="white")
        below.set_xlabel("predicted probability")
        below.set_ylabel("predictions")
        below.yaxis.set_major_formatter("{x:,.0f}")
        heading(canvas, f"{self.title}: calibration error {100 * self.error:.1f} %")
        return canvas


def reliability_plot(
    Y: sp.csr_matrix, ranking: TopK, *, title: str = "Reliability", method: str = "this model"
) -> ReliabilityPlot:
    """Compare the probabilities of a ranking, at most its first 5 labels, with the truth.

    Parameters
    ----------
    Y : sparse matrix of shape (n_samples, n_labels)
        The truth.
    ranking : TopK
    title, method : str
        Title of the figure, and the method's name for an error message.
    """
    if not are_probabilities(ranking):
        low, high = float(ranking.scores.min()), float(ranking.scores.max())
        raise NothingToDrawError(
            f"the scores of {method} are no probabilities, they range from {low:.3g} to "
            f"{high:.3g}: there is no reliability to draw. Those of joint are."
        )
    k = min(5, ranking.k)
    scores, right = judged_scores(Y, ranking, k)
    counts = np.bincount(score_bins(scores), minlength=BINS)
    return ReliabilityPlot(
        title,
        k,
        calibration_error(Y, ranking, k),
        tuple(_groups(scores, right)),
        tuple(counts.tolist()),
    )


def _groups(scores: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]) -> list[Group]:
    """Groups of about equal size; equal scores stay together."""
    if not len(scores):
        return []
    wanted = int(np.clip(len(scores) // MIN_GROUP_SIZE, 1, BINS))
    starts = np.arange(1, wanted) * len(scores) // wanted
    borders = np.unique(np.sort(scores)[starts])
    number = np.searchsorted(borders, scores, side="right")
    found = []
    for group in np.unique(number):
        inside = number == group
        n, share = int(inside.sum()), float(right[inside].mean())
        found.append(Group(float(scores[inside].mean()), share, *_interval(share, n), n))
    return found


def _interval(share: float, n: int) -> tuple[float, float]:
    """Wilson's interval of a share of n."""
    middle = (share + Z_95**2 / (2 * n)) / (1 + Z_95**2 / n)
    half = Z_95 * np.sqrt(share * (1 - share) / n + (Z_95 / (2 * n)) ** 2) / (1 + Z_95**2 / n)
    return min(float(middle - half), share), max(float(middle + half), share)
