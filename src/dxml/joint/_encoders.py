"""The text encoder that a joint model is to fine-tune: found, opened, its cost on a CPU told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import scipy.sparse as sp

from dxml._deep.settings import DeepSettings
from dxml._deep.texts import Texts
from dxml._deep.tokens import Tokens
from dxml.exceptions import DataFormatError, ParameterError, advise
from dxml.joint._sizes import LONG_TEXTS
from dxml.joint.parts.protocol import Options
from dxml.progress import Progress

__all__ = ["encoder_folder", "open_encoder"]


class Asked(Protocol):
    """The parameters of `Joint` that say which encoder it is."""

    encoder: str
    encoder_epochs: int | None
    encoder_minutes: float
    max_tokens: int | None


def open_encoder(
    asked: Asked,
    options: Options,
    texts: Sequence[str] | Texts,
    label_texts: Sequence[str] | None,
    Y: sp.csr_matrix,
    progress: Progress,
) -> tuple[Options, Tokens | None, Tokens | None]:
    """Options with the encoder, and texts and labels' texts as it reads them.

    Options stay as they are, and there are no texts, where there is no encoder.
    """
    folder = encoder_folder(asked.encoder, options.device)
    if folder is None or (isinstance(texts, Texts) and texts.tokens is None):
        return options, None, None
    from dxml._deep.checkpoints import open_pretrained

    if label_texts is not None and len(label_texts) != Y.shape[1]:
        raise DataFormatError(
            f"expected a text for each of {Y.shape[1]} labels, got {len(label_texts)}."
        )
    usual = 128 if Y.shape[0] > LONG_TEXTS else 256
    encoder = open_pretrained(folder, asked.max_tokens or usual)
    kept = texts.tokens if isinstance(texts, Texts) else encoder.reader.read(texts, progress)
    assert kept is not None
    options = replace(options, encoder=encoder)
    if options.device == "cpu":
        _check_cost(asked, options, kept, Y)
    return options, kept, None if label_texts is None else encoder.reader.read(label_texts)


def encoder_folder(encoder: str, device: str) -> Path | None:
    """Where the weights of an encoder are; None where there is to be none."""
    if encoder == "none" or (encoder == "auto" and device == "cpu"):
        return None
    from dxml._deep.checkpoints import find_weights

    return find_weights(encoder, gpu=device != "cpu")


def _check_cost(asked: Asked, options: Options, texts: Tokens, Y: sp.csr_matrix) -> None:
    """Refuse what would take a CPU longer than it may."""
    import torch

    from dxml._deep.cost import reading_seconds, training_seconds

    assert options.encoder is not None
    settings, cpu = DeepSettings(epochs=asked.encoder_epochs), torch.device("cpu")
    seconds = training_seconds(texts, Y, settings, options.encoder, cpu)
    if seconds > 60 * asked.encoder_minutes:
        reading = reading_seconds(texts, options.encoder, cpu)
        without = advise("encoder='none'", "--encoder none")
        frozen = advise(
            f"encoder='none', vectors={asked.encoder!r}",
            f"--encoder none --vectors {asked.encoder}",
        )
        static = advise("vectors='wordllama'", "--vectors wordllama")
        raise ParameterError(
            f"fine-tuning the encoder {asked.encoder!r} on this CPU would take about "
            f"{_in_words(seconds)}, and encoder_minutes allows {asked.encoder_minutes:g}. "
            f"Train on a GPU, allow more minutes, leave it out ({without}), use it frozen, as "
            f"features, in about {_in_words(reading)} ({frozen}), or use static word vectors, in "
            f"seconds ({without} with {static}, after pip install 'dxml[vectors]')."
        )


def _in_words(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
