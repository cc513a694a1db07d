"""A table of texts before training: its labels, its texts, and the rows to look at."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from dxml.plots._style import COLOURS, heading, make_room, panels
from dxml.text._checking import TableCheck
from dxml.text._languages import UNKNOWN

__all__ = ["TablePlot", "table_plot"]

MOST_LABELS = 12  # of a text, from which on they share a bar
MANY = 20  # labels, or times as many texts, from which on an axis is logarithmic
LEAST_SHARE = 0.02  # of the texts, from which on a language is named


@dataclass(frozen=True)
class TablePlot:
    """Four panels: texts a label, labels a text, words a text, rows to look at.

    Attributes
    ----------
    title : str
    found : TableCheck
    """

    title: str
    found: TableCheck

    def numbers(self) -> dict[str, Any]:
        """What was found."""
        return {"title": self.title, **self.found.numbers()}

    def paint(self, plt: Any) -> Any:
        """Draw the panels."""
        canvas, axes = panels(plt, 4, width=4.8, height=3.2)
        for draw, axis in zip(
            (self._frequency, self._labels, self._words, self._odd), axes, strict=True
        ):
            draw(axis)
        heading(canvas, self.title)
        make_room(canvas, axes[-1])
        return canvas

    def _frequency(self, axis: Any) -> None:
        counts = list(self.found.label_counts.values())
        axis.plot(range(1, len(counts) + 1), counts, color=COLOURS[0], marker="o", markersize=3)
        if len(counts) >= MANY:
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter("{x:g}")
        if counts and counts[0] >= MANY * counts[-1]:
            axis.set_yscale("log")
            axis.yaxis.set_major_formatter("{x:g}")
        else:
            axis.set_ylim(bottom=0)
        axis.set_xlabel("labels, most frequent first")
        axis.set_ylabel("texts")
        axis.set_title(
            f"texts a label: {len(counts):,} labels, {self.found.once:,} of one text", fontsize=10
        )

    def _labels(self, axis: Any) -> None:
        counts = Counter(min(n, MOST_LABELS) for n in self.found.labels_a_text)
        high = max(counts, default=0)
        places = range(high + 1)
        axis.bar(places, [counts[n] for n in places], 0.8, color=COLOURS[2])
        ticks = [f"{n}+" if n == MOST_LABELS else str(n) for n in places]
        axis.set_xticks(places, ticks)
        axis.set_xlabel("labels")
        axis.set_ylabel("texts")
        axis.set_title("labels a text", fontsize=10)
        axis.grid(axis="x", visible=False)

    def _words(self, axis: Any) -> None:
        words = np.array(self.found.words_a_text)
        high = int(np.quantile(words, 0.99)) if len(words) else 0
        edges = np.linspace(0, max(high, 1) + 1, min(max(high, 1) + 2, 31))
        axis.hist(np.minimum(words, edges[-1]), edges, color=COLOURS[5])
        axis.set_xlabel("words; the longest hundredth of the texts in the last bar")
        axis.set_ylabel("texts")
        axis.set_title("words a text", fontsize=10)
        axis.grid(axis="x", visible=False)

    def _odd(self, axis: Any) -> None:
        found = self.found
        rows = {
            "without text": len(found.no_text),
            "without labels": len(found.no_labels),
            "bad, left out": found.skipped,
            "stand before": len(found.repeated),
            "nearly so": len(found.nearly or ()),
        }
        if found.overlap is not None:
            rows["also in the test"] = found.overlap.same
            rows["nearly in the test"] = found.overlap.nearly
        shown = axis.barh(list(rows), list(rows.values()), 0.7, color=COLOURS[1])
        axis.bar_label(shown, [f"{n:,}" for n in rows.values()], padding=3)
        axis.invert_yaxis()
        axis.set_xlabel("rows")
        named = {n: s for n, s in found.languages.items() if n != UNKNOWN and s >= LEAST_SHARE}
        spoken = ", ".join(f"{name} {100 * share:.0f} %" for name, share in named.items())
        axis.set_title(
            f"to look at, of {found.rows:,} rows ({spoken or 'no language told'})", fontsize=10
        )
        axis.grid(axis="y", visible=False)


def table_plot(found: TableCheck, *, title: str = "A table of texts") -> TablePlot:
    """A picture of what `dxml.text.check_table` found."""
    return TablePlot(title, found)
