"""The vote of the nearest points: the share of a point's neighbours that carry a label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dxml._core.arrays import Arrays, real, whole
from dxml._core.precision import Precision
from dxml._neighbors.cosine import cosine_weights
from dxml._neighbors.voting import vote, vote_pairs
from dxml.joint._mixture import Opinion
from dxml.joint._points import Known, Near
from dxml.joint.parts.protocol import Named, Options, Part, Query, Settings, Shape, Task, Trial
from dxml.metrics import mean_precision

__all__ = ["NEIGHBORS", "Vote"]

Floats = npt.NDArray[np.float32]
NEIGHBORS = (10, 20, 50, 100)
"""Numbers of voters that are tried."""
POWERS = (2.0, 4.0, 8.0, 16.0, 32.0)
"""Powers of the cosine, by which a vote weighs, that are tried."""


@dataclass(frozen=True)
class Vote(Part):
    """Neighbours vote for their labels, each by a power of its cosine with the point.

    Attributes
    ----------
    n_neighbors : int
    power : float
    """

    name: ClassVar[str] = "vote"
    opinion: ClassVar[Opinion] = Opinion(default_weight=3.0, is_share=True)
    on_device: ClassVar[bool] = False
    needs_neighbors: ClassVar[bool] = True

    n_neighbors: int = 20
    power: float = 4.0

    @classmethod
    def plan(
        cls, shape: Shape, options: Options, others: Mapping[str, Settings]
    ) -> Settings | None:
        return {}

    @classmethod
    def fit(cls, task: Task, settings: Settings, start: Part | None = None) -> Self:
        return cls(**settings)

    @classmethod
    def choose(cls, trials: Sequence[Trial], settings: Settings) -> tuple[Settings, Sequence[Part]]:
        """The number of voters and the power that rank held-out points best by themselves."""
        most = max(_near(trial).ids.shape[1] for trial in trials)
        best, chosen = -1.0, settings
        for n_neighbors in sorted({min(size, most) for size in NEIGHBORS}):
            for power in POWERS:
                quality = fmean(_quality(trial, n_neighbors, power) for trial in trials)
                if quality > best:
                    best, chosen = quality, {"n_neighbors": n_neighbors, "power": power}
        return chosen, [cls(**chosen) for _ in trials]

    @property
    def settings(self) -> Settings:
        return {"n_neighbors": self.n_neighbors, "power": self.power}

    def scores(self, query: Query) -> Floats:
        near = query.near.first(self.n_neighbors)
        return vote_pairs(near.ids, self.weights(near), query.known.labels, query.pairs)

    def weights(self, near: Near) -> Floats:
        """What each neighbour's vote weighs; those of one point add up to 1."""
        return cosine_weights(*near, self.power)

    def hide(self, after: Known) -> Vote:
        return self

    def state(self, precision: Precision) -> tuple[dict[str, Any], Named]:
        return dict(self.settings), {}

    @classmethod
    def restore(cls, config: Settings, arrays: Arrays, known: Known) -> Self:
        return cls(whole(config, "n_neighbors", 1), real(config, "power"))


def _near(trial: Trial) -> Near:
    assert trial.near is not None
    return trial.near


def _quality(trial: Trial, n_neighbors: int, power: float) -> float:
    near, known = _near(trial).first(n_neighbors), trial.known
    depth = min(5, known.n_labels)
    weights = cosine_weights(*near, power)
    return mean_precision(trial.Y, vote(near.ids, weights, known.labels, depth, known.tie_order))
