"""Texts in, label names out: the tagger, what it knows of texts and labels, its lessons."""

from dxml.tagging._tagger import AppliedLessons, Columns, TextTagger
from dxml.tagging._tags import Explanation, Neighbour, Tag, Tags
from dxml.tagging._thesaurus import LabelInfo, Thesaurus
from dxml.tagging._vocabulary import read_thesaurus

__all__ = [
    "AppliedLessons",
    "Columns",
    "Explanation",
    "LabelInfo",
    "Neighbour",
    "Tag",
    "Tags",
    "TextTagger",
    "Thesaurus",
    "read_thesaurus",
]
