"""Fine-tune an encoder end to end with a head over the labels.

AdamW, one cycle of the learning rate, batches of similar length. On a GPU texts and labels lie
there, matrix products are made in bfloat16, and the loss is read every few dozen steps, so that
the host never waits within them.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from dxml._core.blocks import spread
from dxml._core.random import spawn_seed
from dxml._core.threads import threads
from dxml._deep.applying import hidden_of, out_of_memory, threads_for
from dxml._deep.batches import PlacedTokens, padded_length
from dxml._deep.checkpoints import Pretrained
from dxml._deep.encoder import TextEncoder
from dxml._deep.head import DeepHead, finished_head
from dxml._deep.label_heads import FullHead, LabelHead, ShortHead
from dxml._deep.names import name_loss
from dxml._deep.optimising import adamw, load_state, slopes_of, state_of
from dxml._deep.plan import Epoch, Piece, plan_epoch
from dxml._deep.recorded import RecordedEncoder
from dxml._deep.resuming import Arrays, Keep, Keeping
from dxml._deep.searching import best_labels
from dxml._deep.settings import DeepSettings
from dxml._deep.shortlists import Shortlists
from dxml._deep.together import ALONE, Together
from dxml._deep.tokens import Tokens
from dxml.exceptions import DataFormatError, DxmlError, ParameterError
from dxml.progress import SILENT, Progress, Stage

__all__ = ["Trainer", "Work", "fit_deep", "train"]

READ = 50  # steps between two looks at the loss
BLOCK = 8192  # texts whose own hard negatives are searched for at a time
_log = logging.getLogger(__name__)


def fit_deep(
    tokens: Tokens,
    Y: sp.csr_matrix,
    settings: DeepSettings,
    *,
    start: Pretrained | DeepHead,
    seed: int = 0,
    device: torch.device,
    negatives: sp.csr_matrix | None = None,
    label_tokens: Tokens | None = None,
    keep: Keep | None = None,
    note: str = "",
    progress: Progress = SILENT,
) -> DeepHead:
    """Train an encoder and a head.

    Parameters
    ----------
    tokens : Tokens
        Of n texts, by the reader of `start`.
    Y : csr_matrix of shape (n, n_labels), bool
    start : Pretrained or DeepHead
        An encoder as published, or a trained one to go on from.
    negatives : csr_matrix of shape (n, n_labels), optional
        Hard negatives for shortlists: stored pairs are candidates.
    label_tokens : Tokens, optional
        What is known of every label in words: name, description, parents.
    keep : Keep, optional
        Where the run's state is stored, and whether to go on from it.
    note : str
        What is said beside the name of the stage.
    """
    _check(tokens, Y, label_tokens, negatives)
    work = Work(tokens, Y, settings, start, seed, negatives, label_tokens)
    with ExitStack() as stack:
        if spread():
            from dxml._deep.on_cluster import trained_on_cluster

            keep = stack.enter_context(trained_on_cluster(work, keep, progress, note))
        trainer = train(work, device, keep, SILENT if spread() else progress, note)
    reader = start.reader
    config = start.config if isinstance(start, Pretrained) else start.encoder.config
    weight, bias = trainer.head.weight.detach(), trainer.head.bias.detach()
    return finished_head(
        trainer.encoder, config, reader, weight, bias, tokens, Y, label_tokens, device, progress
    )


@dataclass(frozen=True, eq=False)
class Work:
    """What is to be trained, as `fit_deep` is given it."""

    tokens: Tokens
    Y: sp.csr_matrix
    settings: DeepSettings
    start: Pretrained | DeepHead
    seed: int = 0
    negatives: sp.csr_matrix | None = None
    label_tokens: Tokens | None = None


def train(
    work: Work,
    device: torch.device,
    keep: Keeping | None = None,
    progress: Progress = SILENT,
    note: str = "",
    together: Together = ALONE,
) -> Trainer:
    """All steps, or those that a stored run has left."""
    with _own_chance(spawn_seed(work.seed, "deep"), device):
        trainer = Trainer(
            work.tokens,
            work.Y,
            work.settings,
            work.start,
            work.seed,
            device,
            negatives=work.negatives,
            label_tokens=work.label_tokens,
            together=together,
        )
        trainer.run(keep, progress, note)
    return trainer


class Trainer:
    """An encoder and its head on the way, and the steps that move them."""

    def __init__(
        self,
        tokens: Tokens,
        Y: sp.csr_matrix,
        settings: DeepSettings,
        start: Pretrained | DeepHead,
        seed: int,
        device: torch.device,
        *,
        negatives: sp.csr_matrix | None = None,
        label_tokens: Tokens | None = None,
        together: Together = ALONE,
    ) -> None:
        self._together = together
        self.settings, self.device, self._seed = settings, device, seed
        self._published, self._origin = isinstance(start, Pretrained), 0
        self._tokens, self._Y, self._reader = tokens, Y, start.reader
        self._pad = start.reader.pad
        longest = start.reader.max_length
        self._texts = PlacedTokens(tokens, self._pad, longest, device)
        self._names, self._name_weight, self._label_tokens = None, 0.0, label_tokens
        if label_tokens is not None:
            self._names = PlacedTokens(label_tokens, self._pad, longest, device)
        self.encoder = _encoder_of(start, settings).to(device).train()
        self._reading = RecordedEncoder(self.encoder, settings.batch_size)
        if together.count > 1:  # each has a share of a batch
            self._reading.stop()
        self.head = _head_of(start, Y.shape[1], settings, seed, negatives, device)
        self._optimiser = adamw(
            [
                {"params": list(self.encoder.transformer.parameters())},
                {"params": list(self.encoder.widen.parameters())},
            ],
            settings.weight_decay,
        )
        self.n_steps = settings.epochs_for(len(tokens)) * -(-len(tokens) // settings.batch_size)
        self.fast = device.type == "cuda"  # matrix products in bfloat16
        self.parts = 1  # pieces that a batch is computed in
        self._total = torch.zeros((), device=device)
        self._steps_read = 0

    def run(self, keep: Keeping | None = None, progress: Progress = SILENT, note: str = "") -> None:
        """All epochs, or those that a stored run has left."""
        n, epochs = len(self._tokens), self.settings.epochs_for(len(self._tokens))
        step = stored = 0 if keep is None else self._begin(keep)
        watch = _Watch(step, self.n_steps)
        saved, stores = time.monotonic(), self._together.rank == 0
        with (
            threads(threads_for(self.encoder, self.settings.batch_size * 8, self.device)),
            progress.stage(f"text encoder{note}", epochs * n, "texts") as stage,
        ):
            per_epoch = self.n_steps // epochs
            if step == self.n_steps:
                stage.advance(epochs * n)  # all of it by the run before
            for epoch in range(step // per_epoch, epochs):
                order = self.plan(epoch)
                first = step - epoch * per_epoch
                if step == watch.first:
                    stage.advance(epoch * n + order.bounds[first])  # by the run before
                if first == 0 and epoch > 0:
                    self._search_own()
                for batch in range(first, len(order)):
                    self.step(order, batch, step)
                    step += 1
                    if step % READ == 0 or batch == len(order) - 1:
                        watch.tell(stage, self.mean_loss(), step, self.parts)
                    if stores and keep is not None and time.monotonic() - saved >= keep.interval:
                        self._store(keep, step)
                        saved, stored = time.monotonic(), step
                    stage.advance(order.bounds[batch + 1] - order.bounds[batch])
            if stores and keep is not None and stored != step:  # what comes after may break off too
                self._store(keep, step)

    def plan(self, epoch: int) -> Epoch:
        """The order of an epoch, which the seed and its number decide."""
        rng = np.random.default_rng([spawn_seed(self._seed, "deep order"), epoch])
        size = self.settings.batch_size
        return plan_epoch(self._texts.lengths, self._Y, size, rng, self.device)

    def step(self, order: Epoch, batch: int, step: int) -> None:
        """One update by a batch, which is computed in pieces where memory asks for that."""
        texts, labels = order.batch(batch)
        self._reading.record()
        self.head.begin(texts, labels, step)
        self._name_weight = self.settings.name_weight * self.settings.name_every
        if self._names is None or step % self.settings.name_every:
            self._name_weight = 0.0
        together = self._together
        together.draw_apart(self._seed, step)
        while not self._slopes(
            together.share(order.pieces(batch, self.parts * together.count)), len(texts)
        ):
            self._halve(len(texts))
        if together.count > 1:
            together.add([*slopes_of(self.encoder.parameters()), *self.head.slopes()])
        rate, head_rate = self.settings.rates((step + 1) / (self.n_steps + 1))
        torch.nn.utils.clip_grad_norm_(self.encoder.parameters(), self.settings.max_norm)
        for group, each in zip(self._optimiser.param_groups, (rate, head_rate), strict=True):
            group["lr"] = each
        self._optimiser.step()
        self._optimiser.zero_grad()
        self.head.finish(head_rate)

    def mean_loss(self) -> float:
        """Of the steps since it was last asked for; the host waits for the device here."""
        self._together.add([self._total])
        total, steps = float(self._total), max(self._steps_read, 1)
        self._total.zero_()
        self._steps_read = 0
        return total / steps

    def _slopes(self, pieces: list[Piece], whole: int) -> bool:
        """Add up the slopes of a batch's pieces; False where memory did not suffice."""
        losses = [torch.zeros((), device=self.device)]
        try:
            for piece in pieces:
                loss = self._loss(piece, whole)
                loss.backward()
                losses.append(loss.detach())
        except out_of_memory:
            return False
        self._total += torch.stack(losses).sum()
        self._steps_read += 1
        return True

    def _loss(self, piece: Piece, whole: int) -> Tensor:
        length = padded_length(int(self._texts.lengths[piece.texts].max()), self._reader.max_length)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.fast):
            hidden, embedded = self._reading(*self._texts.gather(piece.placed, length))
            loss = self.head.loss(hidden, piece.rows, piece.columns, whole)
            if self._names is not None and self._name_weight:
                read = name_loss(self._reading, embedded, piece, self._names, whole)
                loss = loss + self._name_weight * read
        return loss

    def _halve(self, size: int) -> None:
        """After too little memory: the same batch again, in twice as many pieces."""
        self._optimiser.zero_grad()
        self.head.clear()
        self._reading.stop()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        if self.parts >= size:
            raise DxmlError(
                "the GPU's memory does not suffice for a single text and the head of all labels. "
                "Use a smaller encoder, fewer tokens a text, or shortlists."
            )
        self.parts *= 2
        _log.warning(
            "out of GPU memory: batches of %d texts are now computed in %d pieces",
            size,
            self.parts,
        )

    def _search_own(self) -> None:
        """The labels that the model ranks highest for each text, as its hard negatives."""
        if not isinstance(self.head, ShortHead) or not self.settings.own:
            return
        kind = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        found = []
        for start in self._together.share(range(0, len(self._tokens), BLOCK)):
            rows = np.arange(start, min(start + BLOCK, len(self._tokens)))
            some = self._tokens.take(rows)
            hidden = hidden_of(self.encoder, some, self._pad, self.device, fast=True)
            head = self.head
            ids, _ = best_labels(hidden.to(kind), head.weight, head.bias, self.settings.own)
            found.append(ids)
        self.head.shortlists.own = np.concatenate(self._together.gather(found))

    def _same(self) -> dict[str, Any]:
        """What a stored run must agree in."""
        data = zlib.crc32(np.ascontiguousarray(self._tokens.ids).data)
        data = zlib.crc32(np.ascontiguousarray(self._Y.indices).data, data)
        if self._label_tokens is not None:
            data = zlib.crc32(np.ascontiguousarray(self._label_tokens.ids).data, data)
        shape = [int(size) for size in self._Y.shape]
        return {
            "data": [*shape, data],
            "settings": asdict(self.settings),
            "seed": self._seed,
            "encoder": self._origin,
        }

    def _store(self, keep: Keeping, step: int) -> None:
        arrays: Arrays = {"chance": torch.get_rng_state().numpy()}
        if self.device.type == "cuda":
            arrays["gpu_chance"] = torch.cuda.get_rng_state(self.device).numpy()
        weights = self.encoder.state_dict()
        arrays |= {f"encoder.{name}": value.cpu().numpy() for name, value in weights.items()}
        arrays |= state_of(self._optimiser, "adam")
        arrays |= {f"head.{name}": array for name, array in self.head.state().items()}
        arrays["total"] = self._total.cpu().numpy()
        run = {"step": step, "parts": self.parts, "steps_read": self._steps_read}
        keep.write(step, run | self._same(), arrays)

    def _begin(self, keep: Keeping) -> int:
        """Go on from a stored state, or remove what is there; the number of steps made."""
        if self._published:
            self._origin = _checksum(self.encoder.transformer)
        if keep.resume:
            return self._resume(keep)
        keep.clear()
        return 0

    def _resume(self, keep: Keeping) -> int:
        """Take up the newest stored state; the number of steps that it had made."""
        found = keep.read(self._same())
        if found is None:
            return 0
        run, arrays = found
        self._load(arrays)
        self.parts, self._steps_read = int(run["parts"]), int(run["steps_read"])
        return int(run["step"])

    def _load(self, arrays: Arrays) -> None:
        weights = {
            name.removeprefix("encoder."): torch.from_numpy(array)
            for name, array in arrays.items()
            if name.startswith("encoder.")
        }
        self.encoder.load_state_dict(weights)
        load_state(self._optimiser, arrays, "adam")
        self.head.load(
            {
                name.removeprefix("head."): array
                for name, array in arrays.items()
                if name.startswith("head.")
            }
        )
        self._total.fill_(float(arrays["total"].reshape(())) if self._together.rank == 0 else 0.0)
        torch.set_rng_state(torch.from_numpy(arrays["chance"]))
        if self.device.type == "cuda" and "gpu_chance" in arrays:
            torch.cuda.set_rng_state(torch.from_numpy(arrays["gpu_chance"]), self.device)


