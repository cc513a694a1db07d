"""Texts in, label names out: the tagger, what it knows of texts and labels, its lessons."""

from dxml.tagging.tagger import AppliedLessons, Columns, TextTagger
from dxml.tagging.tags import Explanation, Neighbour, Tag, Tags

__all__ = [
    "AppliedLessons",
    "Columns",
    "Explanation",
    "Neighbour",
    "Tag",
    "Tags",
    "TextTagger",
]
