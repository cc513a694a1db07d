"""The parts of a joint model: what they are for data of a given shape, and how they score pairs.

Small data (points × labels up to `SMALL`) are scored for every label, by what can be afforded of a
kernel vote of all training points, a wide ReLU layer with its head, and, for sparse features, a
linear head; and by the vote of the nearest points, in the wide layer where there is one. Larger
data are scored for a shortlist: the labels of the nearest training points, by features. There the
opinions are that vote, a linear head that learnt to tell a point's labels from the rest of its
shortlist, and a wide layer where a GPU can afford it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numba
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional as F

from dxml._core.arrays import Arrays
from dxml._core.precision import Precision, pack, pack_sparse, unpack, unpack_sparse
from dxml._core.scaling import DENSE
from dxml._core.sparse import plain_csr
from dxml.learners.kernel_ridge import Kernel, KernelVote
from dxml.learners.linear_head import LinearHead
from dxml.learners.wide_layer import WideHead
from dxml.neighbors.cosine import Neighbours, cosine_weights, only_features, unit_rows
from dxml.neighbors.voting import vote, vote_pairs
from dxml.topk import TopK

__all__ = [
    "FEW_POINTS",
    "VOTES",
    "Parts",
    "Plan",
    "is_carried",
    "log_frequency",
    "make_plan",
    "without_self",
]

SMALL = 1 << 24
"""Points × labels up to which every label of a point is scored."""
WIDE_WEIGHTS = 100_000_000
"""Weights of the wide layer and its head together, at most."""
VOTES: dict[Precision, Precision] = {
    "float32": "float32",
    "float16": "float16",
    "int8": "float16",
}
"""Of the kernel's votes in a model of each precision: in 8 bits they lose a point of P@3."""
CPU_KERNEL = 14_000
"""Points up to which a CPU solves for the kernel's votes."""
KERNEL_ALONE = 10_000
"""Points below which a kernel does better without a wide layer beside it."""
PAIR_BYTES = 9
"""That a linear head over every label takes in training for each point and label."""
FEW_POINTS = 20_000
"""Points below which a wide layer takes small steps; so it does for dense features."""
LEARNERS = 4
"""Wide layers of a GPU for small data of sparse features; dense ones gain nothing from several."""
CPU_WORK = 1.5e12
"""Operations that a CPU may spend on training the wide layer."""
DENSE_WIDTH = 256
"""Of the wide layer of small data with dense features on a CPU, at least: a linear head would say
little about those."""

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Plan:
    """Which parts a model has.

    Attributes
    ----------
    every_label : bool
        Whether all labels of a point are scored, rather than a shortlist.
    kernel, linear : bool
    width : int
        Of the wide layer; 0: none.
    learners : int
        Layers side by side that make up that width, each trained by itself.
    epochs : int
        Passes of the wide layer over the points.
    """

    every_label: bool
    kernel: bool
    linear: bool
    width: int
    learners: int = 1
    epochs: int = 25

    @property
    def n_opinions(self) -> int:
        """Columns that `dxml.joint.mixture.opinions` makes of what the parts say."""
        return 3 + self.linear + 2 * self.kernel + (self.width > 0)


