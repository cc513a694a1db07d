"""Texts in, label names out: the tagger, what it knows of texts and labels, its lessons."""

from dxml.tagging._tagger import AppliedLessons, Columns, TextTagger
from dxml.tagging._tags import Explanation, Neighbour, Tag, Tags

__all__ = [
    "AppliedLessons",
    "Columns",
    "Explanation",
    "Neighbour",
    "Tag",
    "Tags",
    "TextTagger",
]
