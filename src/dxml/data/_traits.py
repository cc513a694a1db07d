"""What makes generated documents easy or difficult, and the traits of registered data sets."""

from __future__ import annotations

from dataclasses import dataclass, fields

from dxml.exceptions import ParameterError

__all__ = ["TRAITS", "Traits"]


@dataclass(frozen=True)
class Traits:
    """What makes generated documents easy or difficult.

    Attributes
    ----------
    head : float in 0..1
        Share of the points that carry the most frequent label.
    noise : float in 0..1
        Share of the words that are common ones, which say nothing of the labels.
    distraction : float in 0..1
        Share of the other words that are those of a topic which none of the labels is about.
    overlap : float in 0..1
        Share of the remaining words that are those of a label's topic rather than its own.
    emphasis : float in 0..1
        How much more of a point's words are about its first labels: 0, all labels alike.
    label_noise : float in 0..1
        Share of the labels that are exchanged for another one of the topic.
    missing : float in 0..1
        Share of the true labels that are lost, most of them rare ones.
    copies : float in 0..1
        Share of the points that are revisions of another point.
    label_spread, length_spread : float
        Standard deviation of the logarithm of a point's number of labels and of features.
    """

    head: float = 0.1
    noise: float = 0.5
    distraction: float = 0.0
    overlap: float = 0.5
    emphasis: float = 1.0
    label_noise: float = 0.1
    missing: float = 0.1
    copies: float = 0.2
    label_spread: float = 0.3
    length_spread: float = 0.6

    def __post_init__(self) -> None:
        for field in fields(self):
            value, most = getattr(self, field.name), 3 if field.name.endswith("spread") else 1
            if not 0 <= value <= most:
                raise ParameterError(f"{field.name} must be in 0..{most}, got {value!r}.")


TRAITS: dict[str, Traits] = {
    "eurlex-4k": Traits(head=0.065, label_noise=0.22, label_spread=0.2),
    "tibkat-gnd": Traits(head=0.014, noise=0.75, label_noise=0.35, missing=0.25, label_spread=0.6),
    "wiki10-31k": Traits(head=0.8, distraction=0.2, label_noise=0.4, missing=0.25),
    "delicious-200k": Traits(
        head=0.33,
        noise=0.6,
        distraction=0.3,
        label_noise=0.7,
        missing=0.4,
        copies=0.1,
        label_spread=1.5,
    ),
    "amazon-670k": Traits(
        head=0.0037,
        noise=0.3,
        distraction=0.3,
        overlap=0.6,
        emphasis=0.0,
        label_noise=0.05,
        missing=0.05,
        copies=0.1,
        label_spread=0.1,
    ),
}
"""Data set → the traits with which methods score on its twin about as on the data set itself."""
