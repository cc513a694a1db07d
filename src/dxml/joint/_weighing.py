"""Held-out points → the weights of the parts, and the settings that the mixture ranks best with.

Quality is the mean of P@1, P@3 and P@5 of the held-out points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.scaling import is_dense
from dxml._core.sparse import plain_csr
from dxml.joint._calibration import LEAST_RANKED
from dxml.joint._familiarity import Counts
from dxml.joint._held_out import HeldOut
from dxml.joint._mixture import NEVER, Mixture, Opinion, fit_mixture
from dxml.joint._promises import DEPTH, Promises, count_promises
from dxml.joint.parts.protocol import Part, Query, Settings, Trial
from dxml.metrics import mean_precision, precision_at_k, threshold_curve
from dxml.topk import TopK, topk_from_csr

__all__ = ["Attempt", "Weighing", "climb"]

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Attempt:
    """What settings of one part led to.

    Attributes
    ----------
    quality : float
    mixture : Mixture
    settings : dict
    parts : list of Part
        As fitted in each trial.
    """

    quality: float
    mixture: Mixture
    settings: Settings
    parts: Sequence[Part]


class Weighing:
    """Mixtures of what the parts say of held-out points.

    Parameters
    ----------
    trials : sequence of Trial
        With their neighbours, and all parts but those that are still to be chosen.
    queries : sequence of Query
        The points that each trial holds out, with the pairs that are scored.
    opinions : dict of Opinion
        Of every part that may come.
    """

    def __init__(
        self,
        trials: Sequence[Trial],
        queries: Sequence[Query],
        opinions: Mapping[str, Opinion],
    ) -> None:
        self._opinions, self._queries, known = opinions, queries, []
        for trial, query in zip(trials, queries, strict=True):
            fitted = trial.task.learnt[1]
            carried = np.bincount(fitted.indices, minlength=fitted.shape[1]) > 0
            known.append(carried[query.pairs.indices])
        self._said = [
            {name: part.scores(query) for name, part in trial.parts.items()}
            for trial, query in zip(trials, self._queries, strict=True)
        ]
        self._known = np.concatenate(known)
        self._pairs = _stacked([query.pairs for query in queries])
        self._truth = _stacked([trial.Y for trial in trials])
        self._tie_order = trials[0].known.tie_order
        self._n_features = _known_features(trials, queries)

    def mixture(self, more: Mapping[str, Sequence[Part]] | None = None) -> tuple[float, Mixture]:
        """Quality and mixture of the parts, with more of them: by name, one a trial."""
        every = self._every(more)
        mixture = every.mixture(self._opinions)
        return every.quality(mixture), mixture

    def finished(
        self, mixture: Mixture, more: Mapping[str, Sequence[Part]]
    ) -> tuple[Mixture, HeldOut, Promises]:
        """The mixture that is kept, how well it ranks, and what can be promised of it.

        Its weights depend on the frequency of a label where that ranks points better which did not
        take part in weighing: each half of the held-out points is asked by the other's weights.
        They do not where that makes weights swing from round to round that otherwise settle.
        """
        every = self._every(more)
        if every.n_points >= 2 * LEAST_RANKED and self._by_frequency_is_better(every):
            by_frequency = every.mixture(self._opinions, by_frequency=True)
            mixture = by_frequency if _steady(mixture, by_frequency) else mixture
        return mixture, every.judged(mixture), every.promises(mixture)

    def _by_frequency_is_better(self, every: _Asked) -> bool:
        halves = np.arange(every.n_points) % 2
        gain = 0.0
        for half in (0, 1):
            own, other = every.rows(halves == half), every.rows(halves != half)
            plain, by_frequency = (
                own.mixture(self._opinions, by_frequency=depend) for depend in (False, True)
            )
            if not _steady(plain, by_frequency):
                return False
            gain += other.quality(by_frequency) - other.quality(plain)
        return gain > 0

    def _every(self, more: Mapping[str, Sequence[Part]] | None) -> _Asked:
        said = [dict(each) for each in self._said]
        for name, parts in (more or {}).items():
            for each, part, query in zip(said, parts, self._queries, strict=True):
                each[name] = part.scores(query)
        together = {name: np.concatenate([each[name] for each in said]) for name in said[0]}
        held = self._pairs, self._truth, self._known, self._tie_order
        return _Asked(*held, together, self._n_features)


@dataclass(frozen=True, eq=False)
class _Asked:
    """Held-out points, their candidate labels, and what the parts say of these.

    Attributes
    ----------
    pairs, truth : csr_matrix of shape (n_points, n_labels)
    known : bool array, one value for each stored pair
        Whether points that were learnt from carry the label.
    tie_order : int32 array of shape (n_labels,)
    said : dict of float32 arrays, one row for each stored pair
    n_features : int array of shape (n_points,) or None
        Known features of each point; None for dense data.
    """

    pairs: sp.csr_matrix
    truth: sp.csr_matrix
    known: npt.NDArray[np.bool_]
    tie_order: npt.NDArray[np.int32]
    said: Mapping[str, Floats]
    n_features: Counts | None

    @property
    def n_points(self) -> int:
        return int(self.pairs.shape[0])

    def rows(self, kept: npt.NDArray[np.bool_]) -> _Asked:
        """Some of the points."""
        own = np.repeat(kept, np.diff(self.pairs.indptr))
        said = {name: scores[own] for name, scores in self.said.items()}
        pairs, truth = self.pairs[kept], self.truth[kept]
        n_features = None if self.n_features is None else self.n_features[kept]
        return _Asked(pairs, truth, self.known[own], self.tie_order, said, n_features)

    def mixture(self, opinions: Mapping[str, Opinion], *, by_frequency: bool = False) -> Mixture:
        """The parts weighed on these points."""
        return fit_mixture(
            self.said,
            opinions,
            self.pairs,
            self.truth,
            self.known,
            n_features=self.n_features,
            by_frequency=by_frequency,
        )

    def quality(self, mixture: Mixture) -> float:
        """How well a mixture ranks."""
        return mean_precision(self.truth, self.ranking(mixture))

    def judged(self, mixture: Mixture) -> HeldOut:
        """How well a mixture ranks, in the field's measures."""
        ranking = self.ranking(mixture, DEPTH)
        found = 100 * precision_at_k(self.truth, ranking, ranking.k)
        scores = {k: round(float(found[k - 1]), 2) for k in (1, 3, 5) if k <= ranking.k}
        likely = self.likely(mixture, ranking)
        return HeldOut(self.n_points, scores, threshold_curve(self.truth, likely))

    def promises(self, mixture: Mixture) -> Promises:
        """What can be promised of the labels above a threshold."""
        return count_promises(self.truth, self.likely(mixture, self.ranking(mixture, DEPTH)))

    def likely(self, mixture: Mixture, ranking: TopK) -> TopK:
        """A ranking by mixed scores, with probabilities."""
        return TopK(ranking.indices, mixture.ranked(ranking.scores, self.n_features))

    def ranking(self, mixture: Mixture, depth: int = 5) -> TopK:
        """The best candidates of each point, by mixed score."""
        pairs, mixed = self.pairs, mixture.mix(self.said)
        mixed[~self.known] = NEVER
        scored = plain_csr(mixed, pairs.indices, pairs.indptr, pairs.shape)
        return topk_from_csr(scored, min(depth, pairs.shape[1]), self.tie_order)