class _Watch:
    """Tells the loss and the time left."""

    def __init__(self, first: int, n_steps: int) -> None:
        self.first, self._n_steps, self._started = first, n_steps, time.monotonic()

    def tell(self, stage: Stage, loss: float, step: int, parts: int) -> None:
        """A note beside the bar."""
        seconds = time.monotonic() - self._started
        left = seconds / (step - self.first) * (self._n_steps - step)
        pieces = f", out of GPU memory: batches in {parts} pieces" if parts > 1 else ""
        stage.note(f"loss {loss:.3f}, {_in_words(left)} left{pieces}")


def _in_words(seconds: float) -> str:
    """A duration as people say it.

    >>> _in_words(40.2), _in_words(125), _in_words(9000)
    ('40 s', '2 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _checksum(network: torch.nn.Module) -> int:
    """Of all weights."""
    found = 0
    for value in network.state_dict().values():
        found = zlib.crc32(np.ascontiguousarray(value.cpu().numpy()).data, found)
    return found


def _encoder_of(start: Pretrained | DeepHead, settings: DeepSettings) -> TextEncoder:
    """A copy to train, whose wide layer is drawn by torch's generator where it is new."""
    if isinstance(start, DeepHead):
        if start.width != settings.width:
            raise ParameterError(
                f"the trained head has a width of {start.width}, the settings ask for "
                f"{settings.width}. Use the same."
            )
        return start.encoder.copy(settings.dropout)
    return TextEncoder(deepcopy(start.transformer), settings.width, settings.dropout)


