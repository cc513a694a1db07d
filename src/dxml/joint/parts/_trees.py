"""Trees over the labels: rare labels share the classifiers on their path with similar labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays, whole
from dxml._core.packed import Packed, as_csr
from dxml._core.precision import Precision, pack_sparse
from dxml._core.sparse import plain_csr
from dxml._learners.label_trees import LabelTree, fit_tree
from dxml._learners.tree_shape import TreeShape, grow_tree
from dxml.exceptions import ModelFormatError
from dxml.joint._mixture import Opinion
from dxml.joint._points import Known
from dxml.joint._sizes import (
    EVERY_LABEL_PAIRS,
    N_TREES,
    PROPOSED,
    TREE_FEATURES,
    TREE_LABELS,
    TREE_WORK,
    WELL_COMPARED,
)
from dxml.joint.parts.protocol import (
    Named,
    Options,
    Part,
    Query,
    Regrouping,
    Settings,
    Shape,
    Task,
)

__all__ = ["TreesPart"]

MOST_NODES = 1 << 31
TRIAL_PASSES, PASSES = 3, 6  # over a classifier's points: without those held out, and with all

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TreesPart(Part):
    """The mean score of several trees by `dxml._learners.label_trees`.

    Neither the trees nor their classifiers see the points held out. A tree that was grown with them
    would know where their labels belong, and be trusted too much for it.

    Attributes
    ----------
    trees : tuple of LabelTree
    """

    name: ClassVar[str] = "trees"
    opinion: ClassVar[Opinion] = Opinion(default_weight=0.5)
    on_device: ClassVar[bool] = False

    trees: tuple[LabelTree, ...]

    @classmethod
    def plan(
        cls, shape: Shape, options: Options, others: Mapping[str, Settings]
    ) -> Settings | None:
        """For short sparse rows and many labels, without a kernel, a wide layer or an encoder.

        One tree where points have many features and labels: nodes then have many of both.
        """
        if options.n_trees is not None:
            return {"n_trees": options.n_trees} if options.n_trees else None
        large = shape.n_samples * shape.n_labels > EVERY_LABEL_PAIRS  # needs what trees propose
        many = (2 if large else TREE_LABELS[0]) <= shape.n_labels <= TREE_LABELS[1]
        if shape.dense or not many or shape.per_point > TREE_FEATURES:
            return None
        if {"kernel", "wide", "deep"} & set(others):
            return None
        work = shape.per_point * shape.labels_per_point
        return {"n_trees": N_TREES if work <= TREE_WORK else 1}

    @classmethod
    def fit(cls, task: Task, settings: Settings, start: Part | None = None) -> Self:
        options, X = task.options, task.data.X
        Y = task.data.Y if task.rows is None else _of_rows(task.data.Y, task.rows)
        trees = []
        for number in range(settings["n_trees"]):
            rng = np.random.default_rng(options.seed(f"tree {number}"))
            tree = fit_tree(
                X,
                Y,
                grow_tree(X, Y, rng),
                max_iter=PASSES if task.rows is None else TRIAL_PASSES,
                seed=options.seed(f"tree {number} classifiers"),
                stage=f"label tree {number + 1}{task.note}",
                progress=task.progress,
            )
            trees.append(tree)
        return cls(tuple(trees))

    @property
    def settings(self) -> Settings:
        return {"n_trees": len(self.trees)}

    def scores(self, query: Query) -> Floats:
        found = np.zeros(query.pairs.nnz, dtype=np.float32)
        for tree in self.trees:
            found += tree.scores(query.X, query.pairs, query.every_label)
        found /= len(self.trees)
        return found

    def propose(self, query: Query, size: int) -> npt.NDArray[np.int32]:
        """The best labels of each tree, for points that are found by little of what they are.

        Neighbours are searched by rare features. Labels that only common ones tell are missed.
        """
        each = max(1, min(size, PROPOSED) // len(self.trees))
        proposed = np.full((query.X.shape[0], each * len(self.trees)), -1, dtype=np.int32)
        rows = np.flatnonzero(query.known.space.compared_share(query.X) < WELL_COMPARED)
        if len(rows):
            X = query.X[rows]
            proposed[rows] = np.hstack([tree.best_labels(X, each) for tree in self.trees])
        return proposed

    def hide(self, after: Known) -> TreesPart:
        return self

    def widen(self, after: Known) -> TreesPart:
        return TreesPart(tuple(tree.widened(after.n_features) for tree in self.trees))

    def regroup(self, change: Regrouping) -> TreesPart:
        """A merged label keeps the place of its most frequent one until trees are grown anew."""
        return TreesPart(tuple(tree.with_labels(change.main) for tree in self.trees))

    def train_on(self, task: Task, planned: Settings | None) -> TreesPart:
        """Trees of all points, grown anew: labels that came later have a place in them."""
        return TreesPart.fit(task, self.settings)

    def state(self, precision: Precision) -> tuple[dict[str, Any], Named]:
        arrays: Named = {}
        for number, tree in enumerate(self.trees):
            prefix = f"trees.{number}"
            arrays |= _packed(f"{prefix}.weights", tree.weights, precision)
            arrays[f"{prefix}.biases"] = tree.biases
            arrays[f"{prefix}.parents"] = tree.shape.parents
            arrays[f"{prefix}.leaves"] = tree.shape.leaves
        return dict(self.settings), arrays

    @classmethod
    def restore(cls, config: Settings, arrays: Arrays, known: Known) -> Self:
        numbers = range(whole(config, "n_trees", 1))
        return cls(tuple(_restored(f"trees.{number}", arrays, known) for number in numbers))


def _of_rows(Y: sp.csr_matrix, rows: npt.NDArray[np.bool_]) -> sp.csr_matrix:
    """Y without the labels of the other rows: points without a label are in no node."""
    kept = np.repeat(rows, np.diff(Y.indptr))
    ends = np.concatenate([[0], np.cumsum(kept)])[Y.indptr].astype(Y.indptr.dtype)
    return plain_csr(Y.data[kept], Y.indices[kept], ends, Y.shape)


def _packed(name: str, weights: sp.csr_matrix | Packed, precision: Precision) -> Named:
    """The arrays of a folder; those that came from one stay as they are."""
    if isinstance(weights, Packed) and weights.precision == precision:
        return dict(weights.arrays)
    return pack_sparse(name, as_csr(weights), precision)


def _restored(prefix: str, arrays: Arrays, known: Known) -> LabelTree:
    parents = arrays.ids(f"{prefix}.parents", None, below=MOST_NODES, least=-1)
    n_nodes = len(parents)
    if not n_nodes or parents[0] != -1 or not _come_first(parents):
        raise ModelFormatError(
            f"the array {prefix}.parents is no tree: a parent must come before its children. "
            "The model is damaged; copy or train it again."
        )
    leaves = arrays.ids(f"{prefix}.leaves", None, below=n_nodes, least=-1)
    rows = n_nodes + len(leaves)
    weights = arrays.packed_csr(f"{prefix}.weights", rows, known.n_features)
    return LabelTree(
        TreeShape(parents.astype(np.int32), leaves.astype(np.int32)),
        Packed(f"{prefix}.weights", weights),
        arrays.floats(f"{prefix}.biases", rows),
    )


def _come_first(parents: npt.NDArray[Any]) -> bool:
    """Whether each node but the first has a parent before it."""
    places = np.arange(1, len(parents))
    return bool(((parents[1:] >= 0) & (parents[1:] < places)).all())
