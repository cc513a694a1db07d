"""A text encoder that is fine-tuned with the labels: what bags of words cannot tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays, real, reals, whole
from dxml._core.precision import Precision
from dxml._core.sparse import plain_csr
from dxml._deep.name_line import NameLine
from dxml._deep.settings import DeepSettings
from dxml._deep.texts import Texts
from dxml._deep.tokens import Tokens
from dxml._learners.merged_rows import merged_row
from dxml.exceptions import DataFormatError
from dxml.joint._mixture import Opinion
from dxml.joint._points import Known
from dxml.joint._sizes import MANY_TEXTS
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
    Trial,
)

if TYPE_CHECKING:
    from dxml._deep.head import DeepHead
    from dxml._deep.resuming import Keep

__all__ = ["DeepPart"]

Floats = npt.NDArray[np.float32]
CONTINUED_EPOCHS = 0.1
"""Share of the epochs for which training goes on with the points that were held out."""
CONTINUED_RATE = 0.3  # of the learning rates
TRAIN_ON_EPOCHS = 0.2  # share of the epochs for which `train_on` trains
OWN_TEXTS = 50  # of each label that becomes one with others
USUAL = 10  # labels of a text, by which it is told how near names are
OTHER_TEXTS = 100  # by which the new one is scaled
SETTINGS = DeepSettings(encoder_rate=2e-4, name_every=2)
"""How encoders are trained, by points held out of PubMed-MeSH and TIBKAT-GND: docs/guide/deep.md.
Names of labels are read in every other step."""


@dataclass(frozen=True, eq=False)
class DeepPart(Part):
    """By `dxml._deep`: the logit of a label, and how near its name is to the text.

    Attributes
    ----------
    head : DeepHead
    read : tuple of Tokens
        The texts of the known points, those of each lesson by themselves.
    epochs : int
        Of its first training.
    name_line : NameLine or None
        By which labels without an example are predicted; None: they are not.
    nameless : float
        How near a label without a name counts as.
    """

    name: ClassVar[str] = "deep"
    opinion: ClassVar[Opinion] = Opinion(default_weight=0.5, n_scores=2)
    is_slow: ClassVar[bool] = True
    continues: ClassVar[bool] = True

    head: DeepHead
    read: tuple[Tokens, ...] = field(repr=False)
    epochs: int
    name_line: NameLine | None = None
    nameless: float = 0.0

    @classmethod
    def plan(
        cls, shape: Shape, options: Options, others: Mapping[str, Settings]
    ) -> Settings | None:
        if options.encoder is None:
            return None
        epochs = options.encoder_epochs or SETTINGS.epochs_for(shape.n_samples)
        return {"epochs": epochs}

    @classmethod
    def outside(cls, shape: Shape, options: Options, settings: Settings) -> float:
        """Weights with their slopes and moments, of the encoder and of the labels."""
        assert options.encoder is not None
        weights = sum(each.numel() for each in options.encoder.transformer.parameters())
        return 32.0 * weights + 16.0 * SETTINGS.width * shape.n_labels

    @classmethod
    def fit(cls, task: Task, settings: Settings, start: Part | None = None) -> Self:
        """From the published encoder, or for a few epochs from one without the held-out points."""
        import torch

        from dxml._deep.training import fit_deep

        options, texts = task.options, _tokens_of(task.texts)
        assert options.encoder is not None
        epochs = settings["epochs"]
        how = _sized(replace(SETTINGS, epochs=epochs), len(texts))
        if isinstance(start, DeepPart):
            how = _continued(how, CONTINUED_EPOCHS)
        head = fit_deep(
            texts,
            task.learnt[1],
            how,
            start=start.head if isinstance(start, DeepPart) else options.encoder,
            seed=options.seed("deep"),
            device=torch.device(options.device),
            negatives=_rows_of(task.data.negatives, task.rows),
            label_tokens=task.data.label_texts,
            keep=_place_of(task),
            note=task.note,
            progress=task.progress,
        )
        if isinstance(start, DeepPart):
            return cls(head, (texts,), epochs, start.name_line, start.nameless)
        return cls(head, (texts,), epochs)

    @classmethod
    def choose(cls, trials: Sequence[Trial], settings: Settings) -> tuple[Settings, Sequence[Part]]:
        """One trial; its held-out texts also tell how far names alone can be trusted."""
        import torch

        from dxml._deep.unseen import fit_name_line

        trial = trials[0]
        part = cls.fit(trial.task, settings)
        learnt = np.bincount(trial.task.learnt[1].indices, minlength=trial.Y.shape[1])
        device = torch.device(trial.task.options.device)
        line = fit_name_line(part.head, _tokens_of(trial.texts), trial.Y, learnt, device)
        others = [cls.fit(each.task, settings) for each in trials[1:]]
        nameless = part.usual_nearness(_tokens_of(trial.texts), device)
        return settings, [replace(part, name_line=line, nameless=nameless), *others]

    @property
    def settings(self) -> Settings:
        return {"epochs": self.epochs}

    @cached_property
    def texts(self) -> Tokens:
        """Of all known points."""
        return self.read[0] if len(self.read) == 1 else Tokens.concatenate(self.read)

    def scores(self, query: Query) -> Floats:
        import torch

        device, pairs = torch.device(query.device), query.pairs
        hidden, embedded = self._vectors(query)
        logits = _products(hidden, *self.head.placed(device), query)
        if self.head.names is None:
            return np.stack([logits, np.zeros_like(logits)], axis=1)
        near = _products(embedded, self.head.placed_names(device), None, query)
        near = np.where(self.head.named[pairs.indices], near, np.float32(self.nameless))
        return np.stack([logits, near], axis=1)

    def usual_nearness(self, tokens: Tokens, device: Any) -> float:
        """The mean over the labels of highest logit that have names."""
        if self.head.names is None or not len(tokens):
            return 0.0
        best, _ = self.head.best(tokens, USUAL, device)
        ends = np.arange(len(best) + 1, dtype=np.int64) * best.shape[1]
        pairs = plain_csr(
            np.ones(best.size, bool), best.ravel(), ends, (len(best), self.head.n_labels)
        )
        near = self.head.name_scores(tokens, pairs, device)[self.head.named[best.ravel()]]
        return float(near.mean()) if len(near) else 0.0

    def propose(self, query: Query, size: int) -> npt.NDArray[np.int32]:
        """The labels of highest logit."""
        import torch

        from dxml._deep.searching import best_labels

        weight, bias = self.head.placed(torch.device(query.device))
        return best_labels(self._vectors(query)[0], weight, bias, size)[0]

    def unseen(self, query: Query, size: int) -> tuple[npt.NDArray[np.int32], Floats] | None:
        """The labels without an example whose names are nearest to the texts."""
        import torch

        new = np.flatnonzero(~query.known.carried & self.head.named)
        if self.name_line is None or not len(new):
            return None
        device = torch.device(query.device)
        found, scores = self.head.nearest_names(_tokens_of(query.texts), size, device, among=new)
        return new.astype(np.int32)[found], self.name_line.probability(scores)

    def unseen_scores(
        self, query: Query, labels: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.bool_], Floats] | None:
        import torch

        told = ~query.known.carried[labels] & self.head.named[labels]
        if self.name_line is None or not told.any():
            return None
        tokens = _tokens_of(query.texts)
        wanted, n = labels[told], len(tokens)
        ends = np.arange(n + 1, dtype=np.int64) * len(wanted)
        pairs = plain_csr(
            np.ones(n * len(wanted), bool), np.tile(wanted, n), ends, (n, self.head.n_labels)
        )
        scores = self.head.name_scores(tokens, pairs, torch.device(query.device))
        return told, self.name_line.log_odds(scores.reshape(n, len(wanted)))

    def _vectors(self, query: Query) -> Any:
        """The hidden vectors of the query's texts and those to compare with names, once."""
        import torch

        tokens = _tokens_of(query.texts)
        key = f"{self.name} {id(self.head)}"
        if key not in query.computed:
            device = torch.device(query.device)
            query.computed[key] = self.head.vectors(tokens, device)
        return query.computed[key]

    def add(self, lesson: Lesson) -> DeepPart:
        """The encoder stays. A new label gets the mean of its texts as direction, and its name."""
        import torch

        new = _tokens_of(lesson.texts)
        n_new = lesson.after.n_labels - lesson.before.n_labels
        head = self.head
        if n_new:
            head = head.add_labels(
                n_new,
                name_tokens=lesson.label_texts,
                tokens=new,
                Y=lesson.Y[:, lesson.before.n_labels :],
                device=torch.device(lesson.options.device),
            )
        return replace(self, head=head, read=(*self.read, new))

    def drop(self, kept: npt.NDArray[np.bool_], after: Known) -> DeepPart:
        return replace(self, read=(self.texts.take(np.flatnonzero(kept)),))

    def hide(self, after: Known) -> DeepPart:
        """The texts of holes stay until the holes are closed."""
        return self

    def regroup(self, change: Regrouping) -> DeepPart:
        """The encoder stays; see `dxml._learners.merged_rows` for labels that become one."""
        import torch

        device = torch.device(change.options.device)
        head = self.head.with_labels(change.main)
        for new, old in change.merged.items():
            own, others = change.samples(new, OWN_TEXTS, OTHER_TEXTS)
            hidden = [self.head.hidden(self.texts.take(rows), device) for rows in (*own, others)]
            counts = change.before.counts[old].astype(np.float32)
            weight = np.asarray(self.head.weight, dtype=np.float32)[old]
            row = merged_row(weight, self.head.bias[old], counts, hidden[:-1], hidden[-1])
            head = head.with_row(new, *row)
        if change.label_texts is not None:
            head = head.with_names(change.renamed, change.label_texts, device)
        return replace(self, head=head)

    def train_on(self, task: Task, planned: Settings | None) -> DeepPart:
        """On a GPU, trained on with all known texts for a fifth of the epochs."""
        import torch

        from dxml._deep.training import fit_deep

        if task.options.device == "cpu":
            return self
        how = _sized(replace(SETTINGS, epochs=self.epochs), len(self.texts))
        how = _continued(how, TRAIN_ON_EPOCHS)
        head = fit_deep(
            self.texts,
            task.data.Y,
            how,
            start=self.head,
            seed=task.options.seed("teaching"),
            device=torch.device(task.options.device),
            progress=task.progress,
        )
        return replace(self, head=replace(head, names=self.head.names))

    def state(self, precision: Precision) -> tuple[dict[str, Any], Named]:
        ids = self.texts.ids
        small = not len(ids) or int(ids.max()) < 1 << 16
        arrays = self.head.arrays()
        arrays["deep.text_ids"] = ids.astype(np.uint16) if small else ids
        arrays["deep.text_ends"] = self.texts.ends
        line = {} if self.name_line is None else {"name_line": list(self.name_line)}
        return {**self.settings, **line, "nameless": self.nameless}, arrays

    @classmethod
    def restore(cls, config: Settings, arrays: Arrays, known: Known) -> Self:
        from dxml._deep.head import DeepHead

        head = DeepHead.from_arrays(arrays, known.n_labels)
        ids = arrays.token_ids("deep.text_ids", below=head.reader.size)
        ends = arrays.starts("deep.text_ends", known.n_points, len(ids))
        line = None
        if "name_line" in config:
            slope, bias = reals(config["name_line"], "name_line")
            line = NameLine(slope, bias)
        texts = Tokens(ids.astype(np.int32), ends)
        return cls(head, (texts,), whole(config, "epochs", 1), line, real(config, "nameless"))


