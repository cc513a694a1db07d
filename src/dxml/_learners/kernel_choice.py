"""Choice of kernel, ridge and relations between labels, by precision on held-out points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._learners.distances import Distances, Rows, compact, full_precision
from dxml._learners.kernel_ridge import (
    KERNELS,
    Kernel,
    KernelVote,
    dense_labels,
    factorise,
    kept_vote,
    left_out,
    relations_of,
    rows_of_scores,
    second_of,
    solve,
)
from dxml.metrics import mean_precision
from dxml.progress import SILENT, Progress
from dxml.topk import tie_order, topk_from_dense

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["Fold", "choose_kernel"]

PULLS = (10.0, 30.0, 100.0)  # ridges of the labels' regression that are tried
LEAST_GAIN = 0.001  # of mean precision that the labels' relations must add to be kept
SECONDS = (3.0, 10.0)  # ridges of the second regression that are tried
MOST_RELATED = 4096  # labels up to which their relations are looked for


class Fold(NamedTuple):
    """Points to fit on, and points held out: rows and labels as in `fit_kernel`."""

    X: Rows
    Y: sp.csr_matrix
    X_held: Rows
    Y_held: sp.csr_matrix


def choose_kernel(
    folds: Sequence[Fold],
    device: torch.device,
    candidates: Sequence[Kernel] = KERNELS,
    progress: Progress = SILENT,
    *,
    related: bool = True,
    second: bool = False,
) -> list[KernelVote]:
    """The candidate with the highest mean of P@1, P@3 and P@5 on held-out points; votes by fold.

    Kernels have the ridge that they needed (see `fit_kernel`) and the `pull` that earns its place,
    unless relations of labels are not asked for (`related`); or, where it is asked for, the second
    regression, if that ranks better than a pull.
    """
    best, chosen = -1.0, list[_Solved]()
    with full_precision(), progress.stage("kernel", len(candidates), "kernels") as report:
        grounds = [_prepared(fold, device) for fold in folds]
        for candidate in candidates:
            solved = [_solved(ground, candidate) for ground in grounds]
            reached = _mean_quality(grounds, solved)
            if reached > best:
                best, chosen = reached, solved
            report.advance()
            report.note(f"{chosen[0].kernel.kind}, mean precision {best:.4f}")
        if related and folds[0].Y.shape[1] <= MOST_RELATED:
            chosen = _with_relations(grounds, chosen, best + LEAST_GAIN, second)
    return [
        kept_vote(ground.points, one.votes, one.kernel, one.relations, one.second)
        for ground, one in zip(grounds, chosen, strict=True)
    ]


class _Ground(NamedTuple):
    """What every kernel tried on a fold needs."""

    points: Rows
    labels: Tensor  # (n, n_labels)
    truth: sp.csr_matrix  # of the held-out points
    tie_order: npt.NDArray[np.int32]
    among: Tensor  # squared distances between the points
    to_held: Tensor  # and from the held-out points to them


class _Solved(NamedTuple):
    """A kernel on one fold; `scores` are those of the held-out points before relations."""

    kernel: Kernel
    votes: Tensor
    scores: Tensor
    relations: Tensor | None = None
    second: KernelVote | None = None


def _prepared(fold: Fold, device: torch.device) -> _Ground:
    points = compact(fold.X)
    distances = Distances(points, device)
    order = tie_order(np.bincount(fold.Y.indices, minlength=fold.Y.shape[1]))
    among, to_held = distances.squared(points), distances.squared(fold.X_held)
    return _Ground(points, dense_labels(fold.Y, device), fold.Y_held, order, among, to_held)


def _solved(ground: _Ground, kernel: Kernel) -> _Solved:
    votes, kernel = solve(ground.among.clone, ground.labels, kernel)
    scores = kernel.apply_(ground.to_held.clone()) @ votes
    return _Solved(kernel, votes, scores)


def _with_relations(
    grounds: Sequence[_Ground], alone: list[_Solved], to_beat: float, second: bool
) -> list[_Solved]:
    """The same kernel with its labels related, where that ranks held-out points well enough."""
    said = []
    for ground, one in zip(grounds, alone, strict=True):
        factor, _ = factorise(ground.among.clone, one.kernel)
        said.append(left_out(factor, one.votes, ground.labels))
        del factor
    chosen = alone
    for pull in PULLS:
        related = [
            one._replace(
                kernel=replace(one.kernel, pull=pull), relations=relations_of(*without, pull)
            )
            for one, without in zip(alone, said, strict=True)
        ]
        reached = _mean_quality(grounds, related)
        if reached > to_beat:
            to_beat, chosen = reached, related
    for ridge in SECONDS if second else ():
        related = [
            one._replace(
                kernel=replace(one.kernel, second=ridge), second=second_of(*without, ridge)
            )
            for one, without in zip(alone, said, strict=True)
        ]
        reached = _mean_quality(grounds, related)
        if reached > to_beat:
            to_beat, chosen = reached, related
    return chosen


def _mean_quality(grounds: Sequence[_Ground], solved: Sequence[_Solved]) -> float:
    return fmean(_quality(ground, one) for ground, one in zip(grounds, solved, strict=True))


def _quality(ground: _Ground, one: _Solved) -> float:
    scores = one.scores
    if one.relations is not None:
        scores = scores + scores @ one.relations
    found = scores.cpu().numpy()
    if one.second is not None:
        found = found + one.second.scores(rows_of_scores(found), scores.device)
    depth = min(5, ground.truth.shape[1])
    return mean_precision(ground.truth, topk_from_dense(found, depth, ground.tie_order))
