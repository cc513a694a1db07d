"""Texts in, label names out: the tagger, what it knows of texts and labels, its lessons."""

from dxml.tagging.tagger import Columns, TakenUp, TextTagger

__all__ = [
    "Columns",
    "TakenUp",
    "TextTagger",
]
