"""Data → the fitted parts of a joint model, and the weights of the parts.

The parts are fitted without the held-out points, weighed on those, and fitted again with all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.scaling import to_length_one
from dxml._core.sparse import column_counts
from dxml._deep.texts import Texts
from dxml._deep.tokens import Tokens
from dxml._neighbors.cosine import rare_features
from dxml.joint._ensemble import Ensemble, space_of, with_candidates
from dxml.joint._held_out import Fold, HeldOut
from dxml.joint._known_features import only_known
from dxml.joint._mixture import Mixture, default_mixture
from dxml.joint._plan import PARTS, Plan
from dxml.joint._points import FeatureSpace, Known
from dxml.joint._promises import Promises
from dxml.joint._weighing import Attempt, Weighing, climb
from dxml.joint.parts._vote import NEIGHBORS
from dxml.joint.parts.protocol import Data, Options, Part, Settings, Task, Trial
from dxml.progress import Progress

__all__ = ["Fitted", "fit_ensemble", "n_candidates_for"]

COMMON_POINTS = 4_000  # points with a feature, from which on it is too common to search by
FURTHER = 0.01  # mean precision that a step of a ladder must gain for the next to be tried
EARNED = 0.003  # mean precision that an optional part must add

Ids = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class Fitted(NamedTuple):
    """The parts of all points, how they are weighed, and what held-out points say of them."""

    ensemble: Ensemble
    mixture: Mixture
    held_out: HeldOut | None
    promises: Promises | None


@dataclass(frozen=True, eq=False)
class _Choice:
    """What held-out points chose: settings, weights, and parts to start the last fit from."""

    settings: Mapping[str, Settings]
    mixture: Mixture
    start: Mapping[str, Part]
    held_out: HeldOut
    promises: Promises

    @property
    def precision(self) -> float:
        """The mean of P@1, P@3 and P@5 of the held-out points, from 0 to 1."""
        return fmean(self.held_out.precision.values()) / 100


def n_candidates_for(plan: Plan) -> int:
    """Labels on a shortlist, where the user does not say."""
    return 200 if any(PARTS[name].is_slow for name in plan.parts) else 100


def fit_ensemble(
    X: sp.csr_matrix,
    Y: sp.csr_matrix,
    plan: Plan,
    folds: Sequence[Fold],
    options: Options,
    *,
    tie_order: Ids,
    n_candidates: int | None = None,
    texts: Texts | None = None,
    label_texts: Tokens | None = None,
    progress: Progress,
) -> Fitted:
    """Fit the plan's parts to scaled rows, and weigh them on those that a fold holds out."""
    searched = _searched(X)
    known = Known(X, Y, tie_order, FeatureSpace(X, searched))
    n_candidates = n_candidates or n_candidates_for(plan)
    data = Data(X, Y, None, texts, label_texts)
    if not plan.every_label:
        wanted, negatives = max(n_candidates, options.n_negatives), options.n_negatives
        with progress.stage("neighbours"):
            shortlists = known.own_shortlists(wanted, negatives, options.device)
        data = replace(data, negatives=shortlists)
    task = Task(data, options, progress=progress)
    settings, mixture, start, held_out, promises = plan.parts, None, {}, None, None
    if folds:
        trials = [_trial(task, fold, known, n_candidates) for fold in folds]
        choice = _choose_plan(plan, trials, n_candidates)
        settings, mixture, start = choice.settings, choice.mixture, dict(choice.start)
        held_out, promises = choice.held_out, choice.promises
        del trials, choice  # a part of a trial goes when the last fit has gone on from it
    parts = {
        name: PARTS[name].fit(task, own, start.pop(name, None)) for name, own in settings.items()
    }
    plan = Plan(plan.every_label, settings)
    known = replace(known, space=space_of(plan, parts, X, searched))
    if mixture is None:
        mixture = default_mixture({name: part.opinion for name, part in parts.items()})
    ensemble = Ensemble(plan, known, parts, searched, n_candidates)
    return Fitted(ensemble, mixture, held_out, promises)


def _searched(X: sp.csr_matrix) -> Mask:
    """The features by which points are searched."""
    return rare_features(X, min(0.1, COMMON_POINTS / max(X.shape[0], 1)))


def _trial(task: Task, fold: Fold, known: Known, n_candidates: int) -> Trial:
    """One fold. With shortlists, points held out by chance are searched among all points but
    themselves; otherwise among those that are learnt from."""
    own, device = replace(task, rows=~fold.held), task.options.device
    asked, texts = np.flatnonzero(fold.asked), task.data.texts
    X, Y = _as_seen(task.data.X, fold, task.options.unit_rows), task.data.Y[asked]
    texts = None if texts is None else texts.take(asked)
    shortlists = task.data.negatives is not None
    if shortlists and not fold.whole_groups:
        found = known.search(X, n_candidates + 1, device).without(asked)
        return Trial(own, X, Y, known, found, texts=texts)
    learnt, labels = own.learnt
    fewer = replace(known, held=learnt, labels=labels)
    if not shortlists:
        return Trial(own, X, Y, fewer, texts=texts)
    fewer = replace(fewer, space=FeatureSpace(learnt, _searched(task.data.X)))
    found = fewer.search(X, n_candidates, device)
    return Trial(own, X, Y, fewer, found, texts=texts)


