"""Texts → vectors by a model of the sentence-transformers package.

The model itself is not saved with a tagger, only its name and its vector of one fixed sentence. On
loading, that vector is compared to detect another model under the same name. Install the package
with ``pip install 'dxml[sentences]'``.

Opening a model runs no code that came with it: only modules of the package's own types are loaded,
weights only from safetensors, and nothing is trusted that would be fetched. A saved tagger may name
a folder only by its absolute path, since a relative one may lie in what was downloaded with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dxml.exceptions import ModelFormatError, ParameterError
from dxml.progress import SILENT, Progress

__all__ = ["SentenceModel"]

Floats = npt.NDArray[np.float32]
BATCH = 64  # texts encoded together
BLOCK = 1024  # texts between two reports of progress
_PROBE_TEXT = "The quick brown fox jumps over the lazy dog."
MIN_VERSION = 6
"""Of sentence-transformers: the first that asks before it runs a module of a foreign type."""
MAX_MODULES_BYTES = 1 << 20  # of modules.json
_OWN = re.compile(r"sentence_transformers(\.\w+)+")
_MIN_COSINE = 0.99  # between two vectors of the fixed sentence by one model, on any machines


class SentenceModel:
    """A sentence-transformers model, opened by name or folder.

    Attributes
    ----------
    name : str
    probe : float32 array of shape (width,)
        The model's vector of a fixed sentence.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._model = _open(name)
        self.probe = self._encode([_PROBE_TEXT])[0]

    @property
    def width(self) -> int:
        """Length of the vectors."""
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
        if Path(name).is_dir() and not Path(name).is_absolute():
            raise ModelFormatError(
                f"this was trained with a sentence model in the folder {name!r}, and a model may "
                "name folders only by where they are on the whole machine: this one may have come "
                "along with it. Open it from elsewhere if a name was meant, or train anew."
            )
        try:
            model = cls(name)
        except ParameterError as error:
            raise ModelFormatError(
                f"this was trained with a sentence model that is needed again: {error}"
            ) from error
        same = probe.shape == model.probe.shape and float(probe @ model.probe) >= _MIN_COSINE
        if not same:
            raise ModelFormatError(
                f"this was trained with another sentence model than {name!r} is now. "
                "Put the same model there again, or train anew."
            )
        return model


def _check_modules(folder: Path) -> None:
    """Refuse a folder whose modules are of types from elsewhere, or lie elsewhere."""
    path = folder / "modules.json"
    if not path.exists():  # a plain transformer, for which the package adds a pooling of its own
        return
    try:
        with path.open("rb") as file:
            modules = json.loads(file.read(MAX_MODULES_BYTES))
        kinds = [(module["type"], Path(module["path"])) for module in modules]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ParameterError(
            f"{path}: expected a list of modules, each with type and path ({error!r}). "
            "Get the sentence model again."
        ) from error
    for kind, place in kinds:
        if not isinstance(kind, str) or not _OWN.fullmatch(kind):
            raise ParameterError(
                f"{path}: the module type {kind!r} is not one of sentence-transformers itself, and "
                "opening it would run code that came with the model. Take another model."
            )
        if place.is_absolute() or ".." in place.parts:
            raise ParameterError(f"{path}: the module {str(place)!r} lies outside of the folder.")
        weights = folder / place / "pytorch_model.bin"
        if weights.exists() and not weights.with_name("model.safetensors").exists():
            raise ParameterError(
                f"{weights}: weights are only read from model.safetensors, as this format may hold "
                "code. Save the model again with a newer sentence-transformers."
            )


@lru_cache(maxsize=1)
def _open(name: str) -> Any:
    try:
        package = import_module("sentence_transformers")
    except ImportError:
        raise ParameterError(
            f"the sentence model {name!r} needs the package sentence-transformers. "
            "Install it with: pip install 'dxml[sentences]'."
        ) from None
    if int(str(package.__version__).partition(".")[0]) < MIN_VERSION:
        raise ParameterError(
            f"the sentence model {name!r} needs sentence-transformers {MIN_VERSION} or newer, "
            f"this is {package.__version__}: older ones run code that lies in a model's folder. "
            "Install it with: pip install --upgrade 'dxml[sentences]'."
        )
    is_folder = Path(name).is_dir()
    if is_folder:
        _check_modules(Path(name))
    try:
        return package.SentenceTransformer(
            name,
            trust_remote_code=False,
            local_files_only=is_folder,
            model_kwargs={"use_safetensors": True},
        )
    except Exception as error:  # whatever that package, its hub and its files come up with
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ParameterError(
            f"the sentence model {name!r} cannot be opened ({first}). "
            "Give the folder of a sentence-transformers model, or a name that can be downloaded."
        ) from error
