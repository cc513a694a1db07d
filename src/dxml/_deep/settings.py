"""Everything that decides how an encoder is trained."""

from __future__ import annotations

from dataclasses import dataclass

from dxml.exceptions import ParameterError

__all__ = ["DeepSettings"]


@dataclass(frozen=True)
class DeepSettings:
    """How an encoder and its head are trained.

    Attributes
    ----------
    width : int
        Of the layer between transformer and head.
    epochs : int, optional
        By the number of texts where it is not given; see `epochs_for`.
    encoder_rate : float, optional
        Highest learning rate of the encoder; 1e-4 for batches of 128, more for larger ones.
    head_rate : float
        Highest learning rate of head and wide layer.
    dropout : float
        Before the head.
    warm : float
        Share of the steps in which the rate rises; then it falls to none.
    bias : float
        Of every label at the start: the log-odds of a rare label.
    shortlist : bool, optional
        Whether the loss runs over some labels of each batch instead of all of them; where it is
        not given, from more than `most_labels` on.
    hard, own, random : int
        Labels that a shortlist takes: of the given negatives of each text, of those the model
        itself ranks highest for it, and at random for the batch.
    most_weight : float
        A random label stands for all labels that were not drawn, up to so many.
    name_weight : float
        Of the loss that brings texts and the names of their labels together.
    name_every : int
        Names are read once in so many steps, and count for the steps between: reading them
        takes as many launches of a GPU as reading texts.
    chunk : int
        Labels with logits at a time.
    """

    width: int = 1536
    epochs: int | None = None
    batch_size: int = 128
    encoder_rate: float | None = None
    head_rate: float = 1e-3
    weight_decay: float = 0.01
    dropout: float = 0.3
    max_norm: float = 1.0
    warm: float = 0.1
    bias: float = -6.0
    shortlist: bool | None = None
    most_labels: int = 50_000
    hard: int = 16
    own: int = 16
    random: int = 1024
    most_weight: float = 8.0
    name_weight: float = 1.0
    name_every: int = 1
    chunk: int = 16384

    def __post_init__(self) -> None:
        for name in ("width", "batch_size", "name_every", "chunk"):
            if getattr(self, name) < 1:
                raise ParameterError(f"{name} must be 1 or more, got {getattr(self, name)}.")
        if self.epochs is not None and self.epochs < 1:
            raise ParameterError(f"epochs must be 1 or more, got {self.epochs}.")

    def epochs_for(self, n_texts: int) -> int:
        """As asked for, else fewer the more texts there are.

        >>> [DeepSettings().epochs_for(n) for n in (20_000, 80_000, 500_000)]
        [15, 10, 5]
        """
        if self.epochs is not None:
            return self.epochs
        return 15 if n_texts <= 50_000 else 10 if n_texts <= 200_000 else 5

    def shortlists(self, n_labels: int) -> bool:
        """Whether the loss runs over shortlists."""
        return n_labels > self.most_labels if self.shortlist is None else self.shortlist

    def rates(self, done: float) -> tuple[float, float]:
        """Learning rates of encoder and head when a share of the steps is done.

        >>> DeepSettings(encoder_rate=1.0, head_rate=2.0, warm=0.5).rates(0.75)
        (0.5, 1.0)
        """
        share = done / self.warm if done < self.warm else (1 - done) / (1 - self.warm)
        encoder, head = self.peaks
        return encoder * share, head * share

    @property
    def peaks(self) -> tuple[float, float]:
        """The highest learning rates of encoder and head."""
        return self.encoder_rate or 1e-4 * max(1.0, self.batch_size / 128), self.head_rate