def _as_seen(X: sp.csr_matrix, fold: Fold, unit_rows: bool = True) -> sp.csr_matrix:
    """The points asked for, without the features that no learnt point has.

    A new point's are not known either, and make its row no longer.
    """
    held, asked = X[fold.held], X[fold.asked]
    seen = only_known(asked, column_counts(X) - column_counts(held))
    return seen if seen is asked or not unit_rows else to_length_one(seen)


def _choose_plan(plan: Plan, trials: Sequence[Trial], n_candidates: int) -> _Choice:
    """By the plan, or by one of its variants if held-out points rank better so."""
    best = _choose(plan, trials, n_candidates)
    for variant in plan.variants:
        other = _choose(variant, trials, n_candidates)
        if other.precision - best.precision >= EARNED:
            best = other
    return best


def _choose(plan: Plan, trials: Sequence[Trial], n_candidates: int) -> _Choice:
    """Settings by part, the mixture, and parts to start the last fit from, by held-out points."""
    chosen: dict[str, Settings] = {}
    alone = [name for name in plan.parts if not PARTS[name].ladder]
    for name in alone:
        if not PARTS[name].needs_neighbors:
            chosen[name], trials = _fit_in_all(name, plan.parts[name], trials)
    trials = [_with_neighbors(trial, plan) for trial in trials]
    for name in alone:
        if PARTS[name].needs_neighbors:
            chosen[name], trials = _fit_in_all(name, plan.parts[name], trials)
    queries = [
        with_candidates(trial.query(plan.every_label), trial.parts, n_candidates)
        for trial in trials
    ]
    opinions = {name: PARTS[name].opinion for name in plan.parts}
    weighing = Weighing(trials, queries, opinions)
    mixture: Mixture | None = None
    more: dict[str, Sequence[Part]] = {}
    start = {name: trials[0].parts[name] for name in alone if PARTS[name].continues}
    for name in plan.parts:
        if PARTS[name].ladder:
            climbed = _climbed(name, trials, weighing, plan.every_label)
            mixture = climbed.mixture
            if climbed.settings is not None:
                chosen[name], more[name] = climbed.settings, climbed.parts
                if len(trials) == 1:
                    start[name] = climbed.last
    settings = {name: chosen[name] for name in plan.parts if name in chosen}
    mixture, judged, promises = weighing.finished(mixture or weighing.mixture()[1], more)
    return _Choice(settings, mixture, start, judged, promises)


def _fit_in_all(
    name: str, settings: Settings, trials: Sequence[Trial]
) -> tuple[Settings, list[Trial]]:
    """One more part in every trial, with the settings that it chose."""
    chosen, parts = PARTS[name].choose(trials, settings)
    more = [
        replace(trial, parts={**trial.parts, name: part})
        for trial, part in zip(trials, parts, strict=True)
    ]
    return chosen, more


def _with_neighbors(trial: Trial, plan: Plan) -> Trial:
    if trial.near is not None:
        return trial
    known = trial.known
    space = space_of(plan, trial.parts, known.points, _searched(known.points))
    known = replace(known, space=space)
    near = known.search(trial.X, max(NEIGHBORS), trial.task.options.device)
    return replace(trial, known=known, near=near)


class _Climbed(NamedTuple):
    """The result of a search over a part's ladder: its settings; None: the part is left out."""

    settings: Settings | None
    mixture: Mixture
    last: Part
    parts: Sequence[Part]


def _climbed(name: str, trials: Sequence[Trial], weighing: Weighing, every_label: bool) -> _Climbed:
    """The settings with the best precision on held-out points.

    With one trial an attempt starts from where the one before ended. With several it does not: a
    trial must not go on from what another's held-out points led to.
    """
    kind, options = PARTS[name], trials[0].task.options

    def attempt(settings: Settings, before: Attempt | None = None) -> Attempt:
        warm = before.parts[0] if before is not None and len(trials) == 1 else None
        parts = [kind.fit(trial.task, settings, warm) for trial in trials]
        return Attempt(*weighing.mixture({name: parts}), settings, parts)

    fixed = kind.fixed(options)
    low = attempt(kind.ladder[kind.first_steps[0]] if fixed is None else fixed)
    best = last = low
    if fixed is None:
        if kind.optional(every_label, trials[0].parts):
            quality, without = weighing.mixture()
            if low.quality < quality + EARNED:
                return _Climbed(None, without, low.parts[0], ())
        best, last = climb(kind.ladder, kind.first_steps, FURTHER, low, attempt)
    return _Climbed(best.settings, best.mixture, last.parts[0], best.parts)
