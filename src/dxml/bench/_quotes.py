"""Figures inside sentences: filled in from stored rows, and what sentences claim is checked.

A text names a figure instead of writing it: ``[[joint (CPU) | eurlex-4k | P]]`` becomes P@1 / P@3 /
P@5 of that row. Parts are the row, the data set, the measure and, where wanted, decimals or another
row to compare with:

- the row: its label; of a study with its values; or ``published LABEL``
- the measure: ``P``, ``PSP``, ``nDCG`` (three numbers), ``ECE`` (at 1 and 5), any stored score such
  as ``P@1``, ``std P@1``, ``train`` or ``predict`` (seconds), ``head`` (found@5 of frequent
  labels), ``runs``
- ``.2``: decimals; ``less ROW``: the difference to another row, without its sign; ``over ROW``: how
  many times as much

A comment ``<!-- holds: A > B; C | data; data | P; PSP -->`` says what the sentence after it claims:
row A is ahead of rows B and C on the data at every number of the measures. ``<`` is behind, ``~ x``
within x, ``B`` may be ``all``: every row of another method, and every published one, that has the
measure. A text whose claims do not hold, or that compares with nothing, is refused, with what is
stored; comments are left out of what is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dxml.bench._published import PAPER_METHODS, Published
from dxml.bench._summary import Row
from dxml.exceptions import DataFormatError

__all__ = ["fill_in"]

_FIGURE = re.compile(r"\[\[([^\]]+)\]\]")
_CLAIM = re.compile(r"<!-- holds: (.+?) -->\n?", re.DOTALL)
_COMPARED = re.compile(r"(.+?) (>|<|~ [\d.]+) (.+)", re.DOTALL)
_AT = (1, 3, 5)
_DIGITS = {"ECE": 2, "runs": 0}
_PUBLISHED = "published "
_SOURCES = ("paper", "repository")


def fill_in(text: str, rows: Sequence[Row], published: Published) -> str:
    """The text with its figures, without its claims, which hold.

    Raises
    ------
    DataFormatError
        Where a figure is not stored, or a claim does not hold.
    """
    book = _Book(rows, published)
    wrong = [each for claim in _CLAIM.findall(text) for each in _broken(book, claim)]
    if wrong:
        raise DataFormatError("sentences that stored results contradict:\n" + "\n".join(wrong))
    return _FIGURE.sub(lambda found: _figure(book, found[1]), _CLAIM.sub("", text))


class _Book:
    """Stored and published numbers, by how texts name them."""

    def __init__(self, rows: Sequence[Row], published: Published) -> None:
        self._rows = [row for row in rows if row.measured]
        self._published = published

    def numbers(self, name: str, data: str, measure: str) -> list[float]:
        """One number, or several where the measure is a family such as ``P``."""
        if name.startswith(_PUBLISHED):
            return self._printed(name.removeprefix(_PUBLISHED), data, measure)
        row = self._row(name, data)
        return [_number(row, each) for each in _family(measure)]

    def others(self, name: str, data: str, measure: str) -> Iterator[tuple[str, list[float]]]:
        """Every row of another method on the data, and every published one."""
        method = self._row(name, data).method
        for row in self._rows:
            if row.dataset == data and row.part == "test" and row.method != method:
                if all(row.mean(each) is not None for each in _family(measure)):
                    yield row.label, [_number(row, each) for each in _family(measure)]
        family, _, k = measure.partition("@")
        for (_, where, label), scores in self._published.scores.items():
            if where == data and family in scores:
                printed = scores[family]
                yield f"{_PUBLISHED}{label}", [printed[_AT.index(int(k))]] if k else printed

    def _row(self, name: str, data: str) -> Row:
        found = [row for row in self._rows if row.dataset == data and name in _names(row)]
        if len(found) != 1:
            raise DataFormatError(f"{len(found)} stored rows are called {name!r} on {data!r}")
        return found[0]

    def _printed(self, label: str, data: str, measure: str) -> list[float]:
        if measure in ("train", "test"):
            return [self._published.seconds[data, label][measure]]
        family, _, k = measure.partition("@")
        for source in _SOURCES:
            scores = self._published.scores.get((source, data, label), {}).get(family)
            if scores:
                return [scores[_AT.index(int(k))]] if k else scores
        raise DataFormatError(f"no {measure} of {label!r} on {data!r} is published")


def _family(measure: str) -> list[str]:
    """The measures that one name stands for."""
    if measure == "ECE":
        return ["ECE@1", "ECE@5"]
    return [f"{measure}@{k}" for k in _AT] if measure in ("P", "PSP", "nDCG") else [measure]


def _names(row: Row) -> set[str]:
    """What texts may call a row."""
    if row.study and "=" not in row.label:
        given = ", ".join(f"{name}={value}" for name, value in row.parameters.items())
        return {f"{row.label} ({given})"}
    paper = PAPER_METHODS.get(row.method, ())[:1] if row.label == row.method else ()
    return {"joint (GPU)" if row.label == "joint" else row.label, *paper}


def _number(row: Row, measure: str) -> float:
    found: float | None
    if measure in ("train", "predict"):
        found = row.second(measure)
    elif measure == "head":
        found = row.bands["head"]["found@5"]["mean"]
    elif measure == "runs":
        found = float(row.runs)
    elif measure.startswith("std "):
        found = row.deviation(measure.removeprefix("std "))
    else:
        found = row.mean(measure)
    if found is None:
        raise DataFormatError(f"{row.label!r} on {row.dataset!r} has no {measure}")
    return found


def _figure(book: _Book, asked: str) -> str:
    name, data, measure, *more = [part.strip() for part in asked.split("|")]
    digits = next((int(part[1:]) for part in more if part.startswith(".")), None)
    values, unit = book.numbers(name, data, measure), ""
    for part in more:
        how, _, other = part.partition(" ")
        if how in ("less", "over"):
            theirs = book.numbers(other, data, measure)
            pairs = list(zip(values, theirs, strict=True))
            values = [abs(a - b) if how == "less" else a / b for a, b in pairs]
            digits = (0 if how == "over" else 1) if digits is None else digits
    if measure in ("train", "predict") and not any(part.startswith("over") for part in more):
        unit = " s"
        digits = (1 if values[0] < 100 else 0) if digits is None else digits
    shown = _DIGITS.get(measure.partition("@")[0], 1) if digits is None else digits
    return " / ".join(f"{value:,.{shown}f}" for value in values) + unit


def _broken(book: _Book, claim: str) -> Iterator[str]:
    """What contradicts a claim."""
    claimed, data, measures = [part.strip() for part in " ".join(claim.split()).split("|")]
    found = _COMPARED.fullmatch(claimed)
    if found is None:
        raise DataFormatError(f"a claim compares by >, < or ~: {claim!r}")
    name, sign, others = found.groups()
    for where in data.split("; "):
        for measure in measures.split("; "):
            ours = book.numbers(name, where, measure)
            compared = list(_compared(book, name, others, where, measure))
            if not compared:
                yield f"{name} {sign} {others} on {where}: nothing else has {measure}"
            for label, theirs in compared:
                if not all(_keeps(a, sign, b) for a, b in zip(ours, theirs, strict=True)):
                    yield f"{name} {sign} {label} on {where}: {measure} {ours} and {theirs}"


def _compared(
    book: _Book, name: str, others: str, data: str, measure: str
) -> Iterator[tuple[str, list[float]]]:
    if others == "all":
        yield from book.others(name, data, measure)
        return
    for label in others.split("; "):
        yield label, book.numbers(label, data, measure)


def _keeps(ours: float, sign: str, theirs: float) -> bool:
    if sign == ">":
        return ours > theirs
    if sign == "<":
        return ours < theirs
    return abs(ours - theirs) <= float(sign.removeprefix("~ "))
