"""A wide ReLU layer and a one-vs-all logistic head, trained together; a space for neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch.nn import functional as F

from dxml._core.arrays import Arrays, reals, whole
from dxml._core.compiled import compiled, prange
from dxml._core.precision import Precision, pack, unpack
from dxml._core.scaling import is_dense
from dxml._learners.merged_rows import merged_row
from dxml._learners.wide_layer import WideHead
from dxml._learners.wide_training import WideSettings, fit_wide
from dxml.joint._mixture import Opinion
from dxml.joint._points import Known
from dxml.joint._sizes import (
    CPU_DENSE_OPERATIONS,
    CPU_WIDE_OPERATIONS,
    DENSE_EPOCHS,
    DENSE_WIDTH,
    FEW_POINTS,
    KERNEL_ALONE_POINTS,
    PROPOSED,
    VOTERS,
    WELL_COMPARED,
    WIDE_LEARNERS,
    WIDE_WEIGHTS,
)
from dxml.joint.parts.protocol import (
    Lesson,
    Named,
    Options,
    Part,
    Query,
    Regrouping,
    Settings,
    Shape,
    Task,
)

__all__ = ["WidePart"]

Floats = npt.NDArray[np.float32]
OWN_POINTS = 200  # of each label that becomes one with others
SCALE_POINTS = 500  # that tell how large the logits are, for the logits of new labels
CPU_EPOCHS = 25
TRAIN_ON_EPOCHS = 0.4  # share of the epochs of a first fit, chosen on held-out points
LARGE_BATCH = 2048
LOGITS = 1 << 24  # computed at a time, of points whose best labels are looked for


@dataclass(frozen=True, eq=False)
class WidePart(Part):
    """Logits by `dxml._learners.wide_layer`.

    Attributes
    ----------
    head : WideHead
    learners, epochs, voters : int
        See `WideSettings`.
    history : tuple of float
        Mean training loss of each epoch.
    """

    name: ClassVar[str] = "wide"
    opinion: ClassVar[Opinion] = Opinion(default_weight=0.5)
    embeds: ClassVar[bool] = True
    is_slow: ClassVar[bool] = True

    head: WideHead
    learners: int = 1
    epochs: int = 25
    voters: int = 0
    history: tuple[float, ...] = field(default=(), repr=False)

    @classmethod
    def plan(
        cls, shape: Shape, options: Options, others: Mapping[str, Settings]
    ) -> Settings | None:
        gpu = shape.device != "cpu"
        epochs = options.epochs or _epochs(shape)
        kernel = "kernel" in others
        width = options.width
        if width is None:
            width = _affordable_width(shape, epochs)
            alone = kernel and shape.n_samples < KERNEL_ALONE_POINTS
            if alone or (not shape.every_label and width < 1024):
                width = 0
        if not width:
            return None
        if options.epochs is None and shape.dense and shape.every_label and not gpu:
            epochs = _afforded_epochs((shape.n_samples, shape.n_features, shape.n_labels), width)
        several = shape.every_label and gpu and not shape.dense and width % WIDE_LEARNERS == 0
        learners = WIDE_LEARNERS if several else 1
        return {"width": width, "learners": learners, "epochs": epochs, "voters": 0}

    @classmethod
    def variants(cls, shape: Shape, options: Options, settings: Settings) -> Sequence[Settings]:
        """Dense features on a GPU: neighbours in this space may have a loss of their own."""
        if not (shape.dense and shape.every_label and shape.device != "cpu"):
            return ()
        return ({**settings, "voters": VOTERS},)

    @classmethod
    def outside(cls, shape: Shape, options: Options, settings: Settings) -> float:
        """Weights with their slopes and moments, the scores of a batch, and the units of voters."""
        weights = settings["width"] * (shape.n_features + shape.n_labels)
        voters = 24.0 * settings["voters"] * (settings["width"] + shape.n_features)
        return 16.0 * weights + 12.0 * LARGE_BATCH * (settings["width"] + shape.n_labels) + voters

    @classmethod
    def fit(cls, task: Task, settings: Settings, start: Part | None = None) -> Self:
        X, Y = task.learnt
        warm = start.head.widened(X.shape[1]) if isinstance(start, WidePart) else None
        head, history = fit_wide(
            X,
            Y,
            _wide_settings(X.shape[0], settings, task.options, warm=warm is not None),
            seed=task.options.seed("wide"),
            device=torch.device(task.options.device),
            start=warm,
            stage=f"wide layer{task.note}",
            progress=task.progress,
        )
        before = start.history if isinstance(start, WidePart) else ()
        kept = {name: settings[name] for name in ("learners", "epochs", "voters")}
        return cls(head, **kept, history=(*before, *history))

    @property
    def settings(self) -> Settings:
        width = len(self.head.inner_bias)
        own = {"learners": self.learners, "epochs": self.epochs, "voters": self.voters}
        return {"width": width, **own}

    def scores(self, query: Query) -> Floats:
        device = torch.device(query.device)
        if query.every_label:
            return self.head.scores(query.X, device).ravel()
        if query.device == "cpu":
            out = np.empty(query.pairs.nnz, dtype=np.float32)
            hidden = self.head.hidden(query.X, device)
            outer, bias = np.asarray(self.head.outer), np.asarray(self.head.outer_bias)
            _pair_dots(hidden, outer, bias, query.pairs.indptr, query.pairs.indices, out)
            return out
        # A GPU computes the logits of all labels to get at those of the pairs.
        lengths = np.diff(query.pairs.indptr)
        rows = torch.from_numpy(np.repeat(np.arange(query.X.shape[0]), lengths)).to(device)
        columns = torch.from_numpy(query.pairs.indices.astype(np.int64)).to(device)
        return self.head.scores_tensor(query.X, device)[rows, columns].cpu().numpy()

    def propose(self, query: Query, size: int) -> npt.NDArray[np.int32]:
        """The labels of highest logit, for points that are found by little of what they are."""
        each = min(size, PROPOSED, query.known.n_labels)
        proposed = np.full((query.X.shape[0], each), -1, dtype=np.int32)
        rows = np.flatnonzero(query.known.space.compared_share(query.X) < WELL_COMPARED)
        device = torch.device(query.device)
        step = max(1, LOGITS // query.known.n_labels)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            best = self.head.scores_tensor(query.X[some], device).topk(each, dim=1).indices
            proposed[some] = best.cpu().numpy()
        return proposed

    def embed(self, X: sp.csr_matrix, device: str) -> torch.Tensor:
        return F.normalize(self.head.hidden_tensor(X, torch.device(device)))

    def add(self, lesson: Lesson) -> WidePart:
        """The layer stays. The weights of a new label point to the mean of its points.

        Its logits are scaled like those of the other labels: on average over all points, and on
        average over the points that carry a label.
        """
        n_old, n_labels = lesson.before.n_labels, lesson.after.n_labels
        if n_labels == n_old:
            return self
        head, after, options = self.head, lesson.after, lesson.options
        device = torch.device(options.device)
        rng = np.random.default_rng(options.seed("teaching"))
        rows = after.holes.place_of(np.sort(rng.permutation(after.n_points)[:SCALE_POINTS]))
        hidden = head.hidden(after.points[rows], device)
        middle = hidden.mean(axis=0)
        low = float(middle @ head.outer.mean(axis=0) + head.outer_bias.mean())
        pairs = after.labels[rows][:, :n_old].tocoo()
        logits = np.einsum("ij,ij->i", hidden[pairs.row], np.asarray(head.outer)[pairs.col])
        high = float((logits + head.outer_bias[pairs.col]).mean()) if pairs.nnz else low
        carriers = lesson.Y[:, n_old:].T.tocsr()  # no known point carries a new label
        outer = np.zeros((n_labels - n_old, len(middle)), dtype=np.float32)
        bias = np.full(n_labels - n_old, low, dtype=np.float32)
        for label in np.flatnonzero(np.diff(carriers.indptr)):
            points = carriers.indices[carriers.indptr[label] : carriers.indptr[label + 1]]
            away = head.hidden(lesson.X[points], device).mean(axis=0) - middle
            outer[label] = away * (max(high - low, 0.0) / max(float(away @ away), 1e-12))
            bias[label] -= outer[label] @ middle
        outer = unpack("outer", pack("outer", outer, options.precision))
        grown = WideHead(
            head.inner,
            head.inner_bias,
            np.concatenate([head.outer, outer]),
            np.concatenate([head.outer_bias, bias]),
        )
        return replace(self, head=grown)

    def regroup(self, change: Regrouping) -> WidePart:
        """The layer stays; see `dxml._learners.merged_rows` for labels that become one."""
        head, points = self.head, change.before.points
        device = torch.device(change.options.device)
        outer, bias = np.array(head.outer)[change.main], np.array(head.outer_bias)[change.main]
        for new, old in change.merged.items():
            own, others = change.samples(new, OWN_POINTS, SCALE_POINTS)
            counts = change.before.counts[old].astype(np.float32)
            hidden = [head.hidden(points[rows], device) for rows in (*own, others)]
            rows, biases = np.asarray(head.outer)[old], np.asarray(head.outer_bias)[old]
            outer[new], bias[new] = merged_row(rows, biases, counts, hidden[:-1], hidden[-1])
            outer[[new]] = unpack("outer", pack("outer", outer[[new]], change.options.precision))
        return replace(self, head=WideHead(head.inner, head.inner_bias, outer, bias))

    def hide(self, after: Known) -> WidePart:
        return self

    def train_on(self, task: Task, planned: Settings | None) -> WidePart:
        """Trained from the weights there are, for two fifths of the epochs.

        What a GPU chose is too dear for a CPU: there, without voters, and for no more epochs than a
        CPU plans.
        """
        given, asked = self.settings, task.options.epochs
        if task.options.device == "cpu":
            most = self.epochs if asked else _most_epochs(task, given["width"])
            given = {**given, "voters": 0, "epochs": min(self.epochs, most)}
        trained = type(self).fit(task, given, start=self)
        return replace(trained, epochs=self.epochs, voters=self.voters)

    def state(self, precision: Precision) -> tuple[dict[str, Any], Named]:
        arrays: Named = {}
        for name, array in self.head.arrays().items():
            arrays |= pack(name, array, precision)
        config = {**self.settings, "history": list(self.history)}
        return {**config, "n_features": self.head.inner.shape[1]}, arrays

    @classmethod
    def restore(cls, config: Settings, arrays: Arrays, known: Known) -> Self:
        width, d = whole(config, "width", 1), known.n_features
        n_features = whole({"n_features": d, **config}, "n_features", 1, d)
        return cls(
            WideHead.from_arrays(arrays, n_features, known.n_labels, width),
            whole(config, "learners", 1),
            whole(config, "epochs", 1),
            whole({"voters": 0, **config}, "voters"),
            tuple(reals(config["history"], "history")),
        )


def _epochs(shape: Shape) -> int:
    if shape.device == "cpu":
        return CPU_EPOCHS
    if shape.every_label:
        return 120 if shape.dense else 40
    return 15 if shape.n_samples < FEW_POINTS else 25


def _afforded_epochs(sizes: tuple[int, int, int], width: int) -> int:
    """Epochs that a CPU affords for dense features: n_samples, n_features and n_labels of them."""
    n, n_features, n_labels = sizes
    afforded = int(CPU_DENSE_OPERATIONS / (6 * n * width * (n_features + n_labels)))
    return max(CPU_EPOCHS, min(DENSE_EPOCHS, afforded))


def _most_epochs(task: Task, width: int) -> int:
    """Epochs of a first fit that a CPU plans for a layer of this width, at most."""
    X, Y = task.learnt
    return _afforded_epochs((*X.shape, Y.shape[1]), width) if is_dense(X) else CPU_EPOCHS


def _affordable_width(shape: Shape, epochs: int) -> int:
    """A multiple of 1,024, or of 256 below that."""
    weights = shape.n_features + shape.n_labels  # of one unit
    widest = 2048 if shape.dense and shape.every_label and shape.device != "cpu" else 4096
    most = min(widest, WIDE_WEIGHTS // weights, int(shape.memory / 2 / (16 * weights)))
    if shape.device == "cpu":
        afforded = int(CPU_WIDE_OPERATIONS / (6 * epochs * shape.n_samples * weights))
        most = min(most, 2048, max(afforded, DENSE_WIDTH if shape.dense else 0))
    elif 2 * shape.n_samples * shape.n_features > shape.memory / 2:
        most = 0  # a GPU holds all features dense
    return most // 1024 * 1024 if most >= 1024 else most // 256 * 256


def _wide_settings(n: int, settings: Settings, options: Options, *, warm: bool) -> WideSettings:
    small = n < FEW_POINTS or options.standardised
    voted = settings["voters"] > 0
    batch = options.batch_size or ((512 if voted else 256) if small else LARGE_BATCH)
    epochs = settings["epochs"]
    return WideSettings(
        width=settings["width"],
        learners=settings["learners"],
        epochs=max(1, round(TRAIN_ON_EPOCHS * epochs)) if warm else epochs,
        batch_size=batch,
        learning_rate=5e-3 if batch < LARGE_BATCH else 3e-3,
        feature_dropout=0.0 if options.standardised else 0.3,
        hidden_dropout=0.25 if voted else 0.5,
        spread=0.3 if options.standardised else 0.1,
        voters=settings["voters"],
    )


@compiled(parallel=True, fastmath=True)
def _pair_dots(hidden, outer, bias, starts, labels, out):  # type: ignore[no-untyped-def]
    for i in prange(hidden.shape[0]):
        for p in range(starts[i], starts[i + 1]):
            weights = outer[labels[p]]
            total = bias[labels[p]]
            for c in range(hidden.shape[1]):
                total += hidden[i, c] * weights[c]
            out[p] = total
