"""The vectors of texts that a joint model is to use as they are: found and computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import scipy.sparse as sp

from dxml._deep.static_vectors import PACKAGE, find_static
from dxml._deep.texts import Texts
from dxml._deep.vectors import TextVectors, VectorRows, find_vectors
from dxml.joint._sizes import LONG_TEXTS, SHORT_TEXTS
from dxml.progress import Progress

__all__ = ["open_vectors"]


class Asked(Protocol):
    """The parameters of `Joint` that say which vectors they are."""

    vectors: str
    max_tokens: int | None


def open_vectors(
    asked: Asked,
    texts: Sequence[str] | Texts,
    X: sp.csr_matrix,
    device: str,
    progress: Progress,
) -> VectorRows | None:
    """The vectors of the points' texts; None where there are to be none.

    By default they are those of a package, where it is installed and texts are short.
    """
    if isinstance(texts, Texts):
        return texts.vectors
    if asked.vectors == "none":
        return None
    length = asked.max_tokens or (128 if len(texts) > LONG_TEXTS else 256)
    if asked.vectors != "auto":
        return TextVectors.fit(find_vectors(asked.vectors, length), texts, device, progress)
    try:
        static = find_static(PACKAGE, length) if X.nnz <= SHORT_TEXTS * X.shape[0] else None
    except ImportError:  # of tokenizers, without which nothing cuts the texts
        return None
    return None if static is None else TextVectors.fit(static, texts, device, progress)
