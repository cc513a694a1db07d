"""Tables of texts and labels from WordNet 3's data files: short texts, labels of a hierarchy.

A text is the words of a synset and its gloss. Its labels are the synsets right above it (about one
of 20,000 a text), or all that are above it (about eight). Test texts are a fifth, by a digest.

    python benchmarks/wordnet_texts.py FOLDER data.noun data.verb
    dxml train FOLDER/parents-train.jsonl --text text --labels labels --model m
    dxml evaluate FOLDER/parents-test.jsonl --model m
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from text_tables import TextTables

ABOVE = ("@", "@i")  # pointers to a hypernym: of a kind, of an instance


class Synset(NamedTuple):
    """A set of words with one meaning."""

    text: str
    above: tuple[str, ...]


def synsets(path: Path) -> Iterator[tuple[str, Synset]]:
    """The synsets of a data file by part of speech and offset, such as n00001740."""
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("  "):  # the licence
            continue
        fields, _, gloss = line.partition("|")
        offset, _, kind, n_words, *rest = fields.split()
        words, (n_pointers, *after) = rest[: 2 * int(n_words, 16) : 2], rest[2 * int(n_words, 16) :]
        pointers = [after[4 * i : 4 * i + 3] for i in range(int(n_pointers))]
        above = [part + target for symbol, target, part in pointers if symbol in ABOVE]
        text = f"{' '.join(word.replace('_', ' ') for word in words)}: {gloss.strip()}"
        yield kind + offset, Synset(text, tuple(above))


def all_above(name: str, known: dict[str, Synset]) -> set[str]:
    """The synsets on all ways up."""
    found: set[str] = set()
    waiting = list(known[name].above)
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += known[each].above
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the tables go")
    parser.add_argument("files", type=Path, nargs="+", metavar="data.noun")
    given = parser.parse_args()
    known = {name: synset for path in given.files for name, synset in synsets(path)}
    tables = TextTables()
    for name, synset in known.items():
        tables.add("parents", name, synset.text, synset.above, name)
        tables.add("above", name, synset.text, all_above(name, known), name)
    tables.write(given.folder)


if __name__ == "__main__":
    main()
