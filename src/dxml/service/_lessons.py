"""Entries of a journal → the model that has learnt them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from dxml.service._served import Served, ServedTagger
from dxml.tagging._journal import Entry

__all__ = ["apply", "changed", "steps"]

MERGED = 1000  # most texts of successive lessons that are learnt together

_log = logging.getLogger(__name__)


def steps(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Groups of entries to apply at once: successive lessons together, others alone."""
    step: list[Entry] = []
    size = 0
    for entry in entries:
        texts = len(entry.content["texts"]) if entry.action == "learn" else MERGED
        if step and size + texts > MERGED:
            yield step
            step, size = [], 0
        step.append(entry)
        size += texts
    if step:
        yield step


def apply(served: Served, step: Sequence[Entry]) -> Served:
    """The model with these entries applied; one that cannot be applied is logged and left out."""
    if not isinstance(served, ServedTagger):
        return served
    try:
        return changed(served, step)
    except Exception:  # whatever is wrong with a lesson must not stop the service
        if len(step) > 1:
            for entry in step:
                served = apply(served, [entry])
            return served
        _log.exception("entry %d of the journal was left out", step[0].number)
        return served


def changed(served: ServedTagger, step: Sequence[Entry]) -> ServedTagger:
    """The model after these entries.

    Two processes may both have forgotten a text, or another model may have come that never had it.
    """
    if step[0].action == "reload":
        return served
    if step[0].action == "forget":
        id = step[0].content["id"]
        return served.forgotten(id) if served.knows(id) else served
    if step[0].action == "unlabel":
        id, name = step[0].content["id"], step[0].content["label"]
        known = served.knows(id) and name in served.labels_of(id)
        return served.unlabelled(id, name) if known else served
    if step[0].action == "relabel":
        content = step[0].content
        return served.relabelled_again(content["how"], content["labels"], content["into"])
    lessons: dict[str, tuple[str, list[str]]] = {}
    for entry in step:
        content = entry.content
        rows = zip(content["texts"], content["labels"], strict=True)
        lessons |= dict(zip(content["ids"], rows, strict=True))  # the last text with an id counts
    texts, labels = zip(*lessons.values(), strict=True)
    return served.learnt(texts, labels, list(lessons))
