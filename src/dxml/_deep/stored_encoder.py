"""A trained encoder as it is kept: weights in 16 bits, its shape and its tokenizer as text.

The network is built when it is first used, so that a model opens at once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dxml._core.arrays import Arrays, mapping, whole
from dxml._deep.checkpoints import build
from dxml._deep.encoder import TextEncoder
from dxml._deep.precision import Precision, quicker
from dxml._deep.tokens import Reader
from dxml.exceptions import ModelFormatError

__all__ = ["StoredEncoder"]

Named = dict[str, npt.NDArray[Any]]


@dataclass(eq=False)
class StoredEncoder:
    """Everything from which an encoder is built again without any fetch.

    Attributes
    ----------
    config : dict
        The transformer's shape, as transformers describes it.
    tokenizer : str
        A ``tokenizer.json``.
    max_length : int
        Tokens of a text that are read.
    weights : dict of float16 arrays
        By the names of `TextEncoder`.
    """

    config: dict[str, Any]
    tokenizer: str
    max_length: int
    weights: Named
    _placed: dict[tuple[str, str], TextEncoder] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, encoder: TextEncoder, config: dict[str, Any], reader: Reader) -> StoredEncoder:
        """Round a trained encoder to 16 bits."""
        weights = {
            name: value.detach().cpu().half().numpy()
            for name, value in encoder.state_dict().items()
        }
        return cls(config, reader.to_str(), reader.max_length, weights)

    @cached_property
    def reader(self) -> Reader:
        """What cuts texts for it."""
        return Reader(self.tokenizer, self.max_length)

    @property
    def width(self) -> int:
        """Of the hidden vectors."""
        return int(self.weights["widen.weight"].shape[0])

    def copy(self, dropout: float) -> TextEncoder:
        """A network with these weights in float32, on the CPU."""
        self._check_shapes()
        with torch.random.fork_rng(devices=[]):
            encoder = TextEncoder(build(self.config), self.width, dropout)
        encoder.load_state_dict(
            {name: torch.from_numpy(np.array(array)) for name, array in self.weights.items()}
        )
        return encoder

    def _check_shapes(self) -> None:
        """Compare the shapes that the config asks for with those stored, before memory is taken."""
        try:
            with torch.device("meta"):
                asked = build(self.config).state_dict()
        except Exception as error:  # transformers raises many types
            raise ModelFormatError(f"the encoder's config is damaged ({error!r:.200}).") from error
        stored = {name: array.shape for name, array in self.weights.items()}
        for name, tensor in asked.items():
            if stored.get(f"transformer.{name}") != tuple(tensor.shape):
                raise ModelFormatError(
                    f"the encoder's weights {name!r} are damaged: expected the shape "
                    f"{tuple(tensor.shape)}, got {stored.get(f'transformer.{name}')}."
                )

    def on(self, device: torch.device, precision: Precision = "float32") -> TextEncoder:
        """The network on a device, ready to be applied; built once."""
        key = str(device), precision
        if key not in self._placed:
            encoder = quicker(self.copy(0.0).eval(), precision)
            self._placed[key] = encoder.requires_grad_(False).to(device)
        return self._placed[key]

    def arrays(self, prefix: str) -> Named:
        """Under the names of a saved model."""
        described = json.dumps({"transformer": self.config, "max_length": self.max_length})
        texts = {"config": described, "tokenizer": self.tokenizer}
        stored: Named = {
            f"{prefix}.{name}": np.frombuffer(text.encode(), dtype=np.uint8).copy()
            for name, text in texts.items()
        }
        return stored | {f"{prefix}.encoder.{name}": each for name, each in self.weights.items()}

    @classmethod
    def from_arrays(cls, arrays: Arrays, prefix: str) -> StoredEncoder:
        """The inverse of `arrays`."""
        described = json.loads(arrays.text(f"{prefix}.config"))
        weights = arrays.under(f"{prefix}.encoder.")
        if weights.get("widen.weight", np.empty(0)).ndim != 2:
            raise ValueError("the encoder has no wide layer")
        max_length = whole(described, "max_length", 4)
        tokenizer = arrays.text(f"{prefix}.tokenizer")
        return cls(mapping(described, "transformer"), tokenizer, max_length, weights)
