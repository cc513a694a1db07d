"""Texts → vectors by a sentence-transformers model, which is another package's and stays so.

Only the name of the model is saved with a tagger, and what it made of one sentence, by which
another model under the same name is found out. The package comes with
``pip install 'dxml[sentences]'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from dxml._progress import SILENT, Progress
from dxml.exceptions import ModelFormatError, ParameterError

__all__ = ["SentenceModel"]

Floats = npt.NDArray[np.float32]
BATCH = 64  # texts encoded together
BLOCK = 1024  # texts between two words to the progress
_PROBE = "The quick brown fox jumps over the lazy dog."
_CLOSE = 0.99  # cosine of what one model makes of a text on two machines, at least


class SentenceModel:
    """A model of sentences, opened by name or folder.

    Attributes
    ----------
    name : str
    probe : float32 array of shape (width,)
        What the model makes of a sentence that is always the same.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._model = _open(name)
        self.probe = self._encode([_PROBE])[0]

    @property
    def width(self) -> int:
        """Numbers a text."""
        return len(self.probe)

    def encode(self, texts: Sequence[str], progress: Progress = SILENT) -> Floats:
        """A row of length 1 for each text, (n_texts, width)."""
        rows = np.empty((len(texts), self.width), dtype=np.float32)
        with progress.stage("encode sentences", len(texts), "texts") as stage:
            for start in range(0, len(texts), BLOCK):
                block = texts[start : start + BLOCK]
                rows[start : start + len(block)] = self._encode(block)
                stage.advance(len(block))
        return rows

    def _encode(self, texts: Sequence[str]) -> Floats:
        found = self._model.encode(
            list(texts), batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False
        )
        return np.asarray(found, dtype=np.float32)

    @classmethod
    def again(cls, name: str, probe: Floats) -> SentenceModel:
        """The model that features were fitted with, which made `probe`; another is an error."""
        try:
            model = cls(name)
        except ParameterError as error:
            raise ModelFormatError(
                f"this was trained with a sentence model that is needed again: {error}"
            ) from error
        same = probe.shape == model.probe.shape and float(probe @ model.probe) >= _CLOSE
        if not same:
            raise ModelFormatError(
                f"this was trained with another sentence model than {name!r} is now. "
                "Put the same model there again, or train anew."
            )
        return model


@lru_cache(maxsize=1)
def _open(name: str) -> Any:
    try:
        package = import_module("sentence_transformers")
    except ImportError:
        raise ParameterError(
            f"the sentence model {name!r} needs the package sentence-transformers. "
            "Install it with: pip install 'dxml[sentences]'."
        ) from None
    try:
        return package.SentenceTransformer(name)
    except Exception as error:  # whatever that package, its hub and its files come up with
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ParameterError(
            f"the sentence model {name!r} cannot be opened ({first}). "
            "Give the folder of a sentence-transformers model, or a name that can be downloaded."
        ) from error
