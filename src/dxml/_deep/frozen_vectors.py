"""A published encoder as it is, without any training: the mean of its last layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from dxml._core.arrays import Arrays
from dxml.progress import SILENT, Progress

if TYPE_CHECKING:
    from dxml._deep.checkpoints import Pretrained
    from dxml._deep.stored_encoder import StoredEncoder

__all__ = ["FrozenVectors"]

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class FrozenVectors:
    """Vectors by an encoder whose weights stay as they were published.

    Attributes
    ----------
    encoder : StoredEncoder
    """

    kind: ClassVar[str] = "frozen"

    encoder: StoredEncoder

    @classmethod
    def of(cls, pretrained: Pretrained) -> FrozenVectors:
        """The encoder in 16 bits."""
        import torch

        from dxml._deep.encoder import TextEncoder
        from dxml._deep.stored_encoder import StoredEncoder

        with torch.random.fork_rng(devices=[]):
            network = TextEncoder(pretrained.transformer, 1)
        return cls(StoredEncoder.of(network, pretrained.config, pretrained.reader))

    @property
    def size(self) -> int:
        """Length of the vectors."""
        return int(self.encoder.config["hidden_size"])

    def rows(self, texts: Sequence[str], device: str, progress: Progress = SILENT) -> Floats:
        """Vectors of length 1, (n_texts, size); 0 for an empty text."""
        import torch

        from dxml._deep.applying import embeddings_of
        from dxml._deep.precision import quickest_here

        place = torch.device(device)
        precision = quickest_here() if place.type == "cpu" else "float32"
        reader, network = self.encoder.reader, self.encoder.on(place, precision)
        tokens = reader.read(texts, progress)
        found = embeddings_of(network, tokens, reader.pad, place, progress=progress)
        rows: Floats = found.cpu().numpy()
        rows[[not text.strip() for text in texts]] = 0
        return rows

    def arrays(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """Under the names of a saved model."""
        return self.encoder.arrays(prefix)

    @classmethod
    def from_arrays(cls, arrays: Arrays, prefix: str) -> FrozenVectors:
        """The inverse of `arrays`."""
        from dxml._deep.stored_encoder import StoredEncoder

        return cls(StoredEncoder.from_arrays(arrays, prefix))
