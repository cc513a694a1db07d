"""New points and labels for the parts of a joint model that is already trained.

What a new point changes, at once:

========  ==========================================================================================
part      what it does with new points
========  ==========================================================================================
vote      they are neighbours like all others
linear    a label of whose points a tenth or more are new is trained on with them and with the new
          points that have it on their shortlist; a new label also with the known points nearest
kernel    they get votes, and up to 1,000 known points other ones, that together give their labels
wide      the layer stays; a new label is told by how near a point lies to the mean of its points in
          that layer, on the scale of the other labels' logits
========  ==========================================================================================

How the parts are weighed (`dxml.joint.mixture`) stays. A point that is dropped votes no more, and a
label taken off a point is unlearnt from it; what the weights of linear head and wide layer owe to a
dropped point stays until the model is trained again.

Every function gives new parts and leaves the old as they were.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch.nn import functional as F

from dxml._core.precision import Precision, pack, pack_sparse, unpack, unpack_sparse
from dxml._core.sparse import plain_csr
from dxml.joint.parts import VOTES, Parts
from dxml.learners.kernel_ridge import extend_kernel
from dxml.learners.linear_head import LinearHead, Task, fit_linear, label_tasks
from dxml.learners.wide_layer import WideHead
from dxml.topk import tie_order

__all__ = ["Lessons", "add_points", "drop_points", "remove_label"]

NEAREST = 50  # known points around a new one, from which its new labels are told
INVOLVED = 1000  # known points whose kernel votes may change
NEWS = 0.1  # share of new points among a label's, from which on its weights are trained on
"""With less, points that come one by one make the others worse; with more, less is learnt from
them: benchmarks/results/teaching-choices.json."""
SAMPLE = 500  # points that tell how large the logits of the wide layer are

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Lessons:
    """How the linear head is trained on, and how the numbers are kept; as in `Joint`."""

    C: float
    passes: int
    prune: float
    n_negatives: int
    precision: Precision
    seed: int
    device: str


def add_points(parts: Parts, X: sp.csr_matrix, Y: sp.csr_matrix, how: Lessons) -> Parts:
    """The parts with more points.

    Parameters
    ----------
    X : csr_matrix of shape (n_new, n_features)
        Scaled rows.
    Y : csr_matrix of shape (n_new, n_labels), bool
        Columns beyond those that the parts know are new labels.
    """
    X = _rounded(X, how.precision)
    n_known, n_labels = parts.labels.shape[0], Y.shape[1]
    labels = _stacked(_widened(parts.labels, n_labels), Y)
    grown = replace(
        parts,
        points=_stacked(parts.points, X),
        labels=labels,
        place=_places(labels),
        _hidden=_more_hidden(parts, X),
    )
    if parts.kernel is not None:
        rows = _involved(parts, X, how)
        known, device = labels[:n_known], torch.device(how.device)
        kernel = extend_kernel(parts.kernel, known, X, Y, rows, device)
        votes = unpack("votes", pack("votes", kernel.votes, VOTES[how.precision]))
        grown.kernel = replace(kernel, votes=votes)
    if parts.wide is not None:
        grown.wide = _more_labels(parts.wide, grown, parts.labels.shape[1], how)
    if parts.linear is not None:
        known = _taller(parts.linear.weights, n_labels)
        task = _new_task(grown, X, n_known, parts.labels.shape[1], how)
        task = _worth_it(task, grown.labels, n_known)
        grown.linear = _train_on(known, grown.points, task, how)
    return grown


def drop_points(parts: Parts, rows: npt.NDArray[np.int64]) -> Parts:
    """The parts without these points."""
    kept = np.ones(parts.points.shape[0], dtype=bool)
    kept[rows] = False
    labels = parts.labels[kept]
    fewer = replace(
        parts,
        points=parts.points[kept],
        labels=labels,
        place=_places(labels),
        _hidden={
            device: hidden[torch.from_numpy(kept).to(hidden.device)]
            for device, hidden in parts._hidden.items()
        },
    )
    if parts.kernel is not None:
        known = parts.kernel
        fewer.kernel = replace(known, points=known.points[kept], votes=known.votes[kept])
    return fewer


def remove_label(parts: Parts, row: int, label: int, how: Lessons) -> Parts:
    """The parts with a label taken off a point that carries it."""
    kept = np.ones(parts.labels.nnz, dtype=bool)
    start, stop = parts.labels.indptr[row : row + 2]
    kept[start + int(np.flatnonzero(parts.labels.indices[start:stop] == label)[0])] = False
    ends = np.concatenate([[0], np.cumsum(kept)])[parts.labels.indptr]
    ends = ends.astype(parts.labels.indptr.dtype)
    indices = parts.labels.indices[kept]
    labels = plain_csr(np.ones(len(indices), bool), indices, ends, parts.labels.shape)
    less = replace(parts, labels=labels, place=_places(labels))
    if parts.kernel is not None:  # the step of one coordinate: k(x, x) is 1
        votes, kernel = np.array(parts.kernel.votes), parts.kernel.kernel
        votes[row, label] -= 1 / (1 + kernel.ridge)
        votes[[row]] = unpack("votes", pack("votes", votes[[row]], VOTES[how.precision]))
        less.kernel = replace(parts.kernel, votes=votes)
    if parts.linear is not None:
        one = (np.array([-1], np.int8), (np.array([label]), np.array([row])))
        points = sp.csr_matrix(one, shape=labels.shape[::-1])
        task = Task(points, np.zeros(1, dtype=np.float32))
        less.linear = _train_on(parts.linear.weights, parts.points, task, how)
    return less


def _involved(parts: Parts, X: sp.csr_matrix, how: Lessons) -> npt.NDArray[np.int64]:
    """Known points whose votes the new ones may change: those near them, and any others."""
    ids, _ = parts.search(X, NEAREST, how.device)
    found = np.bincount(ids[ids >= 0], minlength=parts.points.shape[0])
    near = np.argsort(-found, kind="stable")[: min(INVOLVED // 2, int((found > 0).sum()))]
    others = np.random.default_rng(how.seed).permutation(parts.points.shape[0])
    others = others[~np.isin(others, near)][: INVOLVED - len(near)]
    return np.sort(np.concatenate([near, others]))


def _new_task(grown: Parts, X: sp.csr_matrix, n_known: int, n_old: int, how: Lessons) -> Task:
    """New points against their shortlists; new labels also against the known points nearby."""
    n, n_new = grown.points.shape[0], X.shape[0]
    ids, cosines = grown.search(X, how.n_negatives + 1, how.device)
    own = ids == n_known + np.arange(n_new)[:, None]
    ids, cosines = np.where(own, np.int32(-1), ids), np.where(own, np.float32(0), cosines)
    shortlist = grown.shortlist(ids, cosines, how.n_negatives)
    first = label_tasks(grown.labels[n_known:], shortlist).points  # (n_labels, n_new)
    signs = sp.csr_matrix(
        sp.hstack([sp.csr_matrix((first.shape[0], n_known)), first]), dtype=np.int8
    )
    if grown.labels.shape[1] > n_old:
        near = ids[:, :NEAREST]
        found = near >= 0
        rows = np.nonzero(found)[0]
        around = sp.csr_matrix((np.ones(len(rows), np.int32), (rows, near[found])), (n_new, n))
        fresh = grown.labels[:, n_old:].T.tocsr().astype(np.int32)  # (n_fresh, n)
        others = fresh[:, n_known:] @ around
        others = others - others.multiply(fresh > 0)  # not where the label is carried
        others.eliminate_zeros()
        others.data[:] = -1
        old = sp.csr_matrix((n_old, n), dtype=np.int8)
        nearby = sp.csr_matrix(sp.vstack([old, others]), dtype=np.int8)
        signs = sp.csr_matrix((signs + nearby).sign(), dtype=np.int8)  # -2 where both say -1
    signs.sort_indices()
    return Task(signs, np.zeros(signs.nnz, dtype=np.float32))


def _worth_it(task: Task, labels: sp.csr_matrix, n_known: int) -> Task:
    """Without the labels of which only a small share of the points is new.

    Trained on with a few new points, which have nothing to set against them, they would get worse.
    """
    all_points = np.bincount(labels.indices, minlength=labels.shape[1])
    new = np.bincount(labels[n_known:].indices, minlength=labels.shape[1])
    kept = (new > 0) & (new >= NEWS * all_points)
    points = task.points.copy()
    points.data *= np.repeat(kept, np.diff(points.indptr))
    points.eliminate_zeros()
    return Task(points, np.zeros(points.nnz, dtype=np.float32))


def _train_on(known: sp.csr_matrix, X: sp.csr_matrix, task: Task, how: Lessons) -> LinearHead:
    """The weights of the labels that the task has points for, trained on; the others as known."""
    taught = np.diff(task.points.indptr) > 0
    if not taught.any():
        return LinearHead(known)
    some = fit_linear(
        X,
        Task(task.points[taught], task.duals),
        C=how.C,
        passes=how.passes,
        prune=how.prune,
        start=known[taught],
        seed=how.seed,
    )
    fresh = _rounded(some.weights, how.precision)
    places = np.empty(len(taught), dtype=np.int64)
    places[~taught] = np.arange((~taught).sum())
    places[taught] = (~taught).sum() + np.arange(taught.sum())
    return LinearHead(_stacked(known[~taught], fresh)[places])


def _more_labels(wide: WideHead, grown: Parts, n_old: int, how: Lessons) -> WideHead:
    """Outer weights of the new labels, along the way from the mean of all points to theirs.

    Their logit is, on average over all points, that of all labels, and over a label's own points
    that of all labels over theirs.
    """
    n, n_labels = grown.labels.shape
    if n_labels == n_old:
        return wide
    device = torch.device(how.device)
    rows = np.sort(np.random.default_rng(how.seed).permutation(n)[:SAMPLE])
    hidden = wide.hidden(grown.points[rows], device)
    middle = hidden.mean(axis=0)
    low = float(middle @ wide.outer.mean(axis=0) + wide.outer_bias.mean())
    pairs = grown.labels[rows][:, :n_old].tocoo()
    logits = np.einsum("ij,ij->i", hidden[pairs.row], np.asarray(wide.outer)[pairs.col])
    high = float((logits + wide.outer_bias[pairs.col]).mean()) if pairs.nnz else low
    carriers = grown.labels[:, n_old:].T.tocsr()
    outer = np.zeros((n_labels - n_old, len(middle)), dtype=np.float32)
    bias = np.full(n_labels - n_old, low, dtype=np.float32)
    for label in np.flatnonzero(np.diff(carriers.indptr)):
        points = carriers.indices[carriers.indptr[label] : carriers.indptr[label + 1]]
        away = wide.hidden(grown.points[points], device).mean(axis=0) - middle
        outer[label] = away * (max(high - low, 0.0) / max(float(away @ away), 1e-12))
        bias[label] -= outer[label] @ middle
    outer = unpack("outer", pack("outer", outer, how.precision))
    return WideHead(
        wide.inner,
        wide.inner_bias,
        np.concatenate([wide.outer, outer]),
        np.concatenate([wide.outer_bias, bias]),
    )


def _more_hidden(parts: Parts, X: sp.csr_matrix) -> dict[str, torch.Tensor]:
    """The points of the wide layer's space, with the new ones after them."""
    if parts.wide is None:
        return {}
    return {
        device: torch.cat([known, F.normalize(parts.wide.hidden_tensor(X, torch.device(device)))])
        for device, known in parts._hidden.items()
    }


def _rounded(matrix: sp.csr_matrix, precision: Precision) -> sp.csr_matrix:
    """As it will be read from a saved model."""
    return unpack_sparse("rounded", pack_sparse("rounded", matrix, precision))


def _places(labels: sp.csr_matrix) -> Ids:
    return tie_order(np.bincount(labels.indices, minlength=labels.shape[1]))


def _stacked(first: sp.csr_matrix, second: sp.csr_matrix) -> sp.csr_matrix:
    return sp.csr_matrix(sp.vstack([first, second], format="csr"))


def _widened(matrix: sp.csr_matrix, width: int) -> sp.csr_matrix:
    return plain_csr(matrix.data, matrix.indices, matrix.indptr, (matrix.shape[0], width))


def _taller(matrix: sp.csr_matrix, height: int) -> sp.csr_matrix:
    more = np.full(height - matrix.shape[0], matrix.indptr[-1], dtype=matrix.indptr.dtype)
    indptr = np.concatenate([matrix.indptr, more])
    return plain_csr(matrix.data, matrix.indices, indptr, (height, matrix.shape[1]))
