"""Texts as the parts of a model read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dxml._deep.tokens import Tokens
from dxml._deep.vectors import VectorRows

__all__ = ["Texts"]


@dataclass(frozen=True, eq=False)
class Texts:
    """Some texts, in the forms that the model's parts ask for.

    Attributes
    ----------
    tokens : Tokens or None
        For an encoder that is fine-tuned.
    vectors : VectorRows or None
        For static vectors or a frozen encoder.
    """

    tokens: Tokens | None = None
    vectors: VectorRows | None = None

    @property
    def say_something(self) -> npt.NDArray[np.bool_]:
        """Of each text: whether a part reads anything in it."""
        if self.tokens is not None:
            return np.ones(len(self.tokens), dtype=np.bool_)
        if self.vectors is None:
            raise ValueError("no part reads these texts")
        return np.asarray(self.vectors.rows.any(axis=1))

    def take(self, rows: npt.NDArray[Any]) -> Texts:
        """Some of the texts, in the order asked for."""
        return Texts(
            None if self.tokens is None else self.tokens.take(rows),
            None if self.vectors is None else self.vectors.take(rows),
        )
