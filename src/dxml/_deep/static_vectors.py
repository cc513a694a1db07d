"""Static word vectors: the vector of a text is the mean of its tokens' vectors.

They are read from what a package brought (wordllama) or from a folder as model2vec writes it: one
table of vectors in safetensors and a tokenizer. Nothing of the package is run, and nothing is
fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.tensors import map_tensors
from dxml._deep.tokens import Reader
from dxml.exceptions import ModelFormatError, ParameterError
from dxml.progress import SILENT, Progress

__all__ = ["PACKAGE", "StaticVectors", "find_static"]

PACKAGE = "wordllama"
"""What `auto` looks for: a package on the index that carries 32,000 vectors of 256 numbers."""
TABLES = ("embedding.weight", "embeddings")  # as wordllama and model2vec name the vectors
BLOCK = 8192  # texts between two reports of progress

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class StaticVectors:
    """A vector for each token.

    Attributes
    ----------
    table : float16 array of shape (n_tokens, size)
    tokenizer : str
        A ``tokenizer.json``.
    max_length : int
        Tokens of a text that are read.
    """

    kind: ClassVar[str] = "static"

    table: npt.NDArray[np.float16]
    tokenizer: str
    max_length: int

    @property
    def size(self) -> int:
        """Length of the vectors."""
        return int(self.table.shape[1])

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self.tokenizer, self.max_length, special=False)

    @cached_property
    def _floats(self) -> Floats:
        return self.table.astype(np.float32)

    def rows(self, texts: Sequence[str], device: str, progress: Progress = SILENT) -> Floats:
        """The means, (n_texts, size); 0 for a text without a token."""
        found = np.zeros((len(texts), self.size), dtype=np.float32)
        with progress.stage("word vectors", len(texts), "texts") as stage:
            for start in range(0, len(texts), BLOCK):
                block = texts[start : start + BLOCK]
                found[start : start + len(block)] = self._means(block)
                stage.advance(len(block))
        return found

    def _means(self, texts: Sequence[str]) -> Floats:
        tokens = self._reader.read(texts)
        ones = np.ones(len(tokens.ids), dtype=np.float32)
        shape = (len(texts), len(self.table))
        sums = sp.csr_matrix((ones, tokens.ids, tokens.ends), shape=shape) @ self._floats
        return np.asarray(sums / np.maximum(tokens.lengths, 1)[:, None], dtype=np.float32)

    def arrays(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """Under the names of a saved model."""
        text = np.frombuffer(self.tokenizer.encode(), dtype=np.uint8).copy()
        length = np.array([self.max_length], dtype=np.int64)
        return {
            f"{prefix}.table": self.table,
            f"{prefix}.tokenizer": text,
            f"{prefix}.max_length": length,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, prefix: str) -> StaticVectors:
        """The inverse of `arrays`."""
        table = arrays.halves(f"{prefix}.table", None, None)
        [length] = arrays.counts(f"{prefix}.max_length", 1).tolist()
        found = cls(table, arrays.text(f"{prefix}.tokenizer"), length)
        if found._reader.size > len(table):
            raise ModelFormatError(
                f"the tokenizer has {found._reader.size} tokens and the array {prefix}.table "
                f"{len(table)} vectors. The model is damaged; copy or train it again."
            )
        return found


def find_static(name: str, max_length: int) -> StaticVectors | None:
    """The static vectors in a folder, or those that an installed package carries.

    None where there are none: an encoder may go by the name.
    """
    files = _files_of(name)
    for path in (path for path in files if path.suffix == ".safetensors"):
        with path.open("rb") as file:
            arrays = map_tensors(file, path)
        table = next((arrays[each] for each in TABLES if each in arrays), None)
        if table is not None and len(arrays) == 1:
            return _opened(_halves(table, path), path, files, max_length)
    return None


def _halves(table: npt.NDArray[Any], path: Path) -> npt.NDArray[np.float16]:
    """The table as it is kept."""
    with np.errstate(over="ignore"):
        halves = np.array(table, dtype=np.float16)
    if not np.isfinite(halves).all():
        raise ParameterError(
            f"{path}: word vectors that are not all numbers up to {np.finfo(np.float16).max:.0f}. "
            "Get the vectors again."
        )
    return halves


def _opened(
    table: npt.NDArray[np.float16], path: Path, files: Iterable[Path], max_length: int
) -> StaticVectors:
    tokenizers = [each for each in files if each.suffix == ".json" and "tokenizer" in each.stem]
    for each in sorted(tokenizers, key=lambda path: path.name != "tokenizer.json"):
        try:
            found = StaticVectors(table, each.read_text("utf-8"), max_length)
            fits = table.ndim == 2 and found._reader.size <= len(table)
        except ImportError:
            raise
        except Exception:  # tokenizers raises nothing narrower for a file that is none
            continue
        if fits:
            return found
    raise ParameterError(
        f"{path}: expected a tokenizer.json beside these word vectors, with a token for each. "
        "Get the vectors again."
    )


def _files_of(name: str) -> list[Path]:
    if Path(name).is_dir():
        return sorted(path for path in Path(name).iterdir() if path.is_file())
    try:
        files = metadata.distribution(name).files or []
    except (metadata.PackageNotFoundError, ValueError):
        return []
    return [Path(str(file.locate())) for file in files if file.suffix in (".json", ".safetensors")]
