"""Two small taggers of the same texts, and what is found where one is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dxml._core.storage import CONFIG

TEXTS = [
    f"{a} {b} in the {c}"
    for a in ("fish", "salt", "soup")
    for b in ("boils", "swims", "waits")
    for c in ("sea", "pot", "shop", "sun")
]
LESSON = ["a whale sings in the sea", "a whale waits"]


def labels_of(number: int) -> list[list[str]]:
    words = [text.split() for text in TEXTS]
    return [[word[0], word[-1]] if number else [word[-1]] for word in words]


def make_tagger(number: int) -> Any:
    from dxml.tagging._tagger import Columns, TextTagger

    ids = [f"t{at}" for at in range(len(TEXTS))]
    tagger = TextTagger(min_df=1, width=0).fit(TEXTS, labels_of(number), ids=ids)
    tagger.columns = Columns(("text",), "labels", "id")
    return tagger


def ranked(folder: Path) -> dict[str, Any]:
    """What a tagger answers, in full; nothing where there is no model."""
    from dxml.tagging._tagger import TextTagger

    if not (folder / "model" / CONFIG).exists():
        return {}
    tagger = TextTagger.load(folder / "model")
    found = repr(tagger.tag([*TEXTS[::7], LESSON[0]], top=4))
    return {"model": [sorted(tagger.ids_), found], "ids": sorted(tagger.ids_)}


def one_tagger(folder: Path) -> None:
    make_tagger(0).save(folder / "model")


def two_taggers(folder: Path) -> None:
    one_tagger(folder)
    make_tagger(1).save(folder / "other")
