"""How often labels of generated documents occur, are drawn, and are lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LabelLaw", "chances_to_be_lost", "label_law", "label_shares"]

_SAME_TOPIC = 0.8  # of a point's labels are from its topic
_TOPIC_SIZE = 4  # labels of a topic, as a multiple of a point's


def label_shares(
    n_labels: int, labels_per_point: float, head: float, least: float
) -> NDArray[np.float64]:
    """Share of the points that carry each label, by rank.

    The logarithm of the share is a parabola of the logarithm of the rank, from `head` down to
    `least`, bent such that the shares add up to `labels_per_point`.
    """
    x = np.log(np.arange(1, n_labels + 1)) / np.log(max(n_labels, 2))
    line = (1 - x) * np.log(head) + x * np.log(least)
    low, high = -60.0, 60.0
    for _ in range(60):
        bend = (low + high) / 2
        shares = np.minimum(np.exp(line + bend * x * (1 - x)), head)
        low, high = (bend, high) if shares.sum() < labels_per_point else (low, bend)
    return np.asarray(shares)


def chances_to_be_lost(
    shares: NDArray[np.float64], n_samples: int, missing: float, propensity: tuple[float, float]
) -> NDArray[np.float64]:
    """A chance for each label, `missing` for the average true label, after the propensity model."""
    a, b = propensity
    weight = (np.log(max(n_samples, 3)) - 1) * (b + 1) ** a * (shares * n_samples + b) ** -a
    lost = weight / (1 + weight)
    low, high = 0.0, 60.0
    for _ in range(60):
        factor = (low + high) / 2
        chances = np.minimum(factor * lost, 0.9)
        true = shares / (1 - chances)
        low, high = (
            (factor, high) if (true * chances).sum() < missing * true.sum() else (low, factor)
        )
    return np.asarray(chances)


@dataclass(frozen=True)
class LabelLaw:
    """How labels are drawn; those of a topic are `size` consecutive ones.

    Attributes
    ----------
    true : float
        Labels of a point before some are lost, on average.
    anywhere_ends, topic_ends : ndarray of shape (n_labels,)
        Cumulative weights of a label that is drawn from all labels, and from its topic.
    same : float
        Share of labels that are drawn from the point's topic.
    general : ndarray of bool
        Labels too frequent for any topic: they are drawn from all labels most of the time.
    lost : ndarray of shape (n_labels,)
        The chance that a label is not listed.
    """

    size: int
    true: float
    anywhere_ends: NDArray[np.float64]
    topic_ends: NDArray[np.float64]
    same: float
    general: NDArray[np.bool_]
    lost: NDArray[np.float64]


def label_law(shares: NDArray[np.float64], lost: NDArray[np.float64]) -> LabelLaw:
    """Weights with which every label comes to its share of the points."""
    true = np.minimum(shares / (1 - lost), 0.98)
    rates = -np.log1p(-true)  # a label is in the first draws with a chance of 1 - exp(-rate)
    in_topic = np.minimum(rates, np.quantile(rates, 0.99))
    same = min(_SAME_TOPIC, 0.9 * in_topic.sum() / rates.sum())
    anywhere = rates / rates.sum() - same * in_topic / in_topic.sum()
    return LabelLaw(
        max(8, round(_TOPIC_SIZE * float(shares.sum()))),
        float(true.sum()),
        np.cumsum(np.maximum(anywhere, 0)),
        np.cumsum(in_topic),
        float(same),
        in_topic < rates,
        lost,
    )
