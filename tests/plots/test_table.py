"""The picture of a table, by the numbers that are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dxml.plots import save, table_plot
from dxml.text import TextTable, check_table

from .words import check_numbers_inside, check_words

TABLE = TextTable(
    ("the fish is in the sea", "", "the fish is in the sea", "soup " * 9),
    (("a", "b"), ("a",), (), ("a",)),
)


def test_panels_by_hand(plt: Any, tmp_path: Path) -> None:
    plot = table_plot(check_table(TABLE, TABLE), title="t.csv before training")
    canvas = plot.paint(plt)
    check_words(canvas)
    frequency, labels, words, odd = canvas.axes
    assert list(frequency.lines[0].get_ydata()) == [3, 1]
    assert frequency.get_title() == "texts a label: 2 labels, 1 of one text"
    assert [bar.get_height() for bar in labels.patches] == [1, 2, 1]
    assert sum(bar.get_height() for bar in words.patches) == 4
    names = [tick.get_text() for tick in odd.get_yticklabels()]
    drawn = dict(zip(names, (bar.get_width() for bar in odd.patches), strict=True))
    assert drawn["without text"] == 1 and drawn["without labels"] == 1
    assert drawn["stand before"] == 1 and drawn["also in the test"] == 3
    assert "en 67 %" in odd.get_title()
    check_numbers_inside(canvas, odd)
    assert plot.numbers()["title"] == "t.csv before training" and plot.numbers()["rows"] == 4
    assert save(plot, tmp_path / "t.png").stat().st_size > 5_000


def test_many_labels_have_logarithmic_axes(plt: Any) -> None:
    rows = (*((f"x{i}", "all") for i in range(30)), tuple(f"y{i}" for i in range(20)))
    plot = table_plot(check_table(TextTable(("a",) * 31, rows), near=False))
    frequency, labels, *_ = plot.paint(plt).axes
    assert frequency.get_xscale() == frequency.get_yscale() == "log"
    assert labels.get_xticklabels()[-1].get_text() == "12+"