def _head_of(
    start: Pretrained | DeepHead,
    n_labels: int,
    settings: DeepSettings,
    seed: int,
    negatives: sp.csr_matrix | None,
    device: torch.device,
) -> LabelHead:
    weight = torch.zeros(n_labels, settings.width, device=device)
    bias = torch.full((n_labels,), settings.bias, device=device)
    if isinstance(start, DeepHead):
        known = min(len(start.bias), n_labels)
        weight[:known] = torch.from_numpy(np.asarray(start.weight[:known], np.float32)).to(device)
        bias[:known] = torch.from_numpy(np.asarray(start.bias[:known])).to(device)
    if not settings.shortlists(n_labels):
        return FullHead(weight, bias, settings)
    drawing = spawn_seed(seed, "deep shortlists")
    return ShortHead(weight, bias, settings, Shortlists(n_labels, settings, drawing, negatives))


@contextmanager
def _own_chance(seed: int, device: torch.device) -> Iterator[None]:
    """Inside, what drops is decided by `seed`; torch's own generators are left as they were."""
    gpus = [torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=gpus):
        torch.manual_seed(seed)
        yield


def _check(
    tokens: Tokens, Y: sp.csr_matrix, label_tokens: Tokens | None, negatives: sp.csr_matrix | None
) -> None:
    if len(tokens) == 0 or len(tokens) != Y.shape[0]:
        raise DataFormatError(
            f"expected a row of labels for each text and one text or more, "
            f"got {len(tokens)} texts and {Y.shape[0]} rows."
        )
    if label_tokens is not None and len(label_tokens) != Y.shape[1]:
        raise DataFormatError(
            f"expected a name for each of {Y.shape[1]} labels, got {len(label_tokens)}. "
            "Give '' where a label has none."
        )
    if negatives is not None and negatives.shape != Y.shape:
        raise DataFormatError(
            f"expected negatives of shape {Y.shape}, got {negatives.shape}: "
            "a row for each text, a column for each label."
        )
