"""What a part is: one scorer of (point, label) pairs, with all that a model asks of it.

A part is a class derived from `Part`. It says which data it is for (`plan`), learns from points
(`fit`), scores pairs (`scores`), takes up, drops and corrects points (`add`, `drop`, `unlabel`),
trains on (`train_on`), and is written to and read from a folder (`state`, `restore`). Parts never
change: every method gives a new one.

A new part is one file with such a class and one line in `dxml.joint._plan.PARTS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.precision import Precision
from dxml._core.random import spawn_seed
from dxml._deep.texts import Texts
from dxml._deep.tokens import Tokens
from dxml._learners.linear_examples import all_signs, label_signs
from dxml.joint._mixture import Opinion
from dxml.joint._points import Known, Near
from dxml.joint._sizes import NEGATIVES
from dxml.progress import SILENT, Progress

if TYPE_CHECKING:
    from dxml._deep.checkpoints import Pretrained
    from dxml._deep.resuming import Keep

__all__ = [
    "Data",
    "Lesson",
    "Named",
    "Options",
    "Part",
    "Query",
    "Regrouping",
    "Settings",
    "Shape",
    "Task",
    "Trial",
]

Named = dict[str, npt.NDArray[Any]]
"""Arrays by name, to be written."""
Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Settings = Mapping[str, Any]
"""Of one part: JSON values by name."""


@dataclass(frozen=True)
class Shape:
    """What decides a plan: the shape of the data, the device, and the memory for training.

    Attributes
    ----------
    every_label : bool
        Whether every label of a point is scored, rather than a shortlist.
    dense : bool
        Whether over half of the features' values are not 0.
    device : "cpu" or "cuda"
    memory : float
        Bytes that training may take beside the data.
    per_point : float
        Features of a point that are not 0, on average.
    labels_per_point : float
        Labels of a point, on average.
    """

    n_samples: int
    n_features: int
    n_labels: int
    every_label: bool
    dense: bool
    device: str
    memory: float
    per_point: float = 0.0
    labels_per_point: float = 0.0


@dataclass(frozen=True)
class Options:
    """The parameters of `Joint` that parts read.

    Attributes
    ----------
    standardised : bool
        Whether features are standardised columns rather than rows of length 1.
    unit_rows : bool
        Whether each row is scaled to length 1.
    device : "cpu" or "cuda"
    encoder : Pretrained or None
        A text encoder to be fine-tuned.
    has_vectors : bool
        Whether texts come with vectors.
    keep : Keep or None
        Where its training stores its state.

    The others are as in `dxml.joint.Joint`.
    """

    standardised: bool
    device: str
    precision: Precision
    random_state: int | None
    width: int | None = None
    epochs: int | None = None
    batch_size: int | None = None
    n_negatives: int = NEGATIVES
    C: float | None = None
    max_iter: int = 6
    prune: float = 0.03
    n_trees: int | None = None
    kernel: bool | None = None
    encoder: Pretrained | None = None
    encoder_epochs: int | None = None
    has_vectors: bool = False
    unit_rows: bool = True
    keep: Keep | None = None

    def seed(self, stage: str) -> int:
        """That of a stage of the work; other stages do not change it."""
        return spawn_seed(self.random_state, stage)


@dataclass(frozen=True, eq=False)
class Data:
    """Scaled points, their labels, and hard negatives.

    Attributes
    ----------
    X : csr_matrix of shape (n_samples, n_features)
    Y : csr_matrix of shape (n_samples, n_labels), bool
    negatives : csr_matrix of the shape of Y or None
        Hard negatives: labels of each point's neighbours that are not its own; None: all labels.
    texts : Texts or None
    label_texts : Tokens or None
        The points' texts, and what is known of every label in words, where a part reads texts.
    """

    X: sp.csr_matrix
    Y: sp.csr_matrix
    negatives: sp.csr_matrix | None = None
    texts: Texts | None = None
    label_texts: Tokens | None = None

    @cached_property
    def signs(self) -> sp.csr_matrix:
        """What every label learns from, (n_labels, n_samples): 1 its points, -1 its negatives."""
        return all_signs(self.Y) if self.negatives is None else label_signs(self.Y, self.negatives)


@dataclass(frozen=True, eq=False)
class Task:
    """What a part is fitted on.

    Attributes
    ----------
    data : Data
    options : Options
    rows : bool array of shape (n_samples,) or None
        The points to learn from, where others are held out.
    """

    data: Data
    options: Options
    rows: Mask | None = None
    progress: Progress = field(default=SILENT, repr=False)

    @property
    def note(self) -> str:
        """What is said beside the name of a stage."""
        return "" if self.rows is None else " (validation)"

    @property
    def texts(self) -> Texts | None:
        """The texts of the points to learn from."""
        texts = self.data.texts
        if texts is None or self.rows is None:
            return texts
        return texts.take(np.flatnonzero(self.rows))

    @cached_property
    def learnt(self) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """The points to learn from, and their labels."""
        if self.rows is None:
            return self.data.X, self.data.Y
        return self.data.X[self.rows], self.data.Y[self.rows]


@dataclass(frozen=True, eq=False)
class Query:
    """Pairs to be scored, and what is known of their points.

    Attributes
    ----------
    X : csr_matrix of shape (n_samples, n_features)
        Scaled rows.
    near : Near
        Their neighbours among the known points.
    pairs : csr_matrix of shape (n_samples, n_labels)
        The pairs are its stored values, row by row.
    every_label : bool
        Whether they are all labels of every point, in their order.
    known : Known
    device : "cpu" or "cuda"
    texts : Texts or None
        Of the points, where a part reads texts.
    computed : dict
        What a part has made of the points, so that it need not be made again.
    """

    X: sp.csr_matrix
    near: Near
    pairs: sp.csr_matrix
    every_label: bool
    known: Known
    device: str
    texts: Texts | None = None
    computed: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, eq=False)
class Trial:
    """Points that one fold holds out, and parts that were fitted without them.

    Attributes
    ----------
    task : Task
        What the parts are fitted on.
    X, Y : csr_matrix
        The points held out, scaled, and their labels.
    known : Known
        The points that are searched for their neighbours.
    near : Near or None
        The neighbours; None until the parts that decide about them are fitted.
    parts : dict
        Those fitted so far, by name.
    texts : Texts or None
    computed : dict
        As in `Query`.
    """

    task: Task
    X: sp.csr_matrix
    Y: sp.csr_matrix
    known: Known
    near: Near | None = None
    parts: Mapping[str, Part] = field(default_factory=dict)
    texts: Texts | None = None
    computed: dict[str, Any] = field(default_factory=dict, repr=False)

    def query(self, every_label: bool) -> Query:
        """The points held out, without pairs; `with_candidates` adds these."""
        assert self.near is not None
        pairs = sp.csr_matrix((self.X.shape[0], self.known.n_labels), dtype=bool)
        device = self.task.options.device
        return Query(
            self.X, self.near, pairs, every_label, self.known, device, self.texts, self.computed
        )


@dataclass(frozen=True, eq=False)
class Lesson:
    """New points for a trained part.

    Attributes
    ----------
    X : csr_matrix of shape (n_new, n_features)
        Scaled rows.
    Y : csr_matrix of shape (n_new, n_labels), bool
        Columns beyond those of `before` are new labels.
    before, after : Known
        The known points without and with the new ones, which come last.
    options : Options
    texts : Texts or None
        Of the new points.
    label_texts : Tokens or None
        What is known of the new labels in words.
    """

    X: sp.csr_matrix
    Y: sp.csr_matrix
    before: Known
    after: Known
    options: Options
    texts: Texts | None = None
    label_texts: Tokens | None = None


@dataclass(frozen=True, eq=False)
class Regrouping:
    """Labels that become one, are left out, or get another name.

    Attributes
    ----------
    main : int array of shape (n_labels,), rising
        The old label that each new one continues.
    merged : dict of int to int array
        All old labels of the new ones that have several.
    renamed : int array
        New labels whose name is another one.
    label_texts : Tokens or None
        What is known of those in words, where a part reads texts.
    before, after : Known
    options : Options
    """

    main: npt.NDArray[np.int64]
    merged: Mapping[int, npt.NDArray[np.int64]]
    renamed: npt.NDArray[np.int64]
    label_texts: Tokens | None
    before: Known
    after: Known
    options: Options

    def samples(
        self, label: int, own: int, others: int
    ) -> tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.int64]]:
        """Some points of each old label of a new one, and some points at large."""
        rng = np.random.default_rng(self.options.seed("teaching"))
        labels = self.before.labels
        rows = np.repeat(np.arange(labels.shape[0]), np.diff(labels.indptr))
        carriers = [rows[labels.indices == old] for old in self.merged[label]]
        found = [np.sort(rng.permutation(each)[:own]) for each in carriers]
        return found, np.sort(rng.permutation(labels.shape[0])[:others])


class Part(ABC):
    """One scorer of (point, label) pairs."""

    name: ClassVar[str]
    opinion: ClassVar[Opinion]
    """How its scores enter the mixture."""
    explains: ClassVar[bool] = True
    """Whether what it says of a label depends on the point."""
    embeds: ClassVar[bool] = False
    """Whether neighbours may be searched in what it makes of a point; see `embed`."""
    is_slow: ClassVar[bool] = False
    """Whether it takes too long to be fitted for more than one fold."""
    continues: ClassVar[bool] = False
    """Whether the fit with all points goes on from the one without those held out."""
    on_device: ClassVar[bool] = True
    """Whether it answers on the device that a query names."""
    needs_neighbors: ClassVar[bool] = False
    """Whether its settings are chosen by the neighbours of held-out points."""
    ladder: ClassVar[tuple[Settings, ...]] = ()
    """Settings in rising order, of which held-out points choose by the quality of the mixture."""
    first_steps: ClassVar[tuple[int, int]] = (0, 0)
    """The two neighbouring steps of the ladder that are tried first."""

    @classmethod
    @abstractmethod
    def plan(
        cls, shape: Shape, options: Options, others: Mapping[str, Settings]
    ) -> Settings | None:
        """Its settings for data of this shape, or None where it has no place there.

        `others` are those of the parts before it in `PARTS`.
        """

    @classmethod
    def outside(cls, shape: Shape, options: Options, settings: Settings) -> float:
        """Bytes that its training takes, about, which are no arrays of numpy."""
        return 0.0

    @classmethod
    @abstractmethod
    def fit(cls, task: Task, settings: Settings, start: Part | None = None) -> Self:
        """Learn from points. `start`: a part of the same kind to go on from."""

    @classmethod
    def choose(cls, trials: Sequence[Trial], settings: Settings) -> tuple[Settings, Sequence[Part]]:
        """The settings with the best precision on held-out points, and the part of each trial."""
        return settings, [cls.fit(trial.task, settings) for trial in trials]

    @classmethod
    def fixed(cls, options: Options) -> Settings | None:
        """The settings of a part with a ladder, where the user has given them."""
        return None

    @classmethod
    def variants(cls, shape: Shape, options: Options, settings: Settings) -> Sequence[Settings]:
        """Other settings than those planned, for held-out points to choose from.

        All parts are fitted without the held-out points for each of them.
        """
        return ()

    @classmethod
    def optional(cls, every_label: bool, others: Mapping[str, Part]) -> bool:
        """Whether it stays only if held-out points are ranked better with it."""
        return False

    @property
    def settings(self) -> Settings:
        """Those that it was fitted with, as `plan` gives them."""
        return {}

    @abstractmethod
    def scores(self, query: Query) -> Floats:
        """One score for each stored pair, or a row of as many as its opinion says."""

    @abstractmethod
    def state(self, precision: Precision) -> tuple[dict[str, Any], Named]:
        """What a saved model holds of it: JSON values, its settings among them, and arrays."""

    @classmethod
    @abstractmethod
    def restore(cls, config: Settings, arrays: Arrays, known: Known) -> Self:
        """The inverse of `state`; what is read from `arrays` is checked there."""

    def embed(self, X: sp.csr_matrix, device: str) -> Any:
        """Unit rows of a torch tensor on the device, where `embeds` is set."""
        raise AttributeError(f"the part {self.name!r} embeds no points")

    def propose(self, query: Query, size: int) -> npt.NDArray[np.int32] | None:
        """Candidate labels beside those of the neighbours, a row a point; None: it has none.

        At most about `size` a point; -1 is no label.
        """
        return None

    def unseen(self, query: Query, size: int) -> tuple[Ids, Floats] | None:
        """Labels that no known point carries and their probabilities, (n_samples, size) each.

        None: it cannot tell them.
        """
        return None

    def unseen_scores(self, query: Query, labels: Ids) -> tuple[Mask, Floats] | None:
        """Which of some labels it can tell without a point that carries them, and their log-odds.

        The log-odds are of shape (n_samples, labels that it can tell). None: it tells none.
        """
        return None

    def add(self, lesson: Lesson) -> Part:
        """With more points."""
        return self

    def drop(self, kept: Mask, after: Known) -> Part:
        """Without the rows that are not kept."""
        return self

    def hide(self, after: Known) -> Part | None:
        """With the holes that the known points have now; None: it must drop their rows.

        Holes are closed later by `drop`, on average over many lessons at no cost a point. A part
        that gives None is always told to drop them at once.
        """
        return None

    def widen(self, after: Known) -> Part:
        """With as many features as the known points have now; none of them has the new ones."""
        return self

    def unlabel(self, row: int, label: int, after: Known, options: Options) -> Part:
        """With a label taken off a point."""
        return self

    def regroup(self, change: Regrouping) -> Part:
        """With labels merged, left out or renamed."""
        return self

    def train_on(self, task: Task, planned: Settings | None) -> Part:
        """Trained on from where it is, with all points.

        `planned` are the settings of a part of so many points, None where there would be none.
        """
        return self