def make_plan(
    X: sp.csr_matrix,
    n_labels: int,
    *,
    device: str,
    memory: float,
    candidates: Literal["auto", "all", "nearest"] = "auto",
    width: int | None = None,
    epochs: int | None = None,
) -> Plan:
    """The parts for data of this shape.

    Parameters
    ----------
    X : csr_matrix of shape (n_samples, n_features)
    device : "cpu" or "cuda"
    memory : float
        Bytes that training may take beside the data.
    candidates : "auto", "all" or "nearest"
        Whether every label is scored; by the size of the data by default.
    width : int, optional
        Of the wide layer, where the caller knows better.
    """
    (n, d), dense = X.shape, X.nnz > DENSE * X.shape[0] * X.shape[1]
    small = n * n_labels <= SMALL if candidates == "auto" else candidates == "all"
    kernel = small and 8 * n * n <= memory and (device != "cpu" or n <= CPU_KERNEL)
    if epochs is None:
        short = not small and n < FEW_POINTS
        epochs = 25 if device == "cpu" else 40 if small else 15 if short else 25
    if width is None:
        most = min(4096, WIDE_WEIGHTS // (d + n_labels), int(memory / 2 / (16 * (d + n_labels))))
        if device == "cpu":
            afforded = int(CPU_WORK / (6 * epochs * n * (d + n_labels)))
            most = min(most, 2048, max(afforded, DENSE_WIDTH if dense else 0))
        elif 2 * n * d > memory / 2:
            most = 0
        width = most // 1024 * 1024 if most >= 1024 else most // 256 * 256
        if (kernel and n < KERNEL_ALONE) or (not small and width < 1024):
            width = 0
    wanted = not dense or not (kernel or width)
    linear = not small or (wanted and PAIR_BYTES * n * n_labels <= memory)
    several = small and device != "cpu" and not dense and width % LEARNERS == 0
    return Plan(small, kernel, linear, width, LEARNERS if width and several else 1, epochs)


def log_frequency(labels: sp.csr_matrix) -> Floats:
    """The logarithm of the share of points that carry each label, as if one more did."""
    counts = np.bincount(labels.indices, minlength=labels.shape[1])
    return np.log((1 + counts) / (1 + labels.shape[0])).astype(np.float32)


def is_carried(labels: sp.csr_matrix) -> npt.NDArray[np.bool_]:
    """Which labels a point carries."""
    return np.bincount(labels.indices, minlength=labels.shape[1]) > 0


def without_self(ids: Ids, cosines: Floats) -> tuple[Ids, Floats]:
    """Neighbours of the training points themselves, with each point taken off its own list.

    One column fewer; where a point did not find itself, its last neighbour goes.
    """
    own = ids == np.arange(len(ids))[:, None]
    own[:, -1] |= ~own.any(axis=1)
    shape = (len(ids), ids.shape[1] - 1)
    return ids[~own].reshape(shape), cosines[~own].reshape(shape)


@dataclass(eq=False)
class Parts:
    """Fitted parts over the training points they search.

    Attributes
    ----------
    points : csr_matrix of shape (n_samples, n_features)
        Scaled training rows.
    labels : csr_matrix of shape (n_samples, n_labels), bool
    place : int32 array
        From `dxml.topk.tie_order`.
    searched : bool array of shape (n_features,)
        Features that neighbours are looked up by, where no wide layer gives the space.
    n_neighbors, power : int, float
        How many points vote, and the power of the cosine that a vote weighs.
    n_candidates : int
        Neighbours whose labels are candidates, and candidates of a point, at most.
    """

    plan: Plan
    points: sp.csr_matrix
    labels: sp.csr_matrix
    place: Ids
    searched: npt.NDArray[np.bool_]
    linear: LinearHead | None = None
    kernel: KernelVote | None = None
    wide: WideHead | None = None
    n_neighbors: int = 20
    power: float = 4.0
    n_candidates: int = 100
    _hidden: dict[str, Tensor] = field(default_factory=dict, repr=False)

    def search(self, X: sp.csr_matrix, n_neighbors: int, device: str) -> tuple[Ids, Floats]:
        """Nearest training points of scaled rows, and their cosines, in the space of the vote."""
        n_neighbors = min(n_neighbors, self.points.shape[0])
        if self.plan.every_label and self.wide is not None:
            return self._search_hidden(X, n_neighbors, device)
        return self.by_features.search(self._searched_rows(X), n_neighbors)

    def shortlist(self, ids: Ids, cosines: Floats, size: int) -> sp.csr_matrix:
        """Labels that may be meant: up to `size` of each point's neighbours' labels, best voted.

        A point without a neighbour gets the most frequent labels.
        """
        size = min(size, self.labels.shape[1])
        found = vote(ids, cosine_weights(ids, cosines, 2.0), self.labels, size, self.place)
        alone = found.indices[:, 0] < 0
        if alone.any():
            found.indices[alone] = np.argsort(self.place)[:size]
        return found.to_csr(self.labels.shape[1])

    def candidates(self, ids: Ids, cosines: Floats) -> sp.csr_matrix:
        """The (point, label) pairs that are scored."""
        if not self.plan.every_label:
            return self.shortlist(ids, cosines, self.n_candidates)
        n, n_labels = len(ids), self.labels.shape[1]
        indices = np.tile(np.arange(n_labels, dtype=np.int32), n)
        indptr = np.arange(n + 1, dtype=np.int64) * n_labels
        return plain_csr(np.ones(len(indices), bool), indices, indptr, (n, n_labels))

    def scores(
        self, X: sp.csr_matrix, ids: Ids, cosines: Floats, pairs: sp.csr_matrix, device: str
    ) -> dict[str, Floats]:
        """What each part says of each pair."""
        near, far = ids[:, : self.n_neighbors], cosines[:, : self.n_neighbors]
        near = np.ascontiguousarray(near)
        weights = cosine_weights(near, far, self.power)
        found = {
            "vote": vote_pairs(near, weights, self.labels, pairs),
            "frequency": self.log_frequency[pairs.indices],
        }
        place = torch.device(device)
        if self.linear is not None:
            found["linear"] = self.linear_scores(self.linear, X, pairs)
        if self.kernel is not None:
            found["kernel"] = self.kernel.scores(X, place).ravel()
        if self.wide is not None:
            every = self.plan.every_label
            wide = self.wide
            found["wide"] = (
                wide.scores(X, place).ravel() if every else _pair_logits(wide, X, pairs, place)
            )
        return found

    def linear_scores(self, head: LinearHead, X: sp.csr_matrix, pairs: sp.csr_matrix) -> Floats:
        """What a linear head says of each pair; every label's are made in one go."""
        return head.all_scores(X).ravel() if self.plan.every_label else head.scores(X, pairs)

    @cached_property
    def log_frequency(self) -> Floats:
        """Of each label among the training points."""
        return log_frequency(self.labels)

    @cached_property
    def known(self) -> npt.NDArray[np.bool_]:
        """Labels that a training point carries; the others are not predicted."""
        return is_carried(self.labels)

    @cached_property
    def by_features(self) -> Neighbours:
        """The training points, searched by features."""
        return Neighbours(self._searched_rows(self.points))

    def _searched_rows(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Rows of length 1 of the features that are searched by."""
        if self.searched.all():
            return unit_rows(X)
        return unit_rows(only_features(X, self.searched))

    def _search_hidden(self, X: sp.csr_matrix, n_neighbors: int, device: str) -> tuple[Ids, Floats]:
        assert self.wide is not None
        place = torch.device(device)
        if device not in self._hidden:
            self._hidden[device] = F.normalize(self.wide.hidden_tensor(self.points, place))
        queries = F.normalize(self.wide.hidden_tensor(X, place))
        ids, cosines = [], []
        for start in range(0, len(queries), 1024):
            best = torch.topk(queries[start : start + 1024] @ self._hidden[device].T, n_neighbors)
            cosines.append(best.values.cpu().numpy())
            ids.append(best.indices.to(torch.int32).cpu().numpy())
        return np.concatenate(ids), np.maximum(np.concatenate(cosines), 0)

    def arrays(self, precision: Precision) -> dict[str, npt.NDArray[Any]]:
        """What a saved model holds of them."""
        saved: dict[str, npt.NDArray[Any]] = {
            **pack_sparse("points", self.points, precision),
            **pack_sparse("labels", self.labels, precision),
            "searched": self.searched,
            "parts.settings": np.array(
                [self.n_neighbors, self.power, self.n_candidates, self.plan.width], np.float64
            ),
        }
        if self.linear is not None:
            saved |= pack_sparse("linear", self.linear.weights, precision)
        if self.kernel is not None:
            kernel = self.kernel.kernel
            gauss = float(kernel.kind == "gauss")
            saved["kernel.settings"] = np.array([gauss, kernel.gamma, kernel.ridge, kernel.pull])
            saved |= pack("kernel.votes", self.kernel.votes, VOTES[precision])
            if (relations := self.kernel.all_relations) is not None:
                saved |= pack("kernel.relations", relations, VOTES[precision])
        if self.wide is not None:
            for name, array in self.wide.arrays().items():
                saved |= pack(name, array, precision)
        return saved

    @classmethod
    def from_arrays(cls, arrays: Arrays, plan: Plan, place: Ids) -> Parts:
        """The inverse of `arrays`."""
        n_neighbors, power, n_candidates, _ = arrays.numbers("parts.settings", 4, least=0)
        searched, n_labels = arrays.flags("searched", None), len(place)
        d = len(searched)
        points = unpack_sparse("points", arrays.packed_csr("points", None, d))
        n = points.shape[0]
        parts = cls(
            plan,
            points,
            unpack_sparse("labels", arrays.packed_csr("labels", n, n_labels)),
            place,
            searched,
            n_neighbors=int(n_neighbors),
            power=power,
            n_candidates=int(n_candidates),
        )
        if plan.linear:
            parts.linear = LinearHead(
                unpack_sparse("linear", arrays.packed_csr("linear", n_labels, d))
            )
        if plan.kernel:
            gauss, *numbers = arrays.numbers("kernel.settings", None, least=0)
            kernel = Kernel("gauss" if gauss else "laplace", *numbers)
            dense = points.nnz > DENSE * points.shape[0] * points.shape[1]
            votes = unpack("kernel.votes", arrays.packed("kernel.votes", n, n_labels))
            relations = None
            if kernel.pull:
                related = arrays.packed("kernel.relations", n_labels, n_labels)
                relations = unpack("kernel.relations", related)
            rows = points.toarray() if dense else points
            parts.kernel = KernelVote(rows, votes, kernel, relations)
        if plan.width:
            parts.wide = WideHead.from_arrays(arrays, d, n_labels, plan.width)
        return parts


@numba.njit(cache=True, parallel=True, fastmath=True)
def _pair_dots(hidden, outer, bias, starts, labels, out):  # type: ignore[no-untyped-def]
    for i in numba.prange(hidden.shape[0]):
        for p in range(starts[i], starts[i + 1]):
            weights = outer[labels[p]]
            total = bias[labels[p]]
            for c in range(hidden.shape[1]):
                total += hidden[i, c] * weights[c]
            out[p] = total


def _pair_logits(
    wide: WideHead, X: sp.csr_matrix, pairs: sp.csr_matrix, device: torch.device
) -> Floats:
    """The wide head's logit of each stored pair; a GPU computes all labels to get at them."""
    if device.type == "cpu":
        out = np.empty(pairs.nnz, dtype=np.float32)
        hidden = wide.hidden(X, device)
        outer, bias = np.asarray(wide.outer), np.asarray(wide.outer_bias)
        _pair_dots(hidden, outer, bias, pairs.indptr, pairs.indices, out)
        return out
    rows = torch.from_numpy(np.repeat(np.arange(X.shape[0]), np.diff(pairs.indptr))).to(device)
    columns = torch.from_numpy(pairs.indices.astype(np.int64)).to(device)
    return wide.scores_tensor(X, device)[rows, columns].cpu().numpy()


def vote_ranking(parts: Parts, ids: Ids, cosines: Floats, power: float, k: int) -> TopK:
    """The ranking by the vote alone, to choose its settings by."""
    ids = np.ascontiguousarray(ids)
    return vote(ids, cosine_weights(ids, cosines, power), parts.labels, k, parts.place)
