"""Texts in, label names out: the tagger, what it knows of texts and labels, its lessons."""

from dxml.tagging.tagger import Columns, TakenUp, TextTagger
from dxml.tagging.tags import Explanation, Neighbour, Tag

__all__ = [
    "Columns",
    "Explanation",
    "Neighbour",
    "Tag",
    "TakenUp",
    "TextTagger",
]
