"""A text encoder fine-tuned together with a head over the labels.

`checkpoints` finds pretrained weights, `tokens` cuts texts, `encoder` is the network, `fit_deep`
trains it and `DeepHead` holds and applies what was learnt. transformers comes with
``pip install 'dxml[deep]'`` and is imported when a network is built.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dxml._deep.checkpoints import Pretrained, find_weights, open_pretrained
    from dxml._deep.head import DeepHead
    from dxml._deep.resuming import Keep
    from dxml._deep.settings import DeepSettings
    from dxml._deep.tokens import Reader, Tokens
    from dxml._deep.training import fit_deep

__all__ = [
    "DeepHead",
    "DeepSettings",
    "Keep",
    "Pretrained",
    "Reader",
    "Tokens",
    "find_weights",
    "fit_deep",
    "open_pretrained",
]

_HOMES = {
    "DeepHead": "head",
    "DeepSettings": "settings",
    "Keep": "resuming",
    "Pretrained": "checkpoints",
    "Reader": "tokens",
    "Tokens": "tokens",
    "find_weights": "checkpoints",
    "fit_deep": "training",
    "open_pretrained": "checkpoints",
}


def __getattr__(name: str) -> Any:
    """Import torch when something that needs it is first used."""
    if name in _HOMES:
        return getattr(import_module(f"dxml._deep.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'dxml._deep' has no attribute {name!r}")
