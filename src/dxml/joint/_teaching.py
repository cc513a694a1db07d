"""More points, fewer points and corrected labels for a model that is already trained.

What a new point changes, at once:

========  ==========================================================================================
part      what it does with new points
========  ==========================================================================================
vote      they are neighbours like all others
linear    a label of whose points a tenth or more are new is trained on
kernel    they get votes, and up to 1,000 known points other ones, that together fit their labels
wide      the layer stays; a new label gets the direction of the mean of its points
deep      the encoder stays; a new label gets the direction of the mean of its texts, and its name
vectors   a label's mean is that of all its texts
========  ==========================================================================================

Labels that become one: their votes are added up in the kernel, the linear head trains the new one
on from the mean of their weights, wide layer and encoder keep a stretched mean of their rows, and
label trees the place of the most frequent one. The mean vector of their texts is that of all.

The weights of the mixture stay. A point that is dropped votes no more, and a label taken off a
point is unlearnt from it. What linear head and wide layer learnt from a dropped point stays until
the model is trained again.

Adding and dropping a point take no time for the others, on average over many: what is added is
written behind what is there, and what is dropped is a hole until there are many. The kernel is the
exception: each of its answers weighs all points anyway.

`train_on` trains every part on from where it is, with all the points it knows. It holds nothing out
and starts near the solution, so it is quicker than a new fit. Its constants were chosen on held-out
points after 1,000 and 10,000 points were added to 9,000: benchmarks/results/teaching-choices.json.

Every function gives a new ensemble and leaves the old as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.precision import pack_sparse, unpack_sparse
from dxml._deep.texts import Texts
from dxml._deep.tokens import Tokens
from dxml.joint._ensemble import Ensemble
from dxml.joint._plan import PARTS, Plan
from dxml.joint.parts.protocol import Data, Lesson, Options, Regrouping, Task
from dxml.progress import SILENT, Progress

__all__ = ["add_points", "drop_points", "regroup", "remove_label", "train_on", "widen"]


def add_points(
    ensemble: Ensemble,
    X: sp.csr_matrix,
    Y: sp.csr_matrix,
    options: Options,
    texts: Texts | None = None,
    label_texts: Tokens | None = None,
) -> Ensemble:
    """With more points.

    Parameters
    ----------
    X : csr_matrix of shape (n_new, n_features)
        Scaled rows.
    Y : csr_matrix of shape (n_new, n_labels), bool
        Columns beyond those that are known are new labels.
    texts : Texts or None
    label_texts : Tokens or None
        Of the new points, and of the new labels, where a part reads texts.
    """
    X = unpack_sparse("new", pack_sparse("new", X, options.precision))  # as it will be read again
    before = ensemble.known
    lesson = Lesson(X, Y, before, before.add(X, Y), options, texts, label_texts)
    parts = {name: part.add(lesson) for name, part in ensemble.parts.items()}
    return replace(ensemble, known=lesson.after, parts=parts)


def drop_points(ensemble: Ensemble, rows: npt.NDArray[np.int64]) -> Ensemble:
    """Without these points, by their numbers.

    They are holes first (`dxml._core.holes`), where all parts can have them.
    """
    known = ensemble.known
    places = known.holes.place_of(rows)
    if (after := known.hide(places)) is not None:
        parts = {name: part.hide(after) for name, part in ensemble.parts.items()}
        told = {name: part for name, part in parts.items() if part is not None}
        if len(told) == len(parts):
            fewer = replace(ensemble, known=after, parts=told)
            return fewer.without_holes() if after.holes.are_many(after.n_rows) else fewer
    kept = known.holes.add(places).kept(known.n_rows)
    return ensemble.only(kept, known.drop(kept))


def widen(ensemble: Ensemble, n_features: int) -> Ensemble:
    """With more features after those there are; no known point has them.

    Neighbours are compared by them and the linear head may learn weights for them. A wide layer
    does not see them until it is trained on.
    """
    after = ensemble.known.widen(n_features)
    parts = {name: part.widen(after) for name, part in ensemble.parts.items()}
    searched = np.ones(n_features, dtype=bool)
    searched[: len(ensemble.searched)] = ensemble.searched
    return replace(ensemble, known=after, parts=parts, searched=searched)


def remove_label(ensemble: Ensemble, row: int, label: int, options: Options) -> Ensemble:
    """With a label taken off a row of the known points that carries it."""
    after = ensemble.known.unlabel(row, label)
    parts = {
        name: part.unlabel(row, label, after, options) for name, part in ensemble.parts.items()
    }
    return replace(ensemble, known=after, parts=parts)


def regroup(
    ensemble: Ensemble,
    options: Options,
    main: npt.NDArray[np.int64],
    merged: Mapping[int, npt.NDArray[np.int64]],
    renamed: npt.NDArray[np.int64],
    label_texts: Tokens | None = None,
) -> Ensemble:
    """With labels merged, left out or renamed; parameters are those of `Regrouping`."""
    ensemble = ensemble.without_holes()
    before = ensemble.known
    after = before.regroup(main, merged)
    change = Regrouping(main, merged, renamed, label_texts, before, after, options)
    parts = {name: part.regroup(change) for name, part in ensemble.parts.items()}
    return replace(ensemble, known=after, parts=parts)


def train_on(
    ensemble: Ensemble, planned: Plan, options: Options, progress: Progress = SILENT
) -> Ensemble:
    """With all parts trained on.

    Parameters
    ----------
    planned : Plan
        That of a model of so many points; a part that it lacks may be too dear to train on.
    """
    ensemble = ensemble.without_holes()
    known = ensemble.known
    data = Data(known.points, known.labels)
    if any(PARTS[name].ladder for name in ensemble.parts):
        with progress.stage("neighbours"):
            count = options.n_negatives
            negatives = known.own_shortlists(count, count, options.device)
        data = replace(data, negatives=negatives)
    task = Task(data, options, progress=progress)
    parts = {
        name: part.train_on(task, planned.parts.get(name)) for name, part in ensemble.parts.items()
    }
    return replace(ensemble, parts=parts)