def _products(vectors: Any, weight: Any, bias: Any, query: Query) -> Floats:
    """``weight[label] @ vector + bias[label]`` of the query's pairs."""
    from dxml._deep.searching import pair_scores

    if query.every_label:
        every = vectors @ weight.float().T
        return np.asarray((every if bias is None else every + bias).cpu().numpy().ravel())
    return pair_scores(vectors, weight, bias, query.pairs.indptr, query.pairs.indices)


def _tokens_of(texts: Texts | None) -> Tokens:
    if texts is None or texts.tokens is None:
        raise DataFormatError("this model reads texts beside features. Give texts=….")
    return texts.tokens


def _place_of(task: Task) -> Keep | None:
    """Where a fit stores its state: without the held-out points in one folder, with all in another.

    The second begins where the first ended, so both are needed until the model is whole.
    """
    keep = task.options.keep
    if keep is None:
        return None
    return replace(keep, folder=keep.folder / ("all" if task.rows is None else "validation"))


def _sized(how: DeepSettings, n_texts: int) -> DeepSettings:
    """Batches twice as large for many texts: a step of a small batch leaves a GPU idle."""
    return replace(how, batch_size=2 * how.batch_size) if n_texts > MANY_TEXTS else how


def _continued(how: DeepSettings, share: float) -> DeepSettings:
    """For a share of the epochs, by smaller steps."""
    assert how.epochs is not None
    encoder_rate, head_rate = how.peaks
    return replace(
        how,
        epochs=max(1, round(share * how.epochs)),
        encoder_rate=CONTINUED_RATE * encoder_rate,
        head_rate=CONTINUED_RATE * head_rate,
    )


def _rows_of(
    matrix: sp.csr_matrix | None, rows: npt.NDArray[np.bool_] | None
) -> sp.csr_matrix | None:
    return matrix if matrix is None or rows is None else matrix[rows]
