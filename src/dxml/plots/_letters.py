"""Find fonts for letters that the default font lacks, or escape the letters."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module

__all__ = ["escaped", "fonts_for", "no_talk_of_fonts"]

PLACEHOLDER_FONT = "Last Resort"  # draws a box for every letter


def fonts_for(texts: Iterable[str]) -> tuple[list[str], frozenset[str]]:
    """Fonts that have the letters of these texts, the default first, and letters that none has."""
    manager = import_module("matplotlib.font_manager")
    usual = manager.FontProperties().get_name()
    families, missing = [usual], frozenset().union(*texts) - _letters(usual) - {"\n"}
    for family in sorted({font.name for font in manager.fontManager.ttflist}):
        if not missing:
            break
        if not family.startswith(PLACEHOLDER_FONT) and missing & _letters(family):
            families.append(family)
            missing -= _letters(family)
    return families, missing


@cache
def _letters(family: str) -> frozenset[str]:
    """The letters that an installed font has in its upright style in all weights."""
    fonts = import_module("matplotlib.font_manager").fontManager.ttflist
    read = import_module("matplotlib.ft2font").FT2Font
    upright = [font.fname for font in fonts if font.name == family and font.style == "normal"]
    letters = [frozenset(map(chr, read(file).get_charmap())) for file in upright]
    return frozenset.intersection(*letters) if letters else frozenset()


def escaped(text: str, missing: frozenset[str]) -> str:
    r"""The text with missing letters replaced by their code points.

    >>> escaped("fish 鱼", frozenset("鱼"))
    'fish \\u9c7c'
    """
    return "".join(
        letter.encode("ascii", "backslashreplace").decode() if letter in missing else letter
        for letter in text
    )


@contextmanager
def no_talk_of_fonts() -> Iterator[None]:
    """Within this context matplotlib does not warn about fonts without bold letters."""
    log = logging.getLogger("matplotlib.font_manager")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
