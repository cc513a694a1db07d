"""The table of methods: a name on the command line, and the class behind it.

Classes are imported when asked for, so that ``dxml --help`` stays instant.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from dxml._core.storage import read_config, read_folder
from dxml.exceptions import ModelFormatError, ParameterError, did_you_mean

if TYPE_CHECKING:
    from dxml.base import Classifier

__all__ = ["METHODS", "TAGGER", "load_model", "method_class", "saved_method"]

METHODS: dict[str, str] = {
    "joint": "dxml.joint:Joint",
    "dxml": "dxml.paper:DXML",
    "sleec": "dxml.baselines.sleec:SLEEC",
    "leml": "dxml.baselines.leml:LEML",
    "wsabie": "dxml.baselines.wsabie:WSABIE",
    "cplst": "dxml.baselines.cplst:CPLST",
    "cs": "dxml.baselines.cs:CompressedSensing",
    "ml-cssp": "dxml.baselines.ml_cssp:MLCSSP",
    "fastxml": "dxml.baselines.fastxml:FastXML",
    "lpsr": "dxml.baselines.lpsr:LPSR",
    "one-vs-all": "dxml.baselines.one_vs_all:OneVsAll",
    "knn": "dxml.baselines.knn:KNN",
}
"""Method name → ``module:Class``."""

TAGGER = "tagger"
"""What the folder of a `dxml.tagging._tagger.TextTagger` calls its method; it takes texts, not
features."""


def method_class(name: str) -> type[Classifier]:
    """The estimator class of a method."""
    if name not in METHODS:
        raise ParameterError(f"unknown method {name!r}{did_you_mean(name, METHODS)}")
    module, _, attribute = METHODS[name].partition(":")
    cls: type[Classifier] = getattr(import_module(module), attribute)
    return cls


def load_model(folder: str | Path) -> Classifier:
    """Open a saved model of any method."""
    config, arrays = read_folder(folder)
    method = config.get("method")
    if method == TAGGER:
        raise ModelFormatError(
            f"{folder}: holds a tagger of texts. Open it with dxml.TextTagger.load."
        )
    if not isinstance(method, str) or method not in METHODS:
        raise ModelFormatError(
            f"{folder}: holds a model of the unknown method {method!r}. "
            "It may come from a newer dxml; upgrade, or train again."
        )
    model = method_class(method)._unpacked(folder, config, arrays)
    arrays.accept()
    return model


def saved_method(folder: str | Path) -> str:
    """The method of a saved model: a name of `METHODS`, or `TAGGER`."""
    return str(read_config(folder).get("method"))
