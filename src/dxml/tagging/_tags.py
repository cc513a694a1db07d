"""What a tagger answers: names with probabilities, and the evidence for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from dxml._core.html import bar, html, table

__all__ = ["Explanation", "Neighbour", "Tag", "Tags"]


@dataclass(frozen=True)
class Tag:
    """A label's name and its probability.

    >>> name, probability = Tag("fish", 0.93)
    >>> print(Tag("fish", 0.93))
    fish 93 %
    """

    name: str
    probability: float

    def __iter__(self) -> Iterator[Any]:
        yield self.name
        yield self.probability

    def __str__(self) -> str:
        return f"{self.name} {_per_cent(self.probability)}"

    def _repr_html_(self) -> str:
        return f"<b>{html(self.name)}</b> {bar(self.probability)}"


class Tags(list[Tag]):
    """The labels of one text, best first.

    Attributes
    ----------
    nothing_known : bool
        Whether no word of the text is known, and no encoder reads it: its labels are then those
        most frequent among training texts whose words no other text has, with about their share.
    """

    def __init__(self, tags: Iterable[Tag] = (), *, nothing_known: bool = False) -> None:
        super().__init__(tags)
        self.nothing_known = nothing_known

    def _repr_html_(self) -> str:
        warning = "No word is known: these are only the most frequent labels."
        rows = [[tag.name, bar(tag.probability)] for tag in self]
        return table(["label", "probability"], rows, warning if self.nothing_known else "")


@dataclass(frozen=True)
class Neighbour:
    """A text of the training data that voted for a label.

    Attributes
    ----------
    id, title : str
        The title is the first line of its text.
    similarity : float
        Its cosine with the text that is explained.
    weight : float
        Its share of all votes, from 0 to 1.
    labels : tuple of str
        All it carries.
    """

    id: str
    title: str
    similarity: float
    weight: float
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """Why a text was given a label.

    Attributes
    ----------
    name : str
    probability : float
    from_head, from_neighbours : float
        Shares of what speaks for the label, as `joint._explaining` defines them; they add up to
        1, or are both 0 where nothing speaks for it.
    words : tuple of (str, float)
        Words of the text, strongest first, and how much lower the label's score, about its
        log-odds, is without each.
    neighbours : tuple of Neighbour
        Those that voted for the label, heaviest first.
    """

    name: str
    probability: float
    from_head: float
    from_neighbours: float
    words: tuple[tuple[str, float], ...]
    neighbours: tuple[Neighbour, ...]

    def to_dict(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)

    def __str__(self) -> str:
        words = ", ".join(f"{word} {effect:+.2f}" for word, effect in self.words)
        lines = [
            f"{self.name} {_per_cent(self.probability)}: {_per_cent(self.from_head)} from the "
            f"head, {_per_cent(self.from_neighbours)} from the neighbours",
            f"  words: {words or 'none by itself'}",
        ]
        for near in self.neighbours:
            lines.append(f"  {near.similarity:.2f} {near.id}: {near.title}")
            lines.append(f"       {'; '.join(near.labels)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        words = ", ".join(f"{html(word)} {effect:+.2f}" for word, effect in self.words)
        near = [
            [f"{each.similarity:.2f}", each.id, each.title, "; ".join(each.labels)]
            for each in self.neighbours
        ]
        return "".join(
            [
                f"<p><b>{html(self.name)}</b> {bar(self.probability)}<br>",
                f"{_per_cent(self.from_head)} from the head, ",
                f"{_per_cent(self.from_neighbours)} from the neighbours<br>",
                f"words: {words or 'none by itself'}</p>",
                table(["similarity", "id", "title", "labels"], near) if near else "",
            ]
        )


def _per_cent(share: float) -> str:
    return f"{100 * share:.0f} %"
