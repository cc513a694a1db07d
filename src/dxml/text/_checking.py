"""What is odd about a table of texts, before a model is trained on it.

>>> columns = {"text": ["Fish", "fish!", "Soup", ""], "labels": ["a", "b", "b", "c"]}
>>> table = read_table(columns, "text", "labels")
>>> for line in check_table(table).lines():
...     print(line)
4 rows, 3 labels, 1 a text
1 row has no text
1 text repeats another, 1 of them with other labels
2 labels are carried by a single text
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from dxml._core.counted import counted
from dxml.progress import SILENT, Progress
from dxml.text._features import need_ngrams
from dxml.text._languages import UNKNOWN, count_languages
from dxml.text._near_duplicates import near_duplicates
from dxml.text._tables import TextTable, read_table
from dxml.text._unspaced import share_unspaced

__all__ = ["Overlap", "Separator", "TableCheck", "check_table", "likely_separator", "read_table"]

MARKS = (",", ";", "|", "/", "\t", "+", " - ")
"""What may stand between labels that were taken for one."""

URI_MARKS = (",", ";", "|", "\t", " ")
"""The same where labels are URIs."""

LEAST_SHARE = 0.1  # of the rows that must have a mark in a label
LEAST_SAVED = 0.25  # of the labels that must be gone once they are split there, or else
LEAST_OFTENER = 2.0  # times as many texts a label must have then, where lists differ in length
ONE_LENGTH = 0.9  # share of the rows above which all count as equally long
SHOWN = 5  # rows or labels that are named
MOST_TEXTS = 200_000  # that are compared for being nearly the same
MIXED = 0.05  # share of another language that is told
LONELY = 0.05  # share of texts without a shared word from which on it is told,
LEAST_LONELY = 10  # and their number
SAMPLE = 1_000  # texts that tell whether words stand between spaces
_WORD = re.compile(r"\w+")
_URI = re.compile("<?(https?://|urn:)")


def _about(number: float) -> str:
    """Two digits, without an exponent.

    >>> [_about(number) for number in (1.234, 46.2, 3012.7)]
    ['1.2', '46', '3,013']
    """
    return f"{number:.2g}" if number < 10 else f"{number:,.0f}"


@dataclass(frozen=True)
class Separator:
    """A mark that seems to stand between labels: how many there are, and would be.

    `texts` and `split_texts` are those that a label has on average.
    """

    mark: str
    share: float
    labels: int
    split_labels: int
    texts: float
    split_texts: float

    def __str__(self) -> str:
        mark = repr(self.mark)
        return (
            f"labels hold {mark} in {100 * self.share:.0f} % of the rows: --label-separator {mark} "
            f"would make {self.split_labels:,} labels of {self.labels:,}, "
            f"each of {_about(self.split_texts)} texts, not {_about(self.texts)}"
        )


@dataclass(frozen=True)
class Overlap:
    """What a table of test texts shares with that of the training texts."""

    rows: int
    same: int
    nearly: int
    labels: int
    unknown_labels: int

    def lines(self, name: str) -> Iterator[str]:
        """In words."""
        yield f"{name}: {counted(self.rows, 'row')}, {counted(self.labels, 'label')}"
        if self.same or self.nearly:
            told = f"{counted(self.same, 'text')} of {name} {_is(self.same)} a training text too"
            yield told + (f", {self.nearly:,} more nearly" if self.nearly else "")
        if self.unknown_labels:
            has = "has" if self.unknown_labels == 1 else "have"
            yield f"{counted(self.unknown_labels, 'label')} of {name} {has} no training text"


@dataclass(frozen=True)
class TableCheck:
    """What was found in a table.

    Attributes
    ----------
    rows, skipped : int
        Rows that were read, and bad rows.
    no_text, no_labels : tuple of int
        Their places among the rows, from 0.
    repeated : tuple of int
        Texts that stand before already, by their words.
    other_labels : int
        Those of them that carry other labels than the first.
    nearly : tuple of int
        Texts that are nearly the same as an earlier one, beside those; None: not looked for.
    lonely : tuple of int
        Texts without a word that another text has; none where words are not told by spaces.
    label_counts : dict of str to int
        Texts of each label, most frequent first.
    labels_a_text, words_a_text : tuple of int
        Of each row.
    separator : Separator or None
    languages : dict of str to float
    names : sequence
        What the rows are called.
    overlap : Overlap or None
        With a table of test texts.
    """

    rows: int
    skipped: int
    no_text: tuple[int, ...]
    no_labels: tuple[int, ...]
    repeated: tuple[int, ...]
    other_labels: int
    nearly: tuple[int, ...] | None
    lonely: tuple[int, ...]
    label_counts: Mapping[str, int]
    labels_a_text: tuple[int, ...]
    words_a_text: tuple[int, ...]
    separator: Separator | None
    languages: Mapping[str, float]
    names: Sequence[int | str] = field(repr=False, default=())
    overlap: Overlap | None = None

    @property
    def once(self) -> int:
        """Labels that a single text carries."""
        return sum(n == 1 for n in self.label_counts.values())

    def lines(self, test: str = "test", *, named: bool = False) -> Iterator[str]:
        """What was found, in words; `named` names rows and tells also what is as it should be."""
        carried = [n for n in self.labels_a_text if n]
        mean = f", {sum(carried) / len(carried):.2g} a text" if carried else ""
        yield f"{counted(self.rows, 'row')}, {counted(len(self.label_counts), 'label')}{mean}"
        if self.skipped:
            yield f"{counted(self.skipped, 'bad row')} left out"
        yield from self._empty(named)
        if self.repeated:
            n = len(self.repeated)
            told = f"{counted(n, 'text')} repeat{'s' if n == 1 else ''} another"
            told += f", {self.other_labels:,} of them with other labels" * bool(self.other_labels)
            yield told + self._which(self.repeated, named)
        if self.nearly:
            n = len(self.nearly)
            told = f"{counted(n, 'text')} {_is(n)} nearly the same as another"
            yield told + self._which(self.nearly, named)
        yield from self._alone(named)
        if self.separator is not None:
            yield str(self.separator)
        if self.once:
            are = "is" if self.once == 1 else "are"
            yield f"{counted(self.once, 'label')} {are} carried by a single text"
        if sum(share for name, share in self.languages.items() if name != UNKNOWN) > 0:
            main, *others = [name for name in self.languages if name != UNKNOWN]
            mixed = [name for name in others if self.languages[name] >= MIXED]
            if mixed or named:
                shown = ", ".join(
                    f"{name} {100 * self.languages[name]:.0f} %" for name in (main, *mixed)
                )
                rest = self.languages.get(UNKNOWN, 0.0)
                untold = f", not told {100 * rest:.0f} %" if rest >= MIXED else ""
                yield f"languages: {shown}{untold}"
        if named and self.words_a_text:
            low, high = min(self.words_a_text), max(self.words_a_text)
            middle = median(self.words_a_text)
            yield f"words a text: {middle:g} in the middle, from {low:,} to {high:,}"
        if self.overlap is not None:
            yield from self.overlap.lines(test)

    def warnings(self) -> Iterator[str]:
        """What likely asks for something: rows without text, labels or a word, labels to split."""
        yield from self._empty(False)
        yield from self._alone(False)
        if self.separator is not None:
            yield str(self.separator)

    def _empty(self, named: bool) -> Iterator[str]:
        for places, what in ((self.no_text, "no text"), (self.no_labels, "no labels")):
            if places:
                has = "has" if len(places) == 1 else "have"
                yield f"{counted(len(places), 'row')} {has} {what}{self._which(places, named)}"

    def _alone(self, named: bool) -> Iterator[str]:
        n = len(self.lonely)
        if n >= max(LEAST_LONELY, LONELY * self.rows):
            so = (
                "parts of words count too, unless char_ngrams says otherwise"
                if need_ngrams(n, self.rows)
                else "where words share parts, train with --set char_ngrams=4"
            )
            told = f"{n:,} texts have no word that another text has: {so}"
            yield told + self._which(self.lonely, named)

    def _which(self, places: Sequence[int], named: bool) -> str:
        if not named:
            return ""
        shown = ", ".join(str(self.names[place]) for place in places[:SHOWN])
        return f": {shown}{', …' if len(places) > SHOWN else ''}"

    def numbers(self) -> dict[str, Any]:
        """All that was found, ready for JSON."""
        separator, overlap = self.separator, self.overlap
        return {
            "rows": self.rows,
            "skipped": self.skipped,
            "no_text": [self.names[place] for place in self.no_text],
            "no_labels": [self.names[place] for place in self.no_labels],
            "repeated": [self.names[place] for place in self.repeated],
            "repeated_with_other_labels": self.other_labels,
            "nearly_repeated": [self.names[place] for place in self.nearly or ()],
            "without_shared_words": [self.names[place] for place in self.lonely],
            "labels": len(self.label_counts),
            "labels_of_one_text": self.once,
            "label_counts": dict(self.label_counts),
            "separator": None if separator is None else vars(separator),
            "languages": {name: round(share, 4) for name, share in self.languages.items()},
            "overlap": None if overlap is None else vars(overlap),
        }


def check_table(
    table: TextTable,
    test: TextTable | None = None,
    *,
    near: bool = True,
    progress: Progress = SILENT,
) -> TableCheck:
    """Look for what is odd about a table of texts and labels.

    Parameters
    ----------
    test : TextTable, optional
        Texts that a model is to be judged on, which should be others.
    near : bool
        Whether texts that are nearly the same are looked for, among the first 200,000.
    """
    texts, labels = table.texts, table.labels or ((),) * len(table)
    with progress.stage("check", None, "rows"):
        words = [tuple(_WORD.findall(text.casefold())) for text in texts]
        repeated, other_labels = _repeated(words, labels)
        counts = Counter(label for row in labels for label in row)
        languages = count_languages(texts)
        separator = likely_separator(labels)
    nearly, among = None, set()
    if near:
        with progress.stage("texts that are nearly the same"):
            gone = set(repeated)
            both = [*texts[:MOST_TEXTS], *(() if test is None else test.texts[:MOST_TEXTS])]
            first = min(len(texts), MOST_TEXTS)
            groups = near_duplicates(both)
            nearly = tuple(
                sorted(place for group in groups for place in group[1:] if place < first)
            )
            nearly = tuple(place for place in nearly if place not in gone)
            among = {
                place - first
                for group in groups
                if group[0] < first
                for place in group
                if place >= first
            }
    return TableCheck(
        rows=len(table),
        skipped=table.skipped,
        no_text=tuple(i for i, own in enumerate(words) if not own),
        no_labels=tuple(i for i, row in enumerate(labels) if not row),
        repeated=repeated,
        other_labels=other_labels,
        nearly=nearly,
        lonely=() if share_unspaced(texts[:SAMPLE]) > MIXED else _lonely(words),
        label_counts=dict(counts.most_common()),
        labels_a_text=tuple(map(len, labels)),
        words_a_text=tuple(map(len, words)),
        separator=separator,
        languages=languages,
        names=table.names,
        overlap=None if test is None else _overlap(set(words), counts, test, among),
    )


def likely_separator(labels: Sequence[Sequence[str]]) -> Separator | None:
    """A mark by which labels should have been split: its parts come again and again.

    >>> likely_separator([["sea, food"], ["food"], ["sky, sea"], ["sky"]]).split_labels
    3
    >>> likely_separator([["Melville, H."], ["Woolf, V."], ["Verne, J."]]) is None
    True
    """
    labelled = [set(row) for row in labels if row]
    now = len(set().union(*labelled))
    texts = sum(map(len, labelled)) / max(now, 1)
    uris = sum(all(map(_URI.match, row)) for row in labelled) > len(labelled) / 2
    found = []
    for mark in URI_MARKS if uris else MARKS:
        rows = sum(any(mark in label for label in row) for row in labelled)
        if not rows or rows < LEAST_SHARE * len(labelled):
            continue
        split = [{part.strip() for label in row for part in label.split(mark)} for row in labelled]
        counts = Counter(part for row in split for part in row if part)
        mean = counts.total() / max(len(counts), 1)
        fewer = len(counts) <= (1 - LEAST_SAVED) * now
        if fewer or (mean >= LEAST_OFTENER * texts and _differ_in_length(split)):
            found.append(Separator(mark, rows / len(labelled), now, len(counts), texts, mean))
    return max(found, key=lambda each: each.split_texts, default=None)


def _differ_in_length(rows: Sequence[set[str]]) -> bool:
    """Whether these are lists, and not names of as many parts each: town, county, country."""
    lengths = Counter(map(len, rows))
    return max(lengths.values()) <= ONE_LENGTH * len(rows)


def _repeated(
    words: Sequence[tuple[str, ...]], labels: Sequence[Sequence[str]]
) -> tuple[tuple[int, ...], int]:
    """Places of texts whose words stand before already, and how many have other labels there."""
    first: dict[tuple[str, ...], int] = {}
    repeated, others = [], 0
    for place, own in enumerate(words):
        earlier = first.setdefault(own, place)
        if own and earlier != place:
            repeated.append(place)
            others += set(labels[place]) != set(labels[earlier])
    return tuple(repeated), others


def _lonely(words: Sequence[tuple[str, ...]]) -> tuple[int, ...]:
    """Places of texts that have words, but none that another text has."""
    texts = Counter(word for own in words for word in set(own))
    return tuple(
        place for place, own in enumerate(words) if own and all(texts[word] == 1 for word in own)
    )


def _overlap(
    known: set[tuple[str, ...]], counts: Mapping[str, int], test: TextTable, among: set[int]
) -> Overlap:
    words = [tuple(_WORD.findall(text.casefold())) for text in test.texts]
    same = {place for place, own in enumerate(words) if own and own in known}
    names = set().union(*(test.labels or ()))
    return Overlap(len(test), len(same), len(among - same), len(names), len(names - counts.keys()))


def _is(n: int) -> str:
    return "is" if n == 1 else "are"