def climb(
    ladder: Sequence[Settings],
    first_steps: tuple[int, int],
    worth: float,
    low: Attempt,
    attempt: Callable[[Settings, Attempt], Attempt],
) -> tuple[Attempt, Attempt]:
    """The best attempt, and the last one.

    The lower of two neighbouring steps was tried; the higher is tried next. Where one of them is
    better by `worth`, the search goes on beyond it, for as long as that much is gained.

    Parameters
    ----------
    attempt : function from settings, and the attempt before, to an attempt
    """
    last = high = attempt(ladder[first_steps[1]], low)
    up = high.quality > low.quality
    best = high if up else low
    beyond = ladder[first_steps[1] + 1 :] if up else ladder[: first_steps[0]][::-1]
    gain = abs(high.quality - low.quality)
    for settings in beyond:
        if gain < worth:
            break
        last = attempt(settings, last)
        gain = last.quality - best.quality
        best = last if gain > 0 else best
    return best, last


def _steady(plain: Mixture, by_frequency: Mixture) -> bool:
    """Whether weights by frequency settle, or plain ones do not either."""
    return by_frequency.settled or not plain.settled


def _known_features(trials: Sequence[Trial], queries: Sequence[Query]) -> Counts | None:
    """How many each point has; None for measurements, whose zeros are nothing that is not known."""
    if trials[0].task.options.standardised or any(is_dense(query.X) for query in queries):
        return None
    return np.concatenate([np.diff(query.X.indptr) for query in queries])


def _stacked(matrices: list[sp.csr_matrix]) -> sp.csr_matrix:
    return matrices[0] if len(matrices) == 1 else sp.vstack(matrices, format="csr")
