"""The label map: a place in two dimensions for every label, and the labels it goes with.

The most frequent labels get a vector from the label graph (DeepWalk, as in `dxml.paper._dxml`), and
t-SNE (van der Maaten & Hinton, JMLR 2008) lays those out. Every other label stands among the placed
labels it shares points with; labels that share no point with a placed label stand around the edge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.random import spawn, spawn_seed
from dxml._label_graph.walks import random_walks_on_points
from dxml.progress import SILENT, Progress

__all__ = ["LabelMap", "make_label_map"]

DIM, WALKS, LENGTH = 64, 20, 40  # of DeepWalk: a picture needs less than a model
FEW = 8  # labels up to which a circle is clearer than t-SNE
PERPLEXITY = 30  # t-SNE's number of neighbours that a label keeps near
SHRINK = 2  # shared points from which on a relation counts for more than half
ANCHORS = 3  # placed labels that say where another label stands
SPREAD = 0.012  # how far from there, so that labels do not lie on top of each other
INNER = 0.9  # radius of the placed labels; the rest of the disc is for labels without relations
GOLDEN_ANGLE = np.pi * (3 - 5**0.5)
BLOCK = 1 << 22  # pairs of labels looked at together

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LabelMap:
    """Where labels stand and what they go with.

    Parameters
    ----------
    positions : float32 array of shape (n_labels, 2)
        Within the disc of radius 1.
    frequency : int64 array of shape (n_labels,)
        Points that carry each label.
    related : int32 array of shape (n_labels, n_related)
        The labels that most often share a point with each, best first; -1 where there are fewer.
    strength : float32 array of shape (n_labels, n_related)
        From 0 to 1: the points that carry both labels, divided by the root of the product of the
        points that carry each (their columns' cosine), and shrunk where few points are shared, by
        n / (n + 2), so that what came together once does not stand before what often does.
    """

    positions: Floats
    frequency: Ints
    related: npt.NDArray[np.int32]
    strength: Floats


def make_label_map(
    Y: sp.csr_matrix,
    *,
    n_related: int = 8,
    n_placed: int = 3000,
    random_state: int = 0,
    progress: Progress = SILENT,
) -> LabelMap:
    """Lay out the labels of Y so that labels which share points are near each other.

    Parameters
    ----------
    Y : csr_matrix of shape (n_samples, n_labels)
    n_related : int
        Related labels to name for each label.
    n_placed : int
        Labels laid out by t-SNE, the most frequent ones; its time grows with their number.
    random_state : int
        The same seed gives the same map, whatever the number of threads.
    progress : Progress

    Examples
    --------
    >>> Y = sp.csr_matrix(np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]], dtype=bool))
    >>> labels = make_label_map(Y)
    >>> labels.related[:, 0].tolist()
    [1, 0, 1]
    """
    Y = _as_counts(Y)
    n_labels = Y.shape[1]
    frequency = np.bincount(Y.indices, minlength=n_labels).astype(np.int64)
    everything = np.arange(n_labels)
    with progress.stage("related labels"):
        related, strength = _most_related(Y, frequency, everything, n_related)
    shares = np.flatnonzero(related[:, 0] >= 0) if n_related else everything[:0]
    placed = np.sort(shares[np.lexsort((shares, -frequency[shares]))][:n_placed])
    positions = np.zeros((n_labels, 2))
    located = np.zeros(n_labels, dtype=bool)
    if len(placed):
        positions[placed] = _lay_out(Y[:, placed], random_state, progress)
        located[placed] = True
        near, weight = _most_related(Y, frequency, placed, ANCHORS)
        beside = np.flatnonzero(~located & (near[:, 0] >= 0))
        positions[beside] = _among(positions, near[beside], weight[beside], random_state)
        located[beside] = True
    alone = np.flatnonzero(~located)
    positions[alone] = _around(len(alone), INNER + 0.04 if located.any() else 0.0)
    return LabelMap(positions.astype(np.float32), frequency, related, strength)


def _as_counts(Y: sp.csr_matrix) -> sp.csr_matrix:
    """Y as 0 and 1, without stored zeros and with sorted indices."""
    Y = sp.csr_matrix(Y != 0, dtype=np.int32)
    Y.sort_indices()
    return Y


def _most_related(
    Y: sp.csr_matrix, frequency: Ints, among: Ints, n_related: int
) -> tuple[npt.NDArray[np.int32], Floats]:
    """For every label, the strongest of `among`; ties go to the more frequent, then the first."""
    n_labels = Y.shape[1]
    related = np.full((n_labels, n_related), -1, dtype=np.int32)
    strength = np.zeros((n_labels, n_related), dtype=np.float32)
    points_of, labels_of = Y.T.tocsr(), Y[:, among]
    pairs = np.concatenate([[0], np.cumsum(points_of @ np.diff(labels_of.indptr))])
    first = 0
    while first < n_labels and n_related:
        last = max(first + 1, int(np.searchsorted(pairs, pairs[first] + BLOCK, "right")) - 1)
        shared = (points_of[first:last] @ labels_of).tocoo()
        row, other = shared.row.astype(np.int64) + first, among[shared.col]
        apart = row != other
        row, other, both = row[apart], other[apart], shared.data[apart]
        cosine = both / np.sqrt(frequency[row] * frequency[other].astype(np.float64))
        together = cosine * both / (both + SHRINK)
        order = np.lexsort((other, -frequency[other], -together, row))
        row, other, together = row[order], other[order], together[order]
        place = np.arange(len(row)) - np.searchsorted(row, row)
        keep = place < n_related
        related[row[keep], place[keep]] = other[keep]
        strength[row[keep], place[keep]] = together[keep]
        first = last
    return related, strength


def _lay_out(Y: sp.csr_matrix, random_state: int, progress: Progress) -> npt.NDArray[np.float64]:
    """Positions within the inner disc: label vectors by DeepWalk, then t-SNE."""
    n_labels = Y.shape[1]
    if n_labels <= FEW or not (np.diff(Y.indptr) > 1).any():
        return INNER * 0.5 * _circle(n_labels)
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    from dxml._label_graph.skipgram import center_and_scale, train_skipgram

    seed = spawn_seed(random_state, "map walks")
    walks = random_walks_on_points(Y, WALKS, LENGTH, seed, progress)
    seed = spawn_seed(random_state, "map skipgram")
    vectors = center_and_scale(train_skipgram(walks, n_labels, DIM, seed=seed, progress=progress))
    tsne = TSNE(
        perplexity=min(PERPLEXITY, (n_labels - 1) / 3),
        init="pca",
        max_iter=500,
        angle=0.7,
        random_state=int(spawn_seed(random_state, "map places") % 2**32),
    )
    # Sums over several threads would depend on their number.
    with progress.stage("map"), threadpool_limits(1):
        places = np.asarray(tsne.fit_transform(vectors), dtype=np.float64)
    places -= (places.min(axis=0) + places.max(axis=0)) / 2
    radius = np.linalg.norm(places, axis=1, keepdims=True)
    usual = max(float(np.quantile(radius, 0.98)), 1e-12)
    beyond = np.maximum(radius / usual, 1.0)  # the few farther out are drawn in
    return places * (INNER / usual) * (1 - 0.1 / beyond) / beyond


def _among(
    positions: npt.NDArray[np.float64],
    near: npt.NDArray[np.int32],
    weight: Floats,
    random_state: int,
) -> npt.NDArray[np.float64]:
    """Mean place of the labels in `near`, strong ones first, and a little beside it."""
    pull = (weight.astype(np.float64) ** 2)[:, :, None]
    mean = (positions[near] * pull).sum(axis=1) / pull.sum(axis=1)
    spread = spawn(random_state, "map spread")["map spread"].standard_normal(mean.shape)
    beside = mean + SPREAD * spread
    far = np.linalg.norm(beside, axis=1, keepdims=True) / INNER
    return np.asarray(beside / np.maximum(far, 1.0))


def _around(n: int, inner: float) -> npt.NDArray[np.float64]:
    """Places spread evenly between the radius `inner` and 1, like the seeds of a sunflower."""
    share = (np.arange(n) + 0.5) / max(n, 1)
    radius = np.sqrt(inner**2 + (1 - inner**2) * share)
    angle = np.arange(n) * GOLDEN_ANGLE
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _circle(n: int) -> npt.NDArray[np.float64]:
    angle = 2 * np.pi * np.arange(n) / max(n, 1)
    middle = 0.0 if n == 1 else 1.0
    return np.column_stack([middle * np.cos(angle), middle * np.sin(angle)])
