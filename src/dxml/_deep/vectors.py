"""Texts → unit vectors around the mean of the training texts, without any training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dxml._core.arrays import Arrays
from dxml._deep.frozen_vectors import FrozenVectors
from dxml._deep.static_vectors import StaticVectors, find_static
from dxml.exceptions import ModelFormatError
from dxml.progress import SILENT, Progress

__all__ = ["TextVectors", "VectorRows", "find_vectors"]

Halves = npt.NDArray[np.float16]
SOURCES: dict[str, type[StaticVectors | FrozenVectors]] = {
    each.kind: each for each in (StaticVectors, FrozenVectors)
}


@dataclass(frozen=True, eq=False)
class TextVectors:
    """What makes vectors of texts.

    Attributes
    ----------
    source : StaticVectors or FrozenVectors
    centre : float32 array of shape (size,)
        The mean of the training texts' vectors, which is taken off: what all texts share tells no
        labels apart.
    """

    source: StaticVectors | FrozenVectors
    centre: npt.NDArray[np.float32]

    @classmethod
    def fit(
        cls,
        source: StaticVectors | FrozenVectors,
        texts: Sequence[str],
        device: str,
        progress: Progress = SILENT,
    ) -> VectorRows:
        """Find the centre of the texts; their rows around it."""
        raw = source.rows(texts, device, progress)
        how = cls(source, raw.mean(axis=0, dtype=np.float64).astype(np.float32))
        return VectorRows(how, how._around(raw))

    def read(self, texts: Sequence[str], device: str) -> VectorRows:
        """The rows of other texts."""
        return VectorRows(self, self._around(self.source.rows(texts, device)))

    def _around(self, raw: npt.NDArray[np.float32]) -> Halves:
        """Rows of length 1; one that says nothing stays 0."""
        says = raw.any(axis=1, keepdims=True)
        rows = np.where(says, raw - self.centre, 0)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(lengths, 1e-12), dtype=np.float16)

    def state(self, prefix: str) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """What a saved model holds of it: JSON values and arrays."""
        arrays = self.source.arrays(f"{prefix}.source")
        return {"source": self.source.kind}, {**arrays, f"{prefix}.centre": self.centre}

    @classmethod
    def restore(cls, config: Any, arrays: Arrays, prefix: str) -> TextVectors:
        """The inverse of `state`."""
        kind = config["source"]
        if kind not in SOURCES:
            raise ModelFormatError(
                f"this model has vectors of the kind {kind!r}, which this dxml does not know. "
                "Open it with the version that wrote it."
            )
        source = SOURCES[kind].from_arrays(arrays, f"{prefix}.source")
        return cls(source, arrays.floats(f"{prefix}.centre", source.size))


@dataclass(frozen=True, eq=False)
class VectorRows:
    """The vectors of some texts.

    Attributes
    ----------
    how : TextVectors
        What made them.
    rows : float16 array of shape (n_texts, size)
    """

    how: TextVectors
    rows: Halves = field(repr=False)

    def take(self, rows: npt.NDArray[Any]) -> VectorRows:
        """Those of some of the texts."""
        return replace(self, rows=self.rows[rows])


def find_vectors(name: str, max_length: int) -> StaticVectors | FrozenVectors:
    """The static vectors of a folder or package, or an encoder to be used as it is."""
    static = find_static(name, max_length)
    if static is not None:
        return static
    from dxml._deep.checkpoints import find_weights, open_pretrained

    folder = find_weights(name)
    assert folder is not None
    return FrozenVectors.of(open_pretrained(folder, max_length))
