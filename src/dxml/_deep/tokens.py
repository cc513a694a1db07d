"""Texts → token ids, kept one text after the other, and the words they came from."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dxml._core.arrays import HELP
from dxml.exceptions import ModelFormatError, ParameterError
from dxml.progress import SILENT, Progress

__all__ = ["Reader", "Tokens", "Word"]

Ids = npt.NDArray[np.int32]
BLOCK = 4096  # texts cut between two words to the progress


@dataclass(frozen=True, eq=False)
class Tokens:
    """The token ids of n texts.

    Attributes
    ----------
    ids : int32 (n_tokens,)
    ends : int64 (n + 1,)
        Text i is ``ids[ends[i]:ends[i + 1]]``, for an encoder one token or more.
    """

    ids: Ids
    ends: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends) - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each text."""
        return np.diff(self.ends)

    def take(self, rows: npt.NDArray[Any]) -> Tokens:
        """Some of the texts, in the order asked for."""
        rows = np.asarray(rows, dtype=np.int64)
        lengths = self.lengths[rows]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        place = np.arange(ends[-1]) + np.repeat(self.ends[rows] - ends[:-1], lengths)
        return Tokens(self.ids[place], ends)

    @staticmethod
    def of(rows: Sequence[Sequence[int]]) -> Tokens:
        """From a list of ids for each text."""
        ends = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
        ids = np.fromiter((id for row in rows for id in row), dtype=np.int32, count=int(ends[-1]))
        return Tokens(ids, ends)

    @staticmethod
    def concatenate(parts: Sequence[Tokens]) -> Tokens:
        """The texts of several, one after the other."""
        lengths = np.concatenate([part.lengths for part in parts])
        ids = np.concatenate([part.ids for part in parts])
        return Tokens(ids, np.concatenate([[0], np.cumsum(lengths)]))


@dataclass(frozen=True)
class Word:
    """A word of a text: its characters ``text[start:stop]`` and the places of its tokens."""

    start: int
    stop: int
    places: tuple[int, ...]


class Reader:
    """Cuts texts as an encoder was taught to.

    Parameters
    ----------
    tokenizer : str
        A ``tokenizer.json`` of the package tokenizers.
    max_length : int
        Tokens of a text that are kept, the encoder's special ones included.
    special : bool
        Whether a text gets the encoder's special tokens.
    """

    def __init__(self, tokenizer: str, max_length: int, *, special: bool = True) -> None:
        from tokenizers import Tokenizer

        if max_length < 4:
            raise ParameterError(f"max_length must be 4 tokens or more, got {max_length}.")
        self.max_length, self._special = max_length, special
        try:
            self._tokenizer: Any = Tokenizer.from_str(tokenizer)
        except Exception as error:  # the package has no other
            raise ModelFormatError(
                f"the tokenizer of the texts' tokens is damaged ({error}). {HELP}"
            ) from error
        padding = self._tokenizer.padding
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length)
        self.pad = int(padding["pad_id"]) if padding else self._pad_by_name()

    @property
    def size(self) -> int:
        """Token ids that there are."""
        return int(self._tokenizer.get_vocab_size())

    def to_str(self) -> str:
        """The tokenizer as text; with `max_length` it gives the same reader again."""
        return str(self._tokenizer.to_str())

    def read(self, texts: Sequence[str], progress: Progress = SILENT) -> Tokens:
        """The token ids of texts, in which an é is one character.

        A text without any gets one that stands for nothing, where there are special tokens.
        """
        nothing = [self.pad] if self._special else []
        parts = [Tokens(np.empty(0, np.int32), np.zeros(1, np.int64))]
        with progress.stage("cut texts", len(texts), "texts") as stage:
            for start in range(0, len(texts), BLOCK):
                block = [_normal(text) for text in texts[start : start + BLOCK]]
                found = self._tokenizer.encode_batch_fast(block, add_special_tokens=self._special)
                parts.append(Tokens.of([each.ids or nothing for each in found]))
                stage.advance(len(block))
        return Tokens.concatenate(parts)

    def words(self, text: str) -> tuple[Tokens, list[Word]]:
        """The tokens of one text, and its words with the places of their tokens."""
        found = self._tokenizer.encode(text)
        places: dict[int, list[int]] = {}
        for place, word in enumerate(found.word_ids):
            if word is not None:
                places.setdefault(word, []).append(place)
        words = [
            Word(
                min(found.offsets[place][0] for place in each),
                max(found.offsets[place][1] for place in each),
                tuple(each),
            )
            for each in places.values()
        ]
        return Tokens.of([found.ids or [self.pad]]), words

    def _pad_by_name(self) -> int:
        for name in ("[PAD]", "<pad>", "<|padding|>"):
            if (id := self._tokenizer.token_to_id(name)) is not None:
                return int(id)
        return 0


def _normal(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)
