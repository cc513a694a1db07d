"""Which words moved a label: what is lost where a word is left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dxml._deep.applying import hidden_of
from dxml._deep.encoder import TextEncoder
from dxml._deep.tokens import Reader, Tokens, Word

__all__ = ["WordEffect", "word_effects"]


@dataclass(frozen=True, eq=False)
class WordEffect:
    """A word and what it does.

    Attributes
    ----------
    word : str
        As it first stands in the text.
    spans : tuple of (start, stop)
        Everywhere it stands.
    effects : float32 (n_labels,)
        How much lower each label's logit is without the word.
    """

    word: str
    spans: tuple[tuple[int, int], ...]
    effects: npt.NDArray[np.float32]


def word_effects(
    encoder: TextEncoder, reader: Reader, text: str, weight: Tensor, device: torch.device
) -> list[WordEffect]:
    """Effects of every word of a text, those with the largest first.

    A word that stands in several places is left out of all of them at once.

    Parameters
    ----------
    weight : (n_labels, width)
        The head's rows of the labels asked about, on the device.
    """
    tokens, words = reader.words(text)
    groups: dict[str, list[Word]] = {}
    for word in words:
        groups.setdefault(text[word.start : word.stop].casefold(), []).append(word)
    ids = tokens.ids.tolist()
    without = []
    for group in groups.values():
        gone = {place for word in group for place in word.places}
        without.append([id for i, id in enumerate(ids) if i not in gone] or [reader.pad])
    hidden = hidden_of(encoder, Tokens.of([ids, *without]), reader.pad, device)
    logits = (hidden @ weight.T).cpu().numpy()  # the bias is the same in all rows
    found = [
        WordEffect(
            text[group[0].start : group[0].stop],
            tuple((word.start, word.stop) for word in group),
            logits[0] - logits[i],
        )
        for i, group in enumerate(groups.values(), start=1)
    ]
    return sorted(found, key=lambda each: -float(np.abs(each.effects).max(initial=0)))
