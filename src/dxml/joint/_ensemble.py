"""Fitted parts over the training points: candidate labels, and each part's scores of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import HELP, Arrays, flag, whole
from dxml._core.precision import Precision, pack_sparse, unpack_sparse
from dxml._core.scaling import is_dense
from dxml._core.sparse import plain_csr
from dxml._core.storage import pack_csr
from dxml._deep.texts import Texts
from dxml.exceptions import ModelFormatError
from dxml.joint._plan import PARTS, Plan
from dxml.joint._points import EmbeddedSpace, FeatureSpace, Known, Space
from dxml.joint._stored_points import Rows, StoredPoints, rows_of
from dxml.joint._wordless import wordless_ranking
from dxml.joint.parts._vote import Vote
from dxml.joint.parts.protocol import Named, Part, Query

__all__ = ["Ensemble", "every_pair", "space_of", "with_candidates"]

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
N_PROPOSED = 30  # labels that a part may add to a shortlist
_NO_PAIRS = np.empty(0, bool), np.empty(0, np.int32), np.zeros(1, np.int32)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The fitted parts of a model.

    Attributes
    ----------
    plan : Plan
    known : Known
        The training points.
    parts : dict of Part
        By name, as in the plan.
    searched : bool array of shape (n_features,)
        Features by which neighbours are searched, where that is done by features.
    n_candidates : int
        Nearest points whose labels are candidates, and labels on a shortlist.
    """

    plan: Plan
    known: Known
    parts: Mapping[str, Part]
    searched: npt.NDArray[np.bool_]
    n_candidates: int

    @property
    def n_neighbors(self) -> int:
        """Points that vote."""
        vote = self.parts[Vote.name]
        assert isinstance(vote, Vote)
        return vote.n_neighbors

    def ask(self, X: sp.csr_matrix, device: str, texts: Texts | None = None) -> Query:
        """Scaled rows with their neighbours and candidate labels."""
        every = self.plan.every_label
        near = self.known.search(X, self.n_neighbors if every else self.n_candidates, device)
        none = plain_csr(*_NO_PAIRS, (0, self.known.n_labels))
        query = Query(X, near, none, every, self.known, device, texts)
        return with_candidates(query, self.parts, self.n_candidates)

    @cached_property
    def wordless(self) -> tuple[Ids, Floats]:
        """The ranking of points without a known feature, and its probabilities."""
        return wordless_ranking(self.known)

    def scores(self, query: Query) -> dict[str, Floats]:
        """Each part's scores of the pairs."""
        return {name: part.scores(query) for name, part in self.parts.items()}

    def only(self, kept: npt.NDArray[np.bool_], known: Known) -> Ensemble:
        """With some rows of the points, which `known` has, and no others."""
        parts = {name: part.drop(kept, known) for name, part in self.parts.items()}
        return replace(self, known=known, parts=parts)

    def without_holes(self) -> Ensemble:
        """With no row but those of points."""
        known = self.known
        if not len(known.holes):
            return self
        return self.only(known.holes.kept(known.n_rows), known.without_holes)

    def state(self, precision: Precision) -> tuple[dict[str, Any], Named]:
        """What a saved model holds: JSON values and arrays."""
        if len(self.known.holes):
            return self.without_holes().state(precision)
        parts: dict[str, Any] = {}
        arrays: Named = {**self._point_arrays(precision), "searched": self.searched}
        for name, part in self.parts.items():
            parts[name], own = part.state(precision)
            arrays |= own
        config = {"every_label": self.plan.every_label, "n_candidates": self.n_candidates}
        return {**config, "parts": parts}, arrays

    def _point_arrays(self, precision: Precision) -> Named:
        """Points and labels: by feature where neighbours are searched so, else row by row."""
        held, labels = self.known.held, self.known.labels
        if self.plan.every_label or (not isinstance(held, StoredPoints) and is_dense(held)):
            points = pack_sparse("points", self.known.points, precision)
            return {**points, **pack_sparse("labels", labels, precision)}
        if not isinstance(held, StoredPoints) or held.precision != precision:
            held = StoredPoints.of(self.known.points, self.searched, precision)
        return {**held.arrays, **pack_csr("labels", labels)}

    @classmethod
    def restore(
        cls, config: Mapping[str, Any], arrays: Arrays, tie_order: Ids, shape: tuple[int, int]
    ) -> Ensemble:
        """The inverse of `state`, for points of this shape."""
        n, d = shape
        points: Rows
        if StoredPoints.are_in(arrays):
            points = StoredPoints.restore(arrays, shape)
        else:
            points = unpack_sparse("points", arrays.packed_csr("points", n, d))
        labels = unpack_sparse("labels", arrays.packed_csr("labels", n, len(tie_order), truth=True))
        searched = arrays.flags("searched", d)
        known = Known(points, labels, tie_order, FeatureSpace(points, searched))
        parts = {}
        for name, own in config["parts"].items():
            parts[name] = _kind(name).restore(own, arrays, known)
            arrays.release()  # what was unpacked is not needed twice
        settings = {name: part.settings for name, part in parts.items()}
        plan = Plan(flag(config, "every_label"), settings)
        votes = isinstance(parts.get(Vote.name), Vote)
        if not parts or (plan.every_label and not votes):
            raise ModelFormatError(f"a joint model needs the part {Vote.name!r}. {HELP}")
        known = Known(points, labels, tie_order, space_of(plan, parts, points, searched))
        return cls(plan, known, parts, searched, whole(config, "n_candidates", 1))

    def rounded(self, precision: Precision) -> Ensemble:
        """As a saved model of this precision is read, so that both rank alike."""
        config, arrays = self.state(precision)
        known = self.known
        return Ensemble.restore(config, Arrays(arrays), known.tie_order, known.held.shape)


def with_candidates(query: Query, parts: Mapping[str, Part], size: int) -> Query:
    """The pairs that are scored: every label, or those of the neighbours and what parts propose."""
    n, n_labels = query.X.shape[0], query.known.n_labels
    if query.every_label:
        return replace(query, pairs=every_pair(n, n_labels))
    pairs = query.known.shortlist(query.near, size)
    for part in parts.values():
        proposed = part.propose(query, min(N_PROPOSED, n_labels))
        if proposed is not None:
            there = proposed >= 0
            ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
            more = sp.csr_matrix((np.ones(ends[-1], bool), proposed[there], ends), pairs.shape)
            voted = plain_csr(np.ones(pairs.nnz, bool), pairs.indices, pairs.indptr, pairs.shape)
            pairs = sp.csr_matrix(voted + more)  # which keeps what is true, not votes of 0
            pairs.sort_indices()
    return replace(query, pairs=pairs)


def _kind(name: str) -> type[Part]:
    if name not in PARTS:
        raise ModelFormatError(
            f"this model has a part {name!r} that this dxml does not know. Open it with the "
            "version that wrote it, or add the part to dxml.joint.PARTS first."
        )
    return PARTS[name]


def space_of(
    plan: Plan,
    parts: Mapping[str, Part],
    points: Rows,
    searched: npt.NDArray[np.bool_],
) -> Space:
    """Where neighbours are searched: in the space of a part, or by features."""
    if plan.space is None:
        return FeatureSpace(points, searched)
    return EmbeddedSpace(rows_of(points), parts[plan.space].embed)


def every_pair(n: int, n_labels: int) -> sp.csr_matrix:
    """Every label of n points."""
    indices = np.tile(np.arange(n_labels, dtype=np.int32), n)
    indptr = np.arange(n + 1, dtype=np.int64) * n_labels
    return plain_csr(np.ones(len(indices), bool), indices, indptr, (n, n_labels))
