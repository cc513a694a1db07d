"""The tagger in a model's folder, for commands that need one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dxml.exceptions import ModelFormatError

if TYPE_CHECKING:
    from dxml.tagging._tagger import TextTagger

__all__ = ["check_tagger", "load_tagger"]


def load_tagger(folder: Path) -> TextTagger:
    """The tagger in a folder; a model of features is an error that says how to make a tagger."""
    from dxml.tagging._tagger import TextTagger

    check_tagger(folder)
    return TextTagger.load(folder)


def check_tagger(folder: Path) -> None:
    """Refuse a folder without a tagger."""
    from dxml.methods import TAGGER, saved_method

    if (method := saved_method(folder)) != TAGGER:
        raise ModelFormatError(
            f"{folder}: holds a model of method {method!r}, which takes features, not texts. "
            "A tagger is needed here, which dxml train --text makes."
        )
