"""A trained encoder with its head: what a model keeps, applies, extends and stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from dxml._core.arrays import Arrays
from dxml._deep.applying import both_of, embeddings_of, hidden_of
from dxml._deep.effects import WordEffect, word_effects
from dxml._deep.encoder import TextEncoder
from dxml._deep.growing import Levels, along_means, levels_of, trained_rows
from dxml._deep.names import SCALE
from dxml._deep.precision import Precision, quickest_here
from dxml._deep.searching import best_labels, pair_scores
from dxml._deep.stored_encoder import StoredEncoder
from dxml._deep.tokens import Reader, Tokens
from dxml.exceptions import DataFormatError
from dxml.progress import SILENT, Progress

__all__ = ["DeepHead", "finished_head"]

Halves = npt.NDArray[np.float16]
Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Named = dict[str, npt.NDArray[Any]]
CPU = torch.device("cpu")
ROWS = 4096  # texts whose hidden vectors are held at a time
RIVALS = 5  # labels ranked highest for a taught text, that its own must get ahead of
SAMPLE = 500  # texts that tell how large the logits are


@dataclass(frozen=True, eq=False)
class DeepHead:
    """Trained weights of an encoder and a logistic head over its hidden vectors.

    Attributes
    ----------
    encoder : StoredEncoder
    weight : float16 (n_labels, width)
    bias : float32 (n_labels,)
    levels : Levels
        How large logits are, by which labels that come later are scaled.
    names : float16 (n_labels, size), optional
        Unit vectors of the labels' names; a row of zeros for a label without one.
    precision : {"float32", "bfloat16", "int8"}, optional
        Of the encoder's products on a CPU; what suits this CPU by default.
    """

    encoder: StoredEncoder
    weight: Halves
    bias: Floats
    levels: Levels
    names: Halves | None = None
    precision: Precision | None = None
    _placed: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)

    @property
    def reader(self) -> Reader:
        """What cuts texts for the encoder."""
        return self.encoder.reader

    @property
    def width(self) -> int:
        """Of the hidden vectors."""
        return self.encoder.width

    @property
    def n_labels(self) -> int:
        """Labels that have a logit."""
        return len(self.bias)

    def hidden(self, tokens: Tokens, device: torch.device = CPU) -> Floats:
        """The hidden vectors, (n, width)."""
        return self.hidden_tensor(tokens, device).cpu().numpy()

    def hidden_tensor(
        self, tokens: Tokens, device: torch.device = CPU, progress: Progress = SILENT
    ) -> Tensor:
        """`hidden`, left on the device."""
        return hidden_of(self._network(device), tokens, self.reader.pad, device, progress=progress)

    def vectors(self, tokens: Tokens, device: torch.device = CPU) -> tuple[Tensor, Tensor]:
        """The hidden vectors (n, width), and those to compare with names (n, size)."""
        hidden, embedded = both_of(self._network(device), tokens, self.reader.pad, device)
        return hidden, SCALE * embedded

    def scores(self, tokens: Tokens, pairs: sp.csr_matrix, device: torch.device = CPU) -> Floats:
        """The logits of stored pairs (text, label), in the order of ``pairs.indices``."""
        weight, bias = self._on(device, "weight"), self._on(device, "bias")
        found = [np.empty(0, dtype=np.float32)]
        for rows in _blocks(len(tokens)):
            some = pairs[rows]
            hidden = self.hidden_tensor(tokens.take(rows), device)
            found.append(pair_scores(hidden, weight, bias, some.indptr, some.indices))
        return np.concatenate(found)

    def all_scores(self, tokens: Tokens, device: torch.device = CPU) -> Floats:
        """The logits of all labels, (n, n_labels)."""
        out = np.empty((len(tokens), self.n_labels), dtype=np.float32)
        for rows in _blocks(len(tokens)):
            out[rows] = self.logits(self.hidden_tensor(tokens.take(rows), device), device)
        return out

    def logits(self, hidden: Tensor, device: torch.device) -> Floats:
        """The logits of all labels for hidden vectors on a device, (n, n_labels)."""
        weight, bias = self.placed(device)
        return torch.addmm(bias, hidden, weight.float().T).cpu().numpy()

    def placed(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Weight and bias on a device."""
        return self._on(device, "weight"), self._on(device, "bias")

    def best(self, tokens: Tokens, k: int, device: torch.device = CPU) -> tuple[Ids, Floats]:
        """The k labels of highest logit and their logits, (n, k) each, best first."""
        hidden = self.hidden_tensor(tokens, device)
        return best_labels(hidden, self._on(device, "weight"), self._on(device, "bias"), k)

    def name_scores(
        self, tokens: Tokens, pairs: sp.csr_matrix, device: torch.device = CPU
    ) -> Floats:
        """How near text and name of stored pairs are: 20 times their cosine."""
        vectors = SCALE * self._embedded(tokens, device)
        names = self.placed_names(device)
        return pair_scores(vectors, names, None, pairs.indptr, pairs.indices)

    def nearest_names(
        self,
        tokens: Tokens,
        k: int,
        device: torch.device = CPU,
        *,
        among: npt.NDArray[np.int64] | None = None,
    ) -> tuple[Ids, Floats]:
        """The k labels whose names are nearest and their `name_scores`, best first.

        Parameters
        ----------
        among : int64 array, optional
            Labels that are looked at; the ids are then places in it.
        """
        vectors = SCALE * self._embedded(tokens, device)
        names = self.placed_names(device)
        if among is not None:
            names = names[torch.from_numpy(among).to(device)]
        return best_labels(vectors, names, None, k)

    @property
    def named(self) -> npt.NDArray[np.bool_]:
        """Which labels have a name that was read."""
        if self.names is None:
            return np.zeros(self.n_labels, dtype=bool)
        return np.asarray(self.names.any(axis=1))

    def effects(
        self, text: str, labels: Sequence[int], device: torch.device = CPU
    ) -> list[WordEffect]:
        """How much lower the labels' logits are without each word, strongest first."""
        rows = np.asarray(labels, dtype=np.int64)
        weight = self._on(device, "weight")[torch.from_numpy(rows).to(device)].float()
        return word_effects(self._network(device), self.reader, text, weight, device)

    def add_labels(
        self,
        count: int,
        *,
        name_tokens: Tokens | None = None,
        tokens: Tokens | None = None,
        Y: sp.csr_matrix | None = None,
        device: torch.device = CPU,
    ) -> DeepHead:
        """With more labels, told by their names, by the first texts that carry them, or both.

        Parameters
        ----------
        count : int
            New labels; they come after those that are known.
        name_tokens : Tokens, optional
            Of their names.
        tokens, Y : Tokens and csr_matrix of shape (n, count), optional
            Texts and which of the new labels they carry.
        """
        weight = np.zeros((count, self.width), dtype=np.float32)
        bias = np.full(count, self.levels.low, dtype=np.float32)
        if tokens is not None and Y is not None:
            weight, bias = along_means(self.hidden(tokens, device), Y, self.levels)
        return DeepHead(
            self.encoder,
            np.concatenate([self.weight, weight.astype(np.float16)]),
            np.concatenate([self.bias, bias]),
            self.levels,
            self._more_names(count, name_tokens, device),
            self.precision,
        )

    def with_labels(self, labels: npt.NDArray[np.int64]) -> DeepHead:
        """With these labels only, in this order."""
        names = None if self.names is None else self.names[labels]
        return replace(self, weight=self.weight[labels], bias=self.bias[labels], names=names)

    def with_row(self, label: int, row: Floats, bias: float) -> DeepHead:
        """With another row of the head for a label."""
        weight, biases = np.array(self.weight), np.array(self.bias)
        weight[label], biases[label] = row.astype(np.float16), bias
        return replace(self, weight=weight, bias=biases)

    def with_names(
        self, labels: npt.NDArray[np.int64], tokens: Tokens, device: torch.device = CPU
    ) -> DeepHead:
        """With other names for some labels, where names were read at all."""
        if self.names is None or not len(labels):
            return self
        names = np.array(self.names)
        names[labels] = self._embedded(tokens, device).half().cpu().numpy()
        return replace(self, names=names)

    def train_on(
        self,
        tokens: Tokens,
        Y: sp.csr_matrix,
        *,
        known: Tokens | None = None,
        known_Y: sp.csr_matrix | None = None,
        device: torch.device = CPU,
    ) -> DeepHead:
        """The head's rows of the labels that texts carry, trained on with them.

        The encoder stays; `fit_deep` with ``start=`` trains it on.

        Parameters
        ----------
        tokens, Y : Tokens and csr_matrix of shape (n, n_labels)
        known, known_Y : optional
            Older texts, so that they are not forgotten. With them the labels that they carry and
            that are wrongly ranked high for the new texts are trained on too.
        """
        labels, hidden, targets = np.unique(Y.indices), self.hidden(tokens, device), Y
        if known is not None and known_Y is not None:
            high = np.intersect1d(self.best(tokens, RIVALS, device)[0], known_Y.indices)
            labels = np.union1d(labels, high)
            hidden = np.concatenate([hidden, self.hidden(known, device)])
            targets = sp.vstack([targets, known_Y], format="csr")
        targets = targets[:, labels]
        rows, bias = trained_rows(hidden, targets, self.weight[labels], self.bias[labels])
        weight, all_bias = np.array(self.weight), np.array(self.bias)
        weight[labels], all_bias[labels] = rows.astype(np.float16), bias
        return DeepHead(self.encoder, weight, all_bias, self.levels, self.names, self.precision)

    def arrays(self, prefix: str = "deep") -> Named:
        """The weights, the tokenizer and the encoder's shape under the names of a saved model."""
        stored = self.encoder.arrays(prefix) | {
            f"{prefix}.weight": self.weight,
            f"{prefix}.bias": self.bias,
            f"{prefix}.middle": self.levels.middle,
            f"{prefix}.levels": np.array([self.levels.low, self.levels.high], dtype=np.float32),
        }
        return stored if self.names is None else stored | {f"{prefix}.names": self.names}

    @classmethod
    def from_arrays(
        cls,
        arrays: Arrays,
        n_labels: int | None = None,
        prefix: str = "deep",
        precision: Precision | None = None,
    ) -> DeepHead:
        """The inverse of `arrays`; `n_labels` is how many there must be."""
        encoder = StoredEncoder.from_arrays(arrays, prefix)
        weight = arrays.halves(f"{prefix}.weight", n_labels, encoder.width)
        low, high = arrays.floats(f"{prefix}.levels", 2).tolist()
        names = None
        if f"{prefix}.names" in arrays:
            names = arrays.halves(f"{prefix}.names", len(weight), None)
        return cls(
            encoder,
            weight,
            arrays.floats(f"{prefix}.bias", len(weight)),
            Levels(arrays.floats(f"{prefix}.middle", encoder.width), low, high),
            names,
            precision,
        )

    def _network(self, device: torch.device) -> TextEncoder:
        chosen = self.precision or quickest_here()
        return self.encoder.on(device, chosen if device.type == "cpu" else "float32")

    def _embedded(self, tokens: Tokens, device: torch.device) -> Tensor:
        return embeddings_of(self._network(device), tokens, self.reader.pad, device)

    def _on(self, device: torch.device, name: str) -> Tensor:
        key = f"{name} {device}"
        if key not in self._placed:
            array = np.ascontiguousarray(getattr(self, name))
            self._placed[key] = torch.from_numpy(array).to(device)
        return self._placed[key]

    def placed_names(self, device: torch.device) -> Tensor:
        """The vectors of the names on a device."""
        if self.names is None:
            raise DataFormatError(
                "this encoder was trained without the labels' names. Train it with label_tokens."
            )
        return self._on(device, "names")

    def _more_names(self, count: int, tokens: Tokens | None, device: torch.device) -> Halves | None:
        if tokens is None:
            if self.names is None:
                return None
            more = np.zeros((count, self.names.shape[1]), dtype=np.float16)
        else:
            more = self._embedded(tokens, device).half().cpu().numpy()
        known = self.names
        if known is None:
            known = np.zeros((self.n_labels, more.shape[1]), dtype=np.float16)
        return np.concatenate([known, more])


def finished_head(
    encoder: TextEncoder,
    config: dict[str, Any],
    reader: Reader,
    weight: Tensor,
    bias: Tensor,
    tokens: Tokens,
    Y: sp.csr_matrix,
    label_tokens: Tokens | None,
    device: torch.device,
    progress: Progress = SILENT,
) -> DeepHead:
    """What training made, rounded to 16 bits, with the labels' names read by it."""
    stored = StoredEncoder.of(encoder, config, reader)
    rounded = weight.half().cpu().numpy()
    plain = bias.float().cpu().numpy()
    network = stored.on(device)
    rows = np.unique(np.linspace(0, len(tokens) - 1, SAMPLE).astype(np.int64))
    hidden = hidden_of(network, tokens.take(rows), reader.pad, device)
    levels = levels_of(hidden.cpu().numpy(), Y[rows], rounded, plain)
    names = None
    if label_tokens is not None:
        read = embeddings_of(network, label_tokens, reader.pad, device, progress=progress)
        names = read.half().cpu().numpy()
    return DeepHead(stored, rounded, plain, levels, names)


def _blocks(n: int) -> list[npt.NDArray[np.int64]]:
    return [np.arange(start, min(start + ROWS, n)) for start in range(0, n, ROWS)]
