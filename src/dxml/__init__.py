"""dxml: rank the few right labels of a point out of thousands.

>>> import dxml
>>> data = dxml.make_planted(300, 200, 10, random_state=0)
>>> model = dxml.Joint().fit(data.X, data.Y)
>>> ranking = model.predict_topk(data.X[:3], k=2)
>>> ranking.indices.shape
(3, 2)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dxml._core.memory import limit_memory
    from dxml.base import Classifier
    from dxml.data import Dataset, load_dataset, make_planted
    from dxml.exceptions import DxmlError
    from dxml.joint import Joint
    from dxml.methods import METHODS, load_model
    from dxml.metrics import evaluate
    from dxml.paper import DXML
    from dxml.tagging import TextTagger
    from dxml.topk import TopK

__version__ = "0.1.0"

__all__ = [
    "DXML",
    "METHODS",
    "Classifier",
    "Dataset",
    "DxmlError",
    "Joint",
    "TextTagger",
    "TopK",
    "evaluate",
    "limit_memory",
    "load_dataset",
    "load_model",
    "make_planted",
]

_HOMES = {
    "DXML": "dxml.paper",
    "METHODS": "dxml.methods",
    "Classifier": "dxml.base",
    "Dataset": "dxml.data",
    "DxmlError": "dxml.exceptions",
    "Joint": "dxml.joint",
    "TextTagger": "dxml.tagging",
    "TopK": "dxml.topk",
    "evaluate": "dxml.metrics",
    "limit_memory": "dxml._core.memory",
    "load_dataset": "dxml.data",
    "load_model": "dxml.methods",
    "make_planted": "dxml.data",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``import dxml`` itself takes no time."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dxml' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
